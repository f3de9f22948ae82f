// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strconv"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

const (
	rackNodes  = 16
	blockRacks = 20
	rackGang   = 16

	blockLevel = "block"
	rackLevel  = "rack"
)

// topologies are the benchmarks of gangs with a topology constraint.
func topologies(nodes, blockGang, planNodes, segmentNodes, segments int) []benchmark {
	return []benchmark{
		rackGangs(nodes), gangInBlock(nodes, blockGang), infeasibleRacks(nodes, false), infeasibleRacks(nodes, true), planForRack(planNodes),
		segmentsInRacks(segmentNodes, segments),
	}
}

// newRacks returns a fixture with equal nodes in racks and blocks.
func newRacks(nodes int) *fixture {
	w := newFixture(nodes)
	for i, n := range w.nodes {
		n.Labels[rackLevel] = "r" + strconv.Itoa(i/rackNodes)
		n.Labels[blockLevel] = "b" + strconv.Itoa(i/rackNodes/blockRacks)
	}
	w.topologies = []*v1alpha1.Topology{{
		ObjectMeta: w.meta("default"),
		Spec:       v1alpha1.TopologySpec{Levels: []v1alpha1.TopologyLevel{{Name: blockLevel, NodeLabel: blockLevel}, {Name: rackLevel, NodeLabel: rackLevel}}},
	}}
	w.topologies[0].Namespace = ""
	return w
}

// addConstrained adds a job whose pods must be in one domain of the required level, and in few of the preferred one.
func addConstrained(w *fixture, j job, required, preferred string) {
	w.add(j)
	w.groups[len(w.groups)-1].Spec.TopologyConstraint = &v1alpha1.TopologyConstraint{RequiredTopologyLevel: required, PreferredTopologyLevel: preferred}
}

// rackGangs is an empty cluster with a gang for every five nodes, each in one rack: all fit.
func rackGangs(nodes int) benchmark {
	gangs := nodes / 5
	want := outcome{}
	for g := range gangs {
		key := queueName(g%fleetQueues) + " " + low
		want[key] = want[key].plus(counts{bound: rackGang})
	}
	return benchmark{
		name: "TP1/racks", about: "TP1: gangs of 16 that each require one rack start in an empty cluster, with 20 signatures and 4 queues",
		build: func() *fixture {
			w := newRacks(nodes)
			for q := range fleetQueues {
				w.addQueue(queueName(q), 1)
			}
			for g := range gangs {
				addConstrained(w, job{name: fmt.Sprintf("gang-%05d", g), queue: queueName(g % fleetQueues), class: low, min: rackGang, size: rackGang, asks: oneOfFew(g)}, rackLevel, "")
			}
			return w
		},
		cycles: []cycle{{want: want, limits: []limit{
			{name: "cycle", most: 600},
			{name: "allocations", unit: allocations, per: gangs * rackGang},
		}}},
	}
}

// gangInBlock is one gang of whole nodes in an empty cluster.
func gangInBlock(nodes, pods int) benchmark {
	return benchmark{
		name: "TP2/block", about: "TP2: one gang that requires one block and prefers one rack starts in an empty cluster",
		build: func() *fixture {
			w := newRacks(nodes)
			w.addQueue("a", 1)
			addConstrained(w, job{name: "gang", queue: "a", class: low, min: pods, size: pods, gpus: gpusPerNode / 2}, blockLevel, rackLevel)
			return w
		},
		cycles: []cycle{{want: outcome{"a " + low: {bound: pods}}, limits: []limit{{name: "cycle", most: 5}, {name: "allocations", unit: allocations}}}},
	}
}

