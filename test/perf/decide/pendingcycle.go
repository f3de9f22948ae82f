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

	config "github.com/batch-scheduler/batch-scheduler/pkg/apis/config/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
)

// reportedPending measures the cycles of D9 in the whole scheduler with fake clients, with reports and metrics: without
// reservations for gangs that have waited long, and with those of the built-in policy.
func reportedPending(nodes, gangs int) []benchmark {
	measured := func(name, about string, starvationAfter time.Duration, most float64) benchmark {
		return benchmark{
			name: name, about: about,
			build: func() *fixture { return pendingFixture(nodes, gangs) },
			whole: func(ctx context.Context, w *fixture) (cost, error) { return runPending(ctx, w, starvationAfter) },
			cycles: []cycle{{limits: []limit{
				{name: "first/cycle", steps: []string{"first"}},
				{name: "freed/cycle", steps: []string{"freed"}, most: most},
				{name: "freed/allocations", steps: []string{"freed"}, unit: allocations},
				{name: "again/cycle", steps: []string{"again"}, most: 0.2},
			}}},
		}
	}
	return []benchmark{
		measured("D9/reported", "D9: the same cycles with reports and metrics", 0, 10),
		measured("D9/starving", "D9: the same, where resources are reserved for gangs that have waited long", config.DefaultStarvationAfter, 0),
	}
}

// eventDelay is how long an event takes at most from a fake client to the scheduler.
const eventDelay = 300 * time.Millisecond

// runPending runs cycles one by one. Of those in which a pod has ended, the last is measured.
func runPending(ctx context.Context, w *fixture, starvationAfter time.Duration) (cost, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	pods := watch.NewFakeWithChanSize(16, false)
	took := newCost()
	s, err := newScheduler(w, nil, func(kube *fake.Clientset, policy *conf.Configuration) {
		policy.StarvationAfter = starvationAfter
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
