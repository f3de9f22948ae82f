// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package reservation

import (
	"testing"

	"github.com/go-logr/logr"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

// pipelined is a plugin that knows when a gang has all its nodes.
type pipelined struct{}

func (pipelined) Name() string { return "pipelined" }

func (pipelined) OnSessionOpen(ssn *framework.Session) {
	ssn.AddJobPipelinedFn("pipelined", (*api.JobInfo).Pipelined)
}

func (pipelined) OnSessionClose(*framework.Session) {}

// profileWith makes a profile with the plugin pipelined and one component.
func profileWith(t *testing.T, spec framework.ComponentSpec) *framework.Profile {
	t.Helper()
	r := framework.NewRegistry()
	if err := r.AddFirst(spec); err != nil {
		t.Fatal(err)
	}
	plugin := framework.PluginSpec{New: func(*conf.Decoder, framework.Handle) (framework.Plugin, error) { return pipelined{}, nil }}
	if err := r.AddPlugin("pipelined", plugin); err != nil {
		t.Fatal(err)
	}
	profile, err := r.NewProfile(&conf.Configuration{Tiers: []conf.Tier{{Plugins: []conf.Plugin{{Name: "pipelined"}}}}}, framework.Handle{})
	if err != nil {
		t.Fatal(err)
	}
	return profile
}

// capturing returns a component that stores each plugin that it creates.
func capturing[P framework.Plugin](spec framework.ComponentSpec, plugin *P) framework.ComponentSpec {
	create := spec.New
	spec.New = func(env framework.Environment) (framework.Plugin, framework.Action) {
		created, action := create(env)
		*plugin = created.(P)
		return created, action
	}
	return spec
}

type noEffects struct{}

func (noEffects) Commit([]api.Decision) {}

func open(p *framework.Profile, c *model.Cluster) *framework.Session {
	c.Events().Recompute()
	return p.Open(c, noEffects{}, logr.Discard())
}
