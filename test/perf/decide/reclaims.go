// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

// reclaims are full clusters in which a gang of another queue requests whole nodes.
func reclaims(nodes int) []benchmark {
	return []benchmark{reclaimBig(nodes), reclaimNoShares(nodes), reclaimNoNodes(nodes)}
}

// wholeNodes is a gang whose pods request all GPUs of a node each.
func wholeNodes(queue string, pods int) job {
	return job{name: "gang", queue: queue, class: low, min: pods, size: pods, gpus: gpusPerNode}
}

func reclaimBig(nodes int) benchmark {
	pods := nodes / 4
	return benchmark{
		name: "reclaim-big", about: "a gang reclaims a quarter of the cluster from a queue that has borrowed all of it", evicts: true,
		build: func() *fixture {
			w := newFixture(nodes)
			w.addQueue("a", 1)
			w.addQueue("b", 1)
			for i := range w.gpus() {
				w.add(single(fmt.Sprintf("low-%05d", i), "a", low).running())
			}
			w.add(wholeNodes("b", pods))
			return w
		},
		cycles: []cycle{{
			want:   outcome{"a low": {victims: pods * gpusPerNode}, "b low": {pipelined: pods}},
			limits: []limit{{name: "cycle", most: 300}},
		}},
	}
}

// reclaimNoShares has four queues that each hold a quarter more than they deserve, which together is slightly less
// than the gang requests. Each queue has its own nodes, so nodes are not the limit.
func reclaimNoShares(nodes int) benchmark {
	return benchmark{
		name: "reclaim-no/shares", about: "a gang requests slightly more than all other queues have borrowed", evicts: true,
		build: func() *fixture {
			w := newFixture(nodes)
			w.addQueue("reclaimer", 4)
			victimQueues := []string{"a", "b", "c", "d"}
			for _, q := range victimQueues {
				w.addQueue(q, 3)
			}
			w.addQueue("other", 1)
			for i := range w.gpus() {
				w.add(single(fmt.Sprintf("low-%05d", i), victimQueues[i%len(victimQueues)], low).running())
			}
			w.add(wholeNodes("reclaimer", w.gpus()/4/gpusPerNode+1))
			return w
		},
		cycles: threeRejections(),
	}
}

// reclaimNoNodes has one pod per node that must not be evicted.
func reclaimNoNodes(nodes int) benchmark {
	return benchmark{
		name: "reclaim-no/nodes", about: "enough is borrowed, but one pod per node must not be evicted, and the gang needs whole nodes", evicts: true,
		build: func() *fixture {
			w := newFixture(nodes)
			w.addQueue("reclaimer", 1)
			w.addQueue("a", 1)
			w.addQueue("other", 1)
			for i := range nodes {
				w.add(single(fmt.Sprintf("critical-%05d", i), "a", critical).running())
			}
			for i := range w.gpus() - nodes {
				w.add(single(fmt.Sprintf("low-%05d", i), "a", low).running())
			}
			w.add(wholeNodes("reclaimer", nodes/4))
			return w
		},
		cycles: threeRejections(),
	}
}

// threeRejections runs a second cycle after the first pod of another gang has been created, and a third one after a
// small pod that fits has been created, which invalidates the negative plan cache.
func threeRejections() []cycle {
	limits := func(milliseconds float64) []limit {
		return []limit{
			{name: "evictions", steps: []string{"reclaim", "preempt"}, most: milliseconds},
			{name: "reclaim", steps: []string{"reclaim"}},
			{name: "cycle"},
		}
	}
	small := job{name: "small", queue: "other", class: low, min: 1, size: 1}
	incomplete := job{name: "incomplete", queue: "other", class: low, min: 2, size: 1}
	return []cycle{
		{name: "first", want: outcome{}, limits: limits(20)},
		{name: "again", arrives: func(_, update *fixture, _ int) { update.add(incomplete) }, want: outcome{}, limits: limits(1)},
		{name: "changed", arrives: func(_, update *fixture, _ int) { update.add(small) }, want: outcome{"other low": {bound: 1}}, limits: limits(20)},
	}
}
