// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package reservation

import (
	"testing"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

const scheduler = "ours"

func newCluster() *model.Cluster {
	c := model.NewCluster(model.Options{SchedulerName: scheduler, DefaultQueue: "default"})
	c.Events().SetQueue(&v1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Name: "default"}, Spec: v1alpha1.QueueSpec{Weight: 1}})
	return c
}

func list(cpu int) v1.ResourceList {
	return v1.ResourceList{v1.ResourceCPU: *resource.NewQuantity(int64(cpu), resource.DecimalSI)}
}

func node(name string, cpu int) *v1.Node {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
	n.Status.Allocatable = list(cpu)
	n.Status.Allocatable[v1.ResourcePods] = resource.MustParse("10")
	return n
}

func pod(name string, cpu int, changes ...func(*v1.Pod)) *v1.Pod {
	p := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)},
		Spec: v1.PodSpec{
			SchedulerName: scheduler,
			Containers:    []v1.Container{{Resources: v1.ResourceRequirements{Requests: list(cpu)}}},
		},
	}
	for _, change := range changes {
		change(p)
	}
	return p
}

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

type noEffects struct{}

func (noEffects) Commit([]api.Decision) {}

func open(p *framework.Profile, c *model.Cluster) *framework.Session {
	c.Events().Recompute()
	return p.Open(c, noEffects{}, logr.Discard())
}