// infeasibleRacks is a full cluster with gangs that each require one rack, as a whole or for each of two segments. A pod that
// ends leaves resources for one pod of them, and so for no gang.
func infeasibleRacks(nodes int, segments bool) benchmark {
	const gangs = 200
	name, what := "infeasible", "200 gangs that each require one rack"
	if segments { // these gangs have no job class, so that each of them is tried
		name, what = "segments", "200 gangs of two segments that each require one rack"
	}
	return benchmark{
		name: "TP3/" + name, about: "TP3: " + what + " wait in a full cluster, and one pod ends",
		build: func() *fixture {
			w := newRacks(nodes)
			for q := range fleetQueues {
				w.addQueue(queueName(q), 1)
			}
			for i := range w.gpus() / gpusPerNode * 2 {
				w.add(job{name: fmt.Sprintf("full-%05d", i), queue: queueName(i % fleetQueues), class: low, min: 1, size: 1, gpus: gpusPerNode / 2}.running())
			}
			for g := range gangs {
				j := job{name: fmt.Sprintf("gang-%05d", g), queue: queueName(g % fleetQueues), class: low, min: rackGang, size: rackGang, gpus: 1 + int64(g/fleetQueues%4)}
				if segments {
					j.size *= 2
					addInSegments(w, j, 2, rackGang, "", rackLevel)
				} else {
					addConstrained(w, j, rackLevel, "")
				}
			}
			return w
		},
		cycles: []cycle{
			{name: "first", want: outcome{}, limits: []limit{{name: "cycle", most: 20}, {name: "allocations", unit: allocations}}},
			{
				name: "freed", arrives: podEndsAnywhere, again: 4, want: outcome{},
				limits: []limit{{name: "cycle", most: 5}, {name: "allocations", unit: allocations}},
			},
			{name: "again", want: outcome{}, limits: []limit{{name: "cycle", most: 0.2}}},
		},
	}
}

// segmentsInRacks is one gang in an empty cluster, whose pods must be in one block, and those of each segment in one rack.
func segmentsInRacks(nodes, segments int) benchmark {
	pods := segments * segmentPods
	return benchmark{
		name: "TP5/segments", about: fmt.Sprintf("TP5: one gang of %d segments of %d pods starts in one block of an empty cluster, each segment in one rack", segments, segmentPods),
		build: func() *fixture {
			w := newRacks(nodes)
			w.addQueue("a", 1)
			addInSegments(w, job{name: "gang", queue: "a", class: low, min: 1, size: pods, gpus: 1}, int32(segments), segmentPods, blockLevel, rackLevel)
			return w
		},
		cycles: []cycle{{want: outcome{"a " + low: {bound: pods}}, limits: []limit{{name: "cycle", most: 20}, {name: "allocations", unit: allocations}}}},
	}
}

// addInSegments adds a job of segments whose pods must be in one domain of a level, and those of each segment in one of an inner
// level.
func addInSegments(w *fixture, j job, minimum, size int32, required, inner string) {
	addSegments(w, j, minimum, size)
	spec := &w.groups[len(w.groups)-1].Spec
	if required != "" {
		spec.TopologyConstraint = &v1alpha1.TopologyConstraint{RequiredTopologyLevel: required}
	}
	spec.SubGroups[0].SegmentTopologyConstraint = &v1alpha1.RequiredTopology{RequiredTopologyLevel: inner}
}

// planForRack is a full cluster where a gang of high priority requires all nodes of one rack. A third of the nodes have pods
// of low priority: all nodes of each sixth rack, and three or four nodes of the others, where no plan can free the rack.
func planForRack(nodes int) benchmark {
	return benchmark{
		name: "TP4/plan", about: "TP4: a gang of high priority requires one rack, where pods of low priority hold a third of the nodes", evicts: true,
		build: func() *fixture {
			w := newRacks(nodes)
			w.addQueue("a", 1)
			for i := range nodes {
				class, rack := critical, i/rackNodes
				if rack%6 == 0 || (i+rack)%5 == 0 {
					class = low
				}
				w.add(single(fmt.Sprintf("full-%05d", i), "a", class).wholeNode().running())
			}
			addConstrained(w, job{name: "gang", queue: "a", class: high, min: rackGang, size: rackGang, gpus: gpusPerNode}, rackLevel, "")
			return w
		},
		cycles: []cycle{{
			want:   outcome{"a low": {victims: rackGang}, "a high": {pipelined: rackGang}},
			limits: []limit{{name: "cycle"}, {name: "preempt", steps: []string{"preempt"}, most: 20}, {name: "allocations", unit: allocations}},
		}},
	}
}

// wholeNode makes each pod request all GPUs of a node.
func (j job) wholeNode() job {
	j.gpus = gpusPerNode
	return j
}
