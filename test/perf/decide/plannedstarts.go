// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
)

const (
	plannedGang    = 512
	plannedClasses = 20 // of the jobs behind the gang
)

// easy is EASY backfilling.
func easy() conf.Reservations {
	return conf.Reservations{Depth: 1, Total: 8, Window: 7 * 24 * time.Hour, Margin: 30 * time.Second}
}

// plannedStarts are full clusters where all pods have an end, with one gang whose start is planned: alone, and with jobs that
// fit on what is idle, and would delay the gang; and D1 with the policy, where no gang has to wait.
func plannedStarts(nodes, jobs int) []benchmark {
	one := func(name, about string, most float64, build func() *fixture) benchmark {
		return benchmark{
			name: "planned/" + name, about: about, reservations: easy(), build: build,
			cycles: []cycle{
				{name: "first", want: outcome{}, limits: []limit{{name: "cycle"}}},
				{
					name: "ended", arrives: podEndsAnywhere, again: 9, want: outcome{},
					limits: []limit{{name: "cycle", most: most}, {name: "allocations", unit: allocations}},
				},
				{name: "again", want: outcome{}, limits: []limit{{name: "cycle", most: 0.2}}},
			},
		}
	}
	d1 := gangs(nodes)[0]
	d1.name, d1.about, d1.reservations = "planned/D1", "D1 with planned starts, where all gangs fit", easy()
	return []benchmark{
		one("gang", "the start of one gang of 512 is planned by the ends of 20 pods on each node, and one pod ends", 3, func() *fixture {
			return plannedFixture(newFixture(nodes), 0, "")
		}),
		one("block", "the same, and the gang requires one block of 320 nodes", 3, func() *fixture {
			return plannedFixture(newRacks(nodes), 0, blockLevel)
		}),
		one("rack", "the same, and the gang is one of 32 that requires one rack of 16 nodes", 3, func() *fixture {
			return plannedFixture(newRacks(nodes), 0, rackLevel)
		}),
		one("segments", "one gang of 512 that requires one block, and of which each segment of 32 requires one rack", 10, func() *fixture {
			return plannedFixture(newRacks(nodes), 0, segmentLevel)
		}),
		one("backfill", "the start of the gang of 512 is planned, and jobs of 20 classes fit only on what is reserved, and would delay the gang", 10, func() *fixture {
			return plannedFixture(newFixture(nodes), jobs, "")
		}),
		d1,
	}
}

// segmentLevel stands for one block, and one rack for each segment.
const segmentLevel = "segments"

// plannedFixture fills the nodes of a fixture, and adds the gang, which may require a topology level, and so many jobs.
func plannedFixture(w *fixture, jobs int, level string) *fixture {
	nodes := len(w.nodes)
	for q := range pendingQueues {
		w.addQueue(queueName(q), 1)
	}
	limited := func(j job, limit time.Duration) {
		w.add(j)
		w.groups[len(w.groups)-1].Spec.MaximumExecutionTimeSeconds = ptr.To(int32(limit / time.Second))
	}
	begun := func(pod *v1.Pod) {
		scheduled := v1.PodCondition{Type: v1.PodScheduled, Status: v1.ConditionTrue, LastTransitionTime: pod.CreationTimestamp}
		pod.Status.StartTime, pod.Status.Conditions = &metav1.Time{Time: pod.CreationTimestamp.Time}, []v1.PodCondition{scheduled}
	}
	for g := range nodes * podsPerNode / 10 {
		limited(job{
			name: fmt.Sprintf("full-%05d", g), queue: queueName(g % pendingQueues), class: low, min: 10, size: 10, asks: amounts(3, 25, 0), alter: begun,
		}.running(), 48*time.Hour+time.Duration(g*7919%1000)*time.Minute)
	}
	size, where, cpus := min(plannedGang, nodes), (func(*v1.Pod))(nil), int64(20)
	if jobs > 0 { // they fit on nothing but what is reserved for the gang, which needs whole nodes
		cpus = 64
		for _, n := range w.nodes[:size] {
			n.Labels[poolLabel] = poolName(0)
		}
		where = inPool(poolName(0))
	}
	if level == rackLevel {
		size = min(2*rackNodes, nodes)
	}
	gang := job{name: "gang", queue: queueName(0), class: low, min: size, size: size, asks: amounts(cpus, 64, 0), alter: where}
	if level == segmentLevel {
		segment := min(2*rackNodes, size)
		gang.min = 1
		addInSegments(w, gang, int32(size/segment), int32(segment), blockLevel, rackLevel)
		w.groups[len(w.groups)-1].Spec.MaximumExecutionTimeSeconds = ptr.To(int32(3600))
		return w
	}
	limited(gang, time.Hour)
	if level != "" {
		w.groups[len(w.groups)-1].Spec.TopologyConstraint = &v1alpha1.TopologyConstraint{RequiredTopologyLevel: level}
	}
	for i := range jobs {
		class := i % plannedClasses
		limited(job{
			name: fmt.Sprintf("job-%05d", i), queue: queueName(0), class: low, min: 1, size: 1, asks: amounts(4, int64(1+class), 0), alter: where,
		}, 500*time.Hour)
	}
	return w
}
