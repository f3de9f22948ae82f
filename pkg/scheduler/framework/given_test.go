// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"fmt"
	"strings"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

// failer is what helpers need of a test, random or not.
type failer interface {
	Helper()
	Fatal(args ...any)
}

// testPlugin is a plugin made of functions.
type testPlugin struct {
	name        string
	open, close func(*Session)
}

func (p testPlugin) Name() string { return p.name }

func (p testPlugin) OnSessionOpen(ssn *Session) {
	if p.open != nil {
		p.open(ssn)
	}
}

func (p testPlugin) OnSessionClose(ssn *Session) {
	if p.close != nil {
		p.close(ssn)
	}
}

func (p testPlugin) spec() PluginSpec {
	return PluginSpec{New: func(*conf.Decoder, Handle) (Plugin, error) { return p, nil }}
}

// profileOf makes a profile of tiers of plugins. Points named in off are switched off for all.
func profileOf(t failer, off []conf.Point, tiers ...[]testPlugin) *Profile {
	t.Helper()
	r := NewRegistry()
	c := &conf.Configuration{}
	for _, plugins := range tiers {
		var tier conf.Tier
		for _, p := range plugins {
			if err := r.AddPlugin(p.name, p.spec()); err != nil {
				t.Fatal(err)
			}
			tier.Plugins = append(tier.Plugins, conf.Plugin{Name: p.name, Disabled: off})
		}
		c.Tiers = append(c.Tiers, tier)
	}
	profile, err := r.NewProfile(c, Handle{})
	if err != nil {
		t.Fatal(err)
	}
	return profile
}

// effects keeps what was committed, as words.
type effects struct{ committed []string }

func (e *effects) Commit(decisions []api.Decision) {
	words := make([]string, 0, len(decisions))
	for _, d := range decisions {
		words = append(words, wordsOf(d))
	}
	e.committed = append(e.committed, strings.Join(words, ", "))
}

func wordsOf(d api.Decision) string {
	node := "-"
	if d.Node != nil {
		node = d.Node.Name
	}
	return fmt.Sprintf("%s %s %s", d.Kind, d.Task.ID, node)
}

const scheduler = "ours"

func newCluster() *model.Cluster {
	c := model.NewCluster(model.Options{SchedulerName: scheduler, DefaultQueue: "default"})
	c.Events().SetQueue(&v1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Name: "default"}, Spec: v1alpha1.QueueSpec{Weight: 1}})
	return c
}

func list(cpu int) v1.ResourceList {
	return v1.ResourceList{v1.ResourceCPU: *resource.NewQuantity(int64(cpu), resource.DecimalSI)}
}

func node(name string, cpu int, changes ...func(*v1.Node)) *v1.Node {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{}}}
	n.Status.Allocatable = list(cpu)
	n.Status.Allocatable[v1.ResourcePods] = resource.MustParse("10")
	for _, change := range changes {
		change(n)
	}
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

func on(name string) func(*v1.Pod) { return func(p *v1.Pod) { p.Spec.NodeName = name } }

func open(t failer, p *Profile, c *model.Cluster) (*Session, *effects) {
	t.Helper()
	c.Events().Recompute()
	e := &effects{}
	return p.Open(c, e, logr.Discard()), e
}
