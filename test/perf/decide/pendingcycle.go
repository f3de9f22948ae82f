// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"runtime"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// reportedPending measures the cycles of D9 in the whole scheduler with fake clients: with reports and metrics.
func reportedPending(nodes, gangs int) benchmark {
	return benchmark{
		name: "D9/reported", about: "D9: the same cycles with reports to statuses and metrics",
		build: func() *fixture { return pendingFixture(nodes, gangs) }, whole: runPending,
		cycles: []cycle{{limits: []limit{
			{name: "first/cycle", steps: []string{"first"}},
			{name: "freed/cycle", steps: []string{"freed"}, most: 6},
			{name: "freed/allocations", steps: []string{"freed"}, unit: allocations},
			{name: "again/cycle", steps: []string{"again"}, most: 0.2},
		}}},
	}
}

// eventDelay is how long an event takes at most from a fake client to the scheduler.
const eventDelay = 300 * time.Millisecond

// runPending runs cycles one by one. Of those in which a pod has ended, the last is measured.
func runPending(ctx context.Context, w *fixture) (cost, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	pods := watch.NewFakeWithChanSize(16, false)
	took := newCost()
	s, err := newScheduler(w, nil, func(kube *fake.Clientset) {
		kube.PrependWatchReactor("pods", func(clienttesting.Action) (bool, watch.Interface, error) { return true, pods, nil })
	})
	if err != nil {
		return took, err
	}
	if err := s.Start(ctx); err != nil {
		return took, err
	}
	runtime.GC()
	took.measure("first", func() { s.RunOnce(ctx) })
	var freed cost
	for i := range 5 {
		pods.Modify(newer(w, i))
		time.Sleep(eventDelay)
		runtime.GC()
		freed = newCost()
		freed.measure("freed", func() { s.RunOnce(ctx) })
	}
	if freed.allocations["freed"] < 50 {
		return took, errors.New("no session has run")
	}
	took.times["freed"], took.allocations["freed"] = freed.times["freed"], freed.allocations["freed"]
	took.measure("again", func() { s.RunOnce(ctx) })
	return took, nil
}

// newer returns an ended pod as podEndsAnywhere does.
func newer(w *fixture, i int) *v1.Pod {
	update := &fixture{}
	podEndsAnywhere(w, update, i)
	pod := update.pods[0]
	pod.ResourceVersion = "2"
	return pod
}
