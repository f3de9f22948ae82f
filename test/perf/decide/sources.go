// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/groupapi"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

const (
	// sourceTurns is how often each source is measured in a run. The fastest counts, because the speed of the machine changes.
	sourceTurns = 6
	membersEach = 5

	mostSourceCycle  = 1.1
	mostSourceEvents = 1.4 // when all objects are new: pods that name the queue move their group
	mostSourceMemory = 1024
)

// sourceCost is what the groups of a source cost: processor time of the events and of the cycle, and bytes.
type sourceCost struct {
	events, cycle time.Duration
	memory        float64
}

// least returns the smaller costs of two.
func (c sourceCost) least(o sourceCost) sourceCost {
	return sourceCost{min(c.events, o.events), min(c.cycle, o.cycle), min(c.memory, o.memory)}
}

// groupSources compares the groups of other APIs with those of this scheduler: the same gangs are written as groups of each
// source, one source after the other, and a cycle starts all of them. The groups of other APIs name no queue, as most
// operators create them, so the queue is that of the pods. The events add all objects to an empty model. The memory is that
// of the groups and of the model.
func groupSources(nodes, groups int) benchmark {
	var limits []limit
	for _, source := range api.AllSources()[1:] {
		limits = append(limits,
			limit{name: source.String() + "/cycle", steps: []string{source.String() + " cycle"}, unit: ratio, most: mostSourceCycle},
			limit{name: source.String() + "/events", steps: []string{source.String() + " events"}, unit: ratio, most: mostSourceEvents},
			limit{name: source.String() + "/memory", steps: []string{source.String() + " memory"}, unit: bytesPerGroup, most: mostSourceMemory})
	}
	return benchmark{
		name: "IS1/sources", about: fmt.Sprintf("IS1: %d gangs of %d as groups of each other source, compared with PodGroups of this scheduler", groups, membersEach),
		build: func() *fixture {
			w := newFixture(nodes)
			w.addQueue("a", 1)
			for g := range groups {
				w.add(job{name: fmt.Sprintf("gang-%05d", g), queue: "a", class: low, min: membersEach, size: membersEach})
			}
			return w
		},
		whole:  compareSources,
		cycles: []cycle{{limits: limits}},
	}
}

func compareSources(ctx context.Context, w *fixture) (cost, error) {
	took := newCost()
	took.values = map[string]float64{}
	least := map[api.GroupSource]sourceCost{}
	pods := map[api.GroupSource][]*v1.Pod{}
	for _, source := range api.AllSources() {
		pods[source] = w.podsOf(source)
	}
	for turn := range sourceTurns {
		for _, source := range api.AllSources() {
			c, err := w.runSource(ctx, source, pods[source])
			if err != nil {
				return took, err
			}
			if turn > 0 {
				c = c.least(least[source])
			}
			least[source] = c
			took.times[source.String()] = c.events + c.cycle
		}
	}
	own := least[api.SourceOwn]
	for _, source := range api.AllSources()[1:] {
		of := least[source]
		took.values[source.String()+" cycle"] = of.cycle.Seconds() / own.cycle.Seconds()
		took.values[source.String()+" events"] = of.events.Seconds() / own.events.Seconds()
		took.values[source.String()+" memory"] = max((of.memory-own.memory)/float64(len(w.groups)), 1)
	}
	return took, nil
}

