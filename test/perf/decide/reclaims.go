package main

import "fmt"

// reclaims are full clusters in which a gang of another queue asks for whole nodes.
func reclaims(nodes int) []benchmark {
	return []benchmark{reclaimBig(nodes), reclaimNoShares(nodes), reclaimNoNodes(nodes)}
}

// wholeNodes is a gang of pods that take all GPUs of a node each.
func wholeNodes(queue string, pods int) job {
	return job{name: "gang", queue: queue, class: low, min: pods, size: pods, gpus: gpusPerNode}
}

func reclaimBig(nodes int) benchmark {
	pods := nodes / 4
	return benchmark{
		name: "reclaim-big", about: "a gang takes back a quarter of the cluster from a queue that has borrowed all of it", evicts: true,
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

// reclaimNoShares has four queues that hold a quarter more than they deserve each, which together
// is a little less than the gang asks for. Each has nodes of its own, so nodes are no obstacle.
func reclaimNoShares(nodes int) benchmark {
	return benchmark{
		name: "reclaim-no/shares", about: "a gang asks for a little more than all others have borrowed", evicts: true,
		build: func() *fixture {
			w := newFixture(nodes)
			w.addQueue("taker", 4)
			victimQueues := []string{"a", "b", "c", "d"}
			for _, q := range victimQueues {
				w.addQueue(q, 3)
			}
			w.addQueue("other", 1)
			for i := range w.gpus() {
				w.add(single(fmt.Sprintf("low-%05d", i), victimQueues[i%len(victimQueues)], low).running())
			}
			w.add(wholeNodes("taker", w.gpus()/4/gpusPerNode+1))
			return w
		},
		cycles: threeNoes(),
	}
}

// reclaimNoNodes has a pod on each node that must not be evicted.
func reclaimNoNodes(nodes int) benchmark {
	return benchmark{
		name: "reclaim-no/nodes", about: "enough was borrowed, but a pod on each node must stay, and the gang needs whole nodes", evicts: true,
		build: func() *fixture {
			w := newFixture(nodes)
			w.addQueue("taker", 1)
			w.addQueue("a", 1)
			w.addQueue("other", 1)
			for i := range nodes {
				w.add(single(fmt.Sprintf("critical-%05d", i), "a", critical).running())
			}
			for i := range w.gpus() - nodes {
				w.add(single(fmt.Sprintf("low-%05d", i), "a", low).running())
			}
			w.add(wholeNodes("taker", nodes/4))
			return w
		},
		cycles: threeNoes(),
	}
}

// threeNoes asks a second time when nothing has changed but that the first pod of another gang has
// come, and a third time when a small pod has come for which there is room, so that nothing of what
// was found out may count any more.
func threeNoes() []cycle {
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
		{name: "again", arrives: func(_, news *fixture, _ int) { news.add(incomplete) }, want: outcome{}, limits: limits(1)},
		{name: "changed", arrives: func(_, news *fixture, _ int) { news.add(small) }, want: outcome{"other low": {bound: 1}}, limits: limits(20)},
	}
}
