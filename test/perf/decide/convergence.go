// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// converged are large clusters with little or nothing to decide.
func converged(runningNodes, fullNodes int) []benchmark {
	return []benchmark{
		running(runningNodes),
		infeasible(fullNodes, "D4/infeasible", "D4: gangs of 20 equivalence classes are pending in a full cluster", fleetSignatures, 20, 0.2, 5),
		infeasible(fullNodes, "D4/own-classes", "D4: the same where every gang has its own equivalence class", infeasibleGangs, 200, 0, 0),
	}
}

// running has ten running pods per node and nothing to do; then one pod ends.
func running(nodes int) benchmark {
	return benchmark{
		name: "D3/running", about: "D3: no pod is pending, and one pod ends; ten pods per node",
		build: func() *fixture {
			w := newFixture(nodes)
			for q := range fleetQueues {
				w.addQueue(queueName(q), 1)
			}
			for g := range nodes {
				w.add(job{name: fmt.Sprintf("gang-%05d", g), queue: queueName(g % fleetQueues), class: low, min: 10, size: 10, asks: oneOfFew(g)}.running())
			}
			return w
		},
		cycles: []cycle{
			{name: "first", want: outcome{}, limits: []limit{{name: "cycle"}}},
			{
				name: "changed", arrives: podEnds, again: 19, want: outcome{},
				limits: []limit{{name: "cycle", most: 100, unit: microseconds}, {name: "allocations", unit: allocations}},
			},
		},
	}
}

// podEnds ends one pod per cycle, each of another gang.
func podEnds(w, update *fixture, i int) { update.pods = append(update.pods, ended(w.pods[i*10])) }

const infeasibleGangs = 200

// infeasible is a cluster full of gangs of eight, evenly distributed over the queues, with pending gangs of 50 of the
// same priority. In the second cycle nothing has changed, so the scheduler opens no session. In the third cycle a pod
// has ended, and a pod of a gang would fit.
func infeasible(nodes int, name, about string, classes int, first, again, freed float64) benchmark {
	return benchmark{
		name: name, about: about,
		build: func() *fixture {
			w := newFixture(nodes)
			for q := range fleetQueues {
				w.addQueue(queueName(q), 1)
			}
			for g := range nodes {
				w.add(job{name: fmt.Sprintf("full-%05d", g), queue: queueName(g % fleetQueues), class: low, min: gpusPerNode, size: gpusPerNode, gpus: 1}.running())
			}
			for g := range infeasibleGangs {
				asks := amounts(0, 32, 1)
				asks[v1.ResourceCPU] = *resource.NewMilliQuantity(int64(2000+g*classes/infeasibleGangs), resource.DecimalSI)
				w.add(job{name: fmt.Sprintf("gang-%05d", g), queue: queueName(g % fleetQueues), class: low, min: fleetGang, size: fleetGang, asks: asks})
			}
			return w
		},
		cycles: []cycle{
			{name: "first", want: outcome{}, limits: []limit{{name: "cycle", most: first}}},
			{name: "again", want: outcome{}, limits: []limit{{name: "cycle", most: again}}},
			{name: "freed", arrives: podEnds, want: outcome{}, limits: []limit{{name: "cycle", most: freed}}},
		},
	}
}
