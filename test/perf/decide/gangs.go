// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/plugins/fragmentation"
	"github.com/batch-scheduler/batch-scheduler/test/perf/figures"
)

const (
	fleetQueues     = 4
	fleetSignatures = 20
	fleetBlocks     = 50 // of nodes, distinguished by the label "block"
)

// fleet is an empty cluster with ten pending pods per node, in gangs of 50 that all fit.
type fleet struct{ nodes, gangs int }

// fleetOf has one gang for every five nodes.
func fleetOf(nodes int) fleet { return fleet{nodes, nodes / 5} }

const fleetGang = 50

func (f fleet) pods() int { return f.gangs * fleetGang }

// build creates the gangs; asks and alter return the requests and the changes of the g-th gang.
func (f fleet) build(asks func(g int) v1.ResourceList, alter func(g int) func(*v1.Pod)) *fixture {
	w := newFixture(f.nodes)
	for i, n := range w.nodes {
		n.Labels["block"] = strconv.Itoa(i % fleetBlocks)
	}
	for q := range fleetQueues {
		w.addQueue(queueName(q), 1)
	}
	for g := range f.gangs {
		j := job{name: fmt.Sprintf("gang-%05d", g), queue: queueName(g % fleetQueues), class: low, min: fleetGang, size: fleetGang, asks: asks(g)}
		if alter != nil {
			j.alter = alter(g)
		}
		w.add(j)
	}
	return w
}

// want is the outcome with all pods bound.
func (f fleet) want() outcome {
	want := outcome{}
	for g := range f.gangs {
		key := queueName(g%fleetQueues) + " " + low
		want[key] = want[key].plus(counts{bound: fleetGang})
	}
	return want
}

// oneOfFew gives gangs one of a few signatures; each queue has gangs of all of them.
func oneOfFew(g int) v1.ResourceList {
	signature := int64(g / fleetQueues % fleetSignatures)
	return amounts(1+signature%5, 4+4*(signature/5), (signature%4)/3)
}

// itsOwn gives each gang a unique signature.
func itsOwn(g int) v1.ResourceList {
	list := amounts(0, 8, 0)
	list[v1.ResourceCPU] = *resource.NewMilliQuantity(int64(2000+g), resource.DecimalSI)
	return list
}

// inItsOwnBlocks restricts each gang to three of the blocks.
func inItsOwnBlocks(g int) func(*v1.Pod) {
	block := func(i int) string { return strconv.Itoa(i % fleetBlocks) }
	values := []string{block(g), block(g + 1 + g/fleetBlocks), block(g + fleetBlocks/2)}
	affinity := &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{
		NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{
			{Key: "block", Operator: v1.NodeSelectorOpIn, Values: values},
		}}},
	}}}
	return func(pod *v1.Pod) { pod.Spec.Affinity = affinity }
}

// gangs are the benchmarks of many gangs on an empty cluster.
func gangs(nodes int) []benchmark {
	f := fleetOf(nodes)
	return []benchmark{
		{
			name: "D1/gangs", about: "D1: gangs of 50 fill an empty cluster, ten pods per node, with 20 signatures and 4 queues",
			build: func() *fixture { return f.build(oneOfFew, nil) },
			cycles: []cycle{{want: f.want(), limits: []limit{
				{name: "cycle", most: 500},
				{name: "allocations", most: 2, unit: allocations, per: f.pods()},
			}}},
		},
		{
			name: "D1/fragmentation", about: "D1 with the plugin fragmentation",
			plugin: fragmentation.Name, build: func() *fixture { return f.build(oneOfFew, nil) },
			cycles: []cycle{{want: f.want(), limits: []limit{
				{name: "cycle"},
				{name: "allocations", most: 2, unit: allocations, per: f.pods()},
			}}},
		},
		{
			name: "D2/own-classes", about: "D2: the same where every gang has its own signature and node affinity",
			build:  func() *fixture { return f.build(itsOwn, inItsOwnBlocks) },
			cycles: []cycle{{want: f.want(), limits: []limit{{name: "cycle", most: 2000}}}},
		},
	}
}

// growing is D1 in clusters of growing size: the cost per pod must not depend on the size.
func growing(sizes ...int) []benchmark {
	var list []benchmark
	for _, nodes := range sizes {
		f := fleetOf(nodes)
		list = append(list, benchmark{
			name: growthName(nodes), about: fmt.Sprintf("D6: D1 on %d nodes", nodes),
			build: func() *fixture { return f.build(oneOfFew, nil) },
			cycles: []cycle{{want: f.want(), limits: []limit{
				{name: "cost", most: 10, unit: microseconds, per: f.pods()},
			}}},
		})
	}
	return list
}

// fragmentationCost compares D1 with the plugin fragmentation and without, if both were measured.
func fragmentationCost(list []figures.Figure) []figures.Figure {
	value := func(name string) float64 {
		i := slices.IndexFunc(list, func(f figures.Figure) bool { return f.Name == name })
		if i < 0 {
			return 0
		}
		return list[i].Value
	}
	with, without := value("D1/fragmentation/cycle"), value("D1/gangs/cycle")
	if with == 0 || without == 0 {
		return nil
	}
	most := 1.25
	return []figures.Figure{{Name: "D1/fragmentation/ratio", Value: with / without, Unit: "times", Bound: &most, OK: with/without <= most}}
}

// growthCosts returns the figures of growing, the smallest cluster first.
func growthCosts(list []figures.Figure) []figures.Figure {
	var costs []figures.Figure
	for _, f := range list {
		if strings.HasPrefix(f.Name, "D6/") && strings.HasSuffix(f.Name, "/cost") {
			costs = append(costs, f)
		}
	}
	return costs
}

func growthName(nodes int) string { return fmt.Sprintf("D6/%05d-nodes", nodes) }

// growth compares the cost per pod in the largest cluster with that in the smallest, if both were measured.
func growth(list []figures.Figure) []figures.Figure {
	costs := growthCosts(list)
	if len(costs) < 2 {
		return nil
	}
	most := 2.0
	f := figures.Figure{Name: "D6/growth", Value: costs[len(costs)-1].Value / costs[0].Value, Unit: "times", Bound: &most}
	f.OK = f.Value <= most
	return []figures.Figure{f}
}
