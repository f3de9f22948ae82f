// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// asked is a plugin with a cap that allows everything and records which jobs it is asked about.
type asked struct{ jobs map[string]bool }

func (asked) Name() string { return "asked" }

func (a asked) OnSessionOpen(ssn *framework.Session) {
	ssn.AddAllocatableFn("asked", func(j *api.JobInfo, _ api.Resource, _ api.When) bool {
		a.jobs[j.GetName()] = true
		return true
	})
}

func (asked) OnSessionClose(*framework.Session) {}

// jobClassAware is the same, and treats one job differently from others of its job class.
type jobClassAware struct {
	asked
	apart string
}

func (s jobClassAware) Distinguished() []api.JobID {
	return []api.JobID{api.GroupJobID("ns/" + s.apart)}
}

// TestJobsThatAreTried asserts of which of three equal gangs a session tries one after a change.
func TestJobsThatAreTried(t *testing.T) {
	jobs := map[string]bool{}
	nothing := func(*Scenario) {}
	for name, tc := range map[string]struct {
		plugin framework.Plugin
		change func(*Scenario)
		first  string // cycle
		second string
	}{
		"one gang of a job class": {jobClassAware{asked: asked{jobs}}, nothing, "a", ""},
		"after a change of a node that is not feasible": {
			jobClassAware{asked: asked{jobs}}, func(c *Scenario) { c.Delete("r/elsewhere-0") }, "a", "",
		},
		"after a change of a node where a gang could start": {
			jobClassAware{asked: asked{jobs}}, func(c *Scenario) { c.Delete("here-0") }, "a", "a",
		},
		"a job that a plugin distinguishes":              {jobClassAware{asked{jobs}, "b"}, nothing, "a b", "b"},
		"all jobs if a plugin does not know job classes": {asked{jobs}, nothing, "a b c", "a b c"},
	} {
		t.Run(name, func(t *testing.T) {
			registry, made := BuiltIn(t), false
			err := registry.AddPlugin("asked", framework.PluginSpec{New: func(*conf.Decoder, framework.Handle) (framework.Plugin, error) {
				if made { // for the sessions that schedtest compares with, which try all jobs
					return asked{map[string]bool{}}, nil
				}
				made = true
				return tc.plugin, nil
			}})
			if err != nil {
				t.Fatal(err)
			}
			policy := strings.Replace(conf.DefaultYAML(), "  - name: drf\n", "  - name: drf\n  - name: asked\n", 1)
			pool := NodeSelector("pool", "here")
			c := New(t, registry, Given(
				Node("n1", "3cpu", Label("pool", "here")), Node("n2", "3cpu"), Queue("q", 1), Queue("r", 1),
				Foreign("here", Running(1, "2cpu", "n1")), Group("r/elsewhere", 1, Running(1, "", "n2")),
				Group("q/a", 2, Pending(2, "2cpu", pool)), Group("q/b", 2, Pending(2, "2cpu", pool)), Group("q/c", 2, Pending(2, "2cpu", pool)),
			), WithConfig(policy))
			cycle := func() string {
				clear(jobs)
				c.Cycle()
				return strings.Join(slices.Sorted(maps.Keys(jobs)), " ")
			}
			first := cycle()
			tc.change(c)
			if diff := cmp.Diff([]string{tc.first, tc.second}, []string{first, cycle()}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
