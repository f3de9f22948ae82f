// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	pendingQueues  = 20
	pendingClasses = 100
	pendingPools   = 10 // of nodes, each with its own classes
	pendingGang    = 4
	podsPerNode    = 20

	poolLabel = "pool" // of nodes
)

// pending is a full cluster with many pending gangs of few equivalence classes. Each class selects one pool of nodes.
// A pod that ends leaves resources for one pod of half of the classes of its pool, and so for no gang.
func pending(nodes, gangs int) benchmark {
	return benchmark{
		name: "D9/backlog", about: "D9: gangs of 100 classes and 20 queues are pending in a full cluster, and one pod ends; 20 pods per node",
		build: func() *fixture { return pendingFixture(nodes, gangs) },
		cycles: []cycle{
			{name: "first", want: outcome{}, limits: []limit{{name: "cycle"}}},
			{
				name: "freed", arrives: podEndsAnywhere, again: 9, want: outcome{},
				limits: []limit{{name: "cycle", most: 3}, {name: "allocations", unit: allocations}},
			},
			{name: "again", want: outcome{}, limits: []limit{{name: "cycle", most: 0.2}}},
		},
	}
}

func pendingFixture(nodes, gangs int) *fixture {
	w := newFixture(nodes)
	for i, n := range w.nodes {
		n.Labels[poolLabel] = poolName(i)
	}
	for q := range pendingQueues {
		w.addQueue(queueName(q), 1)
	}
	for g := range nodes * podsPerNode / 10 {
		w.add(job{name: fmt.Sprintf("full-%05d", g), queue: queueName(g % pendingQueues), class: low, min: 10, size: 10, asks: amounts(3, 25, 0)}.running())
	}
	for g := range gangs {
		class := g % pendingClasses
		w.add(job{
			name: fmt.Sprintf("gang-%05d", g), queue: queueName(g / pendingClasses % pendingQueues), class: low, min: pendingGang, size: pendingGang,
			asks: pendingRequest(class), alter: inPool(poolName(class)),
		})
	}
	return w
}

// pendingRequest returns what a pod of a class requests: more than a full node has left, and for half of the classes no
// more than it has when one pod has ended.
func pendingRequest(class int) v1.ResourceList {
	request := amounts(0, 32, 0)
	request[v1.ResourceCPU] = *resource.NewMilliQuantity(6550+int64(class/pendingPools)*100, resource.DecimalSI)
	return request
}

func poolName(i int) string { return fmt.Sprintf("pool-%d", i%pendingPools) }

func inPool(pool string) func(*v1.Pod) {
	return func(pod *v1.Pod) { pod.Spec.NodeSelector = map[string]string{poolLabel: pool} }
}

// podEndsAnywhere ends one pod per cycle, each of another gang, queue and node.
func podEndsAnywhere(w, update *fixture, i int) {
	update.pods = append(update.pods, ended(w.pods[i*11]))
}
