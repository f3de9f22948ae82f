// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/ownerapi"
)

const (
	// groupingTurns is how often each policy is measured in a run. The fastest counts, because the speed of the machine changes.
	groupingTurns = 6
	podsPerJob    = 10

	mostGroupingCycle = 1.1
)

// groupingCase is what a policy says in grouping. The events and the memory of a Job cost at most so much.
type groupingCase struct {
	name string
	api.Grouping
	events float64 // times those without grouping
	memory float64 // bytes
}

// groupingCases are the policies that are compared. With "job: basic" no rule is about Jobs; "all-kinds" asks the rules of
// all other kinds for each pod; "indexed" reads all Jobs, and finds that none is a gang.
func groupingCases() []groupingCase {
	const all = api.KindTrainJob<<1 - 1
	return []groupingCase{
		{name: "off"},
		{"basic", api.Grouping{Kinds: api.KindJob}, 1.1, 64},
		{"all-kinds", api.Grouping{Kinds: all}, 1.2, 64},
		{"indexed", api.Grouping{Kinds: all, IndexedJobs: true}, 1.5, 2048}, // the Jobs are events too
	}
}

// independentJobs compares policies with grouping with one without it: Jobs of independent pods, which a cycle starts. The
// events add all objects to an empty model. All policies must make the same decisions.
func independentJobs(nodes, jobs int) benchmark {
	var limits []limit
	for _, c := range groupingCases()[1:] {
		limits = append(limits,
			limit{name: c.name + "/cycle", steps: []string{c.name + " cycle"}, unit: ratio, most: mostGroupingCycle},
			limit{name: c.name + "/events", steps: []string{c.name + " events"}, unit: ratio, most: c.events},
			limit{name: c.name + "/memory", steps: []string{c.name + " memory"}, unit: bytesPerJob, most: c.memory})
	}
	return benchmark{
		name:  "IG8",
		about: fmt.Sprintf("IG8: %d Jobs of %d independent pods with policies that have grouping, compared with one that has not", jobs, podsPerJob),
		build: func() *fixture {
			w := newFixture(nodes)
			w.addQueue("a", 1)
			for i := range jobs {
				addIndependentJob(w, fmt.Sprintf("job-%04d", i))
			}
			return w
		},
		whole:  compareGroupings,
		cycles: []cycle{{limits: limits}},
	}
}

// addIndependentJob adds the pods of a Job, which start one by one.
func addIndependentJob(w *fixture, name string) {
	controller := metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: name, UID: types.UID("uid-" + name), Controller: new(true)}
	for i := range podsPerJob {
		pod := newPod(w.meta(fmt.Sprintf("%s-%d", name, i)), job{name: name, class: low})
		pod.Labels = map[string]string{v1alpha1.LabelQueue: "a", "batch.kubernetes.io/job-name": name}
		pod.OwnerReferences = []metav1.OwnerReference{controller}
		w.pods = append(w.pods, pod)
	}
}

func compareGroupings(ctx context.Context, w *fixture) (cost, error) {
	took := newCost()
	took.values = map[string]float64{}
	least := map[string]sourceCost{}
	var want []string
	for turn := range groupingTurns {
		for _, grouping := range groupingCases() {
			c, decisions, err := runGrouping(ctx, w, grouping)
			if err != nil {
				return took, err
			}
			if want == nil {
				want = decisions
			}
			if !slices.Equal(want, decisions) {
				return took, fmt.Errorf("policy %s: the decisions differ from those without grouping", grouping.name)
			}
			if turn > 0 {
				c = c.least(least[grouping.name])
			}
			least[grouping.name] = c
			took.times[grouping.name] = c.events + c.cycle
		}
	}
	off := least["off"]
	for _, grouping := range groupingCases()[1:] {
		of := least[grouping.name]
		took.values[grouping.name+" cycle"] = of.cycle.Seconds() / off.cycle.Seconds()
		took.values[grouping.name+" events"] = of.events.Seconds() / off.events.Seconds()
		took.values[grouping.name+" memory"] = max((of.memory-off.memory)/float64(len(w.pods)/podsPerJob), 1)
	}
	return took, nil
}

// runGrouping adds all objects to a new model and runs a cycle, which must bind all pods. It returns the decisions.
func runGrouping(ctx context.Context, w *fixture, grouping groupingCase) (took sourceCost, decisions []string, err error) {
	clock := clocktesting.NewFakePassiveClock(w.clock.Add(time.Hour))
	profile, err := newProfile(clock, false, conf.Reservations{})
	if err != nil {
		return took, nil, err
	}
	options := model.Options{SchedulerNames: []string{schedulerName}, DefaultQueue: "default"}
	options.KueueGroups = grouping.Kinds.Has(api.KindKueue)
	rules := ownerapi.RulesOf(grouping.Grouping)
	if rules != nil {
		options.OwnerRules = rules
	}
	objects := jobObjects(w)
	runtime.GC() // pools keep objects of the turn before until the second collection
	e := &effects{decisions: make([]api.Decision, 0, len(w.pods))}
	before := heap()
	owners := readJobs(rules, objects)
	c := model.NewCluster(options)
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // whose threads would count
	began := processorTime()
	c.Events().SetNamespace(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	c.Events().SetPriorityClass(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: low}, Value: priorityOf(low)})
	for _, o := range owners {
		model.Owners(c).Set(o)
	}
	w.applyTo(c)
	took.events = processorTime() - began
	took.memory = heap() - before
	began = processorTime()
	_, _, err = profile.Run(ctx, c, e, logr.Discard(), framework.Hooks{})
	took.cycle = processorTime() - began
	if err == nil && len(e.decisions) != len(w.pods) {
		err = errors.New("not all pods are bound")
	}
	runtime.KeepAlive(owners)
	for _, d := range e.decisions {
		decisions = append(decisions, fmt.Sprintf("%v %s %s", d.Kind, d.Task.Pod.Name, d.Node.Name))
	}
	return took, decisions, err
}

// jobObjects returns the Jobs of the pods, in the form of the API server.
func jobObjects(w *fixture) []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured
	for i := 0; i < len(w.pods); i += podsPerJob {
		controller := w.pods[i].OwnerReferences[0]
		u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"parallelism": int64(podsPerJob), "completions": int64(podsPerJob)}}}
		u.SetNamespace(namespace)
		u.SetName(controller.Name)
		u.SetUID(controller.UID)
		objects = append(objects, u)
	}
	return objects
}

// readJobs reads the Jobs as the informer does, if there is a rule about Jobs.
func readJobs(rules *ownerapi.Rules, objects []*unstructured.Unstructured) []*api.Owner {
	var owners []*api.Owner
	for _, a := range rules.APIs() {
		if a.Kind != "Job" {
			continue
		}
		for _, u := range objects {
			owners = append(owners, a.Read(u))
		}
	}
	return owners
}
