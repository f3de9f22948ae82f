package main

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// converged are large clusters in which little happens, or nothing can.
func converged(runningNodes, fullNodes int) []benchmark {
	return []benchmark{
		running(runningNodes),
		infeasible(fullNodes, "D4/hopeless", "D4: gangs of 20 classes wait in a full cluster", fleetShapes, 20, 0.2, 5),
		infeasible(fullNodes, "D4/own-classes", "D4: the same where every gang is a class of its own", hopelessGangs, 200, 0, 0),
	}
}

// running has ten running pods a node, and nothing to do: then one of them ends.
func running(nodes int) benchmark {
	return benchmark{
		name: "D3/running", about: "D3: nothing waits, and one pod of ten a node has ended",
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

// podEnds lets one pod after the other come to its end, each of another gang.
func podEnds(w, news *fixture, i int) { news.pods = append(news.pods, ended(w.pods[i*10])) }

const hopelessGangs = 200

// infeasible is a cluster full of gangs of eight, evenly divided between the queues, in which gangs of 50 of
// the same priority wait. In the second cycle nothing has changed, so that the scheduler opens no
// session. In the third a pod has come to its end, and one would fit.
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
			for g := range hopelessGangs {
				asks := amounts(0, 32, 1)
				asks[v1.ResourceCPU] = *resource.NewMilliQuantity(int64(2000+g*classes/hopelessGangs), resource.DecimalSI)
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
