// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	config "github.com/batch-scheduler/batch-scheduler/pkg/apis/config/v1alpha1"
	batchfake "github.com/batch-scheduler/batch-scheduler/pkg/client/clientset/versioned/fake"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
)

// reportedPending measures the cycles of D9 in the whole scheduler with fake clients, with reports and metrics: without
// reservations for gangs that have waited long, and with those of the built-in policy. In the last benchmark the nodes are
// empty, but too small for the pending gangs, and gangs arrive that fit.
func reportedPending(nodes, gangs int) []benchmark {
	return []benchmark{
		wholeCycles{"freed", podEndsAnywhere, 0, 10}.benchmark("D9/reported", "D9: the same cycles with reports and metrics",
			func() *fixture { return pendingFixture(nodes, gangs) }),
		wholeCycles{"freed", podEndsAnywhere, config.DefaultStarvationAfter, 0}.benchmark("D9/starving", "D9: the same, where resources are reserved for gangs that have waited long",
			func() *fixture { return pendingFixture(nodes, gangs) }),
		wholeCycles{"arrived", gangArrives, 0, 3}.benchmark("D9/arriving", "D9: gangs of 100 classes fit on no node, and one of 16 pods arrives that fits",
			func() *fixture { return largeFixture(nodes/5, gangs) }),
	}
}

// wholeCycles are cycles of the whole scheduler.
type wholeCycles struct {
	name            string // of the measured cycle
	before          change
	starvationAfter time.Duration
	most            float64 // milliseconds; 0: no bound
}

func (c wholeCycles) benchmark(name, about string, build func() *fixture) benchmark {
	return benchmark{
		name: name, about: about, build: build, whole: c.run,
		cycles: []cycle{{limits: []limit{
			{name: "first/cycle", steps: []string{"first"}},
			{name: c.name + "/cycle", steps: []string{c.name}, most: c.most},
			{name: c.name + "/allocations", steps: []string{c.name}, unit: allocations},
			{name: "again/cycle", steps: []string{"again"}, most: 0.2},
		}}},
	}
}

// largeFixture has pending gangs that request more than a node has.
func largeFixture(nodes, gangs int) *fixture {
	w := newFixture(nodes)
	w.addQueue(queueName(0), 1)
	for g := range gangs {
		w.add(job{name: fmt.Sprintf("gang-%05d", g), queue: queueName(0), class: low, min: 2, size: 2, asks: amounts(int64(65+g%pendingClasses), 1, 0)})
	}
	return w
}

// arrivingGang is the number of pods of each gang that arrives.
const arrivingGang = 16

func gangArrives(w, update *fixture, i int) {
	update.clock = w.clock.Add(time.Duration(i+1) * time.Hour)
	update.add(job{name: fmt.Sprintf("small-%d", i), queue: queueName(0), class: low, min: arrivingGang, size: arrivingGang})
}

// eventDelay is how long an event takes at most from a fake client to the scheduler.
const eventDelay = 300 * time.Millisecond

// run runs cycles one by one. Of those after a change, the last is measured.
func (c wholeCycles) run(ctx context.Context, w *fixture) (cost, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	pods, groups := watch.NewFakeWithChanSize(64, false), watch.NewFakeWithChanSize(16, false)
	took := newCost()
	s, err := newScheduler(w, nil, prometheus.NewRegistry(), func(kube *fake.Clientset, batch *batchfake.Clientset, policy *conf.Configuration) {
		policy.StarvationAfter = c.starvationAfter
		kube.PrependWatchReactor("pods", func(clienttesting.Action) (bool, watch.Interface, error) { return true, pods, nil })
		batch.PrependWatchReactor("podgroups", func(clienttesting.Action) (bool, watch.Interface, error) { return true, groups, nil })
	})
	if err != nil {
		return took, err
	}
	if err := s.Start(ctx); err != nil {
		return took, err
	}
	runtime.GC()
	took.measure("first", func() { s.RunOnce(ctx) })
	var changed cost
	for i := range 5 {
		c.send(w, pods, groups, i)
		time.Sleep(eventDelay)
		runtime.GC()
		changed = newCost()
		changed.measure(c.name, func() { s.RunOnce(ctx) })
	}
	if changed.allocations[c.name] < 50 {
		return took, errors.New("no session has run")
	}
	took.times[c.name], took.allocations[c.name] = changed.times[c.name], changed.allocations[c.name]
	took.measure("again", func() { s.RunOnce(ctx) })
	return took, nil
}

// send shows the change to the informers.
func (c wholeCycles) send(w *fixture, pods, groups *watch.FakeWatcher, i int) {
	update := &fixture{}
	c.before(w, update, i)
	for _, group := range update.groups {
		group.ResourceVersion = "2"
		groups.Modify(group)
	}
	for _, pod := range update.pods {
		pod.ResourceVersion = "2"
		pods.Modify(pod)
	}
}