// runSource adds all objects to a new model and runs a cycle, which must bind all pods.
func (w *fixture) runSource(ctx context.Context, source api.GroupSource, pods []*v1.Pod) (took sourceCost, err error) {
	clock := clocktesting.NewFakePassiveClock(w.clock.Add(time.Hour))
	profile, err := newProfile(clock, false, conf.Reservations{})
	if err != nil {
		return took, err
	}
	objects := w.groupObjects(source)
	before := heap()
	groups, err := readGroups(source, objects, w.groups)
	if err != nil {
		return took, err
	}
	c := model.NewCluster(model.Options{SchedulerNames: []string{schedulerName}, DefaultQueue: "default", GroupSources: api.GroupSources{
		Native: source == api.SourceNative, SchedulerPlugins: source == api.SourceSchedulerPlugins, Volcano: source == api.SourceVolcano,
		KAI: source == api.SourceKAI,
	}})
	e := &effects{decisions: make([]api.Decision, 0, len(pods))}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // whose threads would count
	began := processorTime()
	c.Events().SetNamespace(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	c.Events().SetPriorityClass(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: low}, Value: priorityOf(low)})
	(&fixture{queues: w.queues, nodes: w.nodes}).applyTo(c)
	for _, g := range groups {
		c.Events().SetGroup(g)
	}
	for _, p := range pods {
		c.Events().SetPod(p)
	}
	c.Events().Recompute()
	took.events = processorTime() - began
	took.memory = heap() - before
	began = processorTime()
	_, _, err = profile.Run(ctx, c, e, logr.Discard(), framework.Hooks{})
	took.cycle = processorTime() - began
	if err == nil && len(e.decisions) != len(pods) {
		err = fmt.Errorf("source %s: %d of %d pods are bound", source, len(e.decisions), len(pods))
	}
	runtime.KeepAlive(groups)
	return took, err
}

// heap returns the memory in use, in bytes.
func heap() float64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc)
}

// podsOf returns the pods as members of groups of a source.
func (w *fixture) podsOf(source api.GroupSource) []*v1.Pod {
	var pods []*v1.Pod
	for _, p := range w.pods {
		pod := *p
		name := pod.Labels[v1alpha1.LabelPodGroup]
		pod.Annotations, pod.Labels = map[string]string{}, map[string]string{v1alpha1.LabelQueue: "a"}
		switch source {
		case api.SourceOwn:
			pod.Labels[v1alpha1.LabelPodGroup] = name
		case api.SourceNative:
			pod.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &name}
		case api.SourceSchedulerPlugins:
			pod.Labels[api.LabelSchedulerPluginsGroup] = name
		case api.SourceVolcano:
			pod.Annotations[v1alpha1.AnnotationGroupName] = name
		case api.SourceKAI:
			pod.Annotations[api.AnnotationKAIGroup] = name
		}
		pods = append(pods, &pod)
	}
	return pods
}

// groupObjects returns the groups as objects of another API; nil for those of this scheduler.
func (w *fixture) groupObjects(source api.GroupSource) []*unstructured.Unstructured {
	if source == api.SourceOwn {
		return nil
	}
	var objects []*unstructured.Unstructured
	for _, g := range w.groups {
		spec := map[string]any{"minMember": int64(g.Spec.MinMember)}
		if source == api.SourceNative {
			spec = map[string]any{"schedulingPolicy": map[string]any{"gang": map[string]any{"minCount": int64(g.Spec.MinMember)}}}
		}
		u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
		u.SetNamespace(g.Namespace)
		u.SetName(g.Name)
		u.SetUID(g.UID)
		u.SetCreationTimestamp(g.CreationTimestamp)
		objects = append(objects, u)
	}
	return objects
}

// readGroups reads the groups as the informers do: those of other APIs from unstructured objects, and those of this scheduler
// from JSON. A mere copy of the latter would lie in memory in the order in which the cycle visits it.
func readGroups(source api.GroupSource, objects []*unstructured.Unstructured, own []*v1alpha1.PodGroup) ([]*api.Group, error) {
	var groups []*api.Group
	if source == api.SourceOwn {
		for _, g := range own {
			encoded, err := json.Marshal(g)
			if err != nil {
				return nil, err
			}
			decoded := &v1alpha1.PodGroup{}
			if err := json.Unmarshal(encoded, decoded); err != nil {
				return nil, err
			}
			groups = append(groups, api.OwnGroup(decoded))
		}
		return groups, nil
	}
	for _, a := range groupapi.All() {
		if a.Source != source {
			continue
		}
		for _, u := range objects {
			groups = append(groups, a.Read(u).Group)
		}
		break // with the preferred API
	}
	return groups, nil
}
