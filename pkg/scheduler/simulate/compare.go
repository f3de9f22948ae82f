// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"cmp"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Comparison compares the results of two configurations for the same snapshot. Its JSON is the output of "simulate
// --compare".
type Comparison struct {
	First       *Result     `json:"first"`
	Second      *Result     `json:"second"`
	Differences Differences `json:"differences"`
}

// Differences lists what differs between the results. All lists are sorted, and none is null.
type Differences struct {
	// Starts are groups of which the two configurations start a different number of pods, the greatest difference
	// first.
	Starts []Start `json:"starts"`
	// EvictedByFirst and EvictedBySecond are pods that only one of the two evicts.
	EvictedByFirst  []Eviction `json:"evictedByFirst"`
	EvictedBySecond []Eviction `json:"evictedBySecond"`
	// Shares are the allocations of queues at the end.
	Shares []Share `json:"shares"`
}

// Start is the number of pods of a group that run at the end and did not at the beginning.
type Start struct {
	Group  string `json:"group"`
	Queue  string `json:"queue"`
	First  int    `json:"first"`
	Second int    `json:"second"`
}

// Share is the allocation of a queue of one resource at the end.
type Share struct {
	Queue    string            `json:"queue"`
	Resource v1.ResourceName   `json:"resource"`
	First    resource.Quantity `json:"first"`
	Second   resource.Quantity `json:"second"`
}

// Compare compares two results of one snapshot.
func Compare(first, second *Result) *Comparison {
	return &Comparison{First: first, Second: second, Differences: Differences{
		Starts:          differentStarts(first.Started(), second.Started()),
		EvictedByFirst:  onlyIn(first.Evicted, second.Evicted),
		EvictedBySecond: onlyIn(second.Evicted, first.Evicted),
		Shares:          differentShares(first, second),
	}}
}

// None reports whether both results are equal.
func (d *Differences) None() bool {
	return len(d.Starts)+len(d.EvictedByFirst)+len(d.EvictedBySecond)+len(d.Shares) == 0
}

// Started is a group with its pods that were bound and still have a node at the end.
type Started struct {
	Group, Queue string
	Pods         int
	Nodes        []string // sorted, each once
}

// Started returns the bound pods by group.
func (r *Result) Started() []Started {
	lost := map[string]int{} // the last cycle in which a pod was evicted
	for _, e := range r.Evicted {
		lost[e.Pod] = max(lost[e.Pod], e.Cycle)
	}
	var list []Started
	for _, b := range r.Bound { // by group
		if lost[b.Pod] >= b.Cycle {
			continue
		}
		if n := len(list); n == 0 || list[n-1].Group != b.Group || list[n-1].Queue != b.Queue {
			list = append(list, Started{Group: b.Group, Queue: b.Queue})
		}
		s := &list[len(list)-1]
		s.Pods++
		s.Nodes = append(s.Nodes, b.Node)
	}
	for i := range list {
		slices.Sort(list[i].Nodes)
		list[i].Nodes = slices.Compact(list[i].Nodes)
	}
	return list
}

func differentStarts(first, second []Started) []Start {
	type group struct{ name, queue string }
	starts := map[group]Start{}
	for _, s := range first {
		starts[group{s.Group, s.Queue}] = Start{Group: s.Group, Queue: s.Queue, First: s.Pods}
	}
	for _, s := range second {
		start := starts[group{s.Group, s.Queue}]
		start.Group, start.Queue, start.Second = s.Group, s.Queue, s.Pods
		starts[group{s.Group, s.Queue}] = start
	}
	list := slices.DeleteFunc(slices.Collect(maps.Values(starts)), func(s Start) bool { return s.First == s.Second })
	change := func(s Start) int { return max(s.First-s.Second, s.Second-s.First) }
	slices.SortFunc(list, func(a, b Start) int {
		return cmp.Or(cmp.Compare(change(b), change(a)), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Queue, b.Queue))
	})
	return append([]Start{}, list...)
}

// onlyIn returns evictions of pods that are not in others.
func onlyIn(evictions, others []Eviction) []Eviction {
	also := map[string]bool{}
	for _, e := range others {
		also[e.Pod] = true
	}
	list := []Eviction{}
	for _, e := range evictions {
		if !also[e.Pod] {
			list = append(list, e)
		}
	}
	return list
}

func differentShares(first, second *Result) []Share {
	list := []Share{}
	for i, a := range first.Queues { // both have all queues of the snapshot, by name
		b := second.Queues[i]
		for _, name := range named(a.AllocatedAfter, b.AllocatedAfter) {
			one, other := a.AllocatedAfter[name], b.AllocatedAfter[name]
			if one.Cmp(other) != 0 {
				list = append(list, Share{a.Name, name, one, other})
			}
		}
	}
	return list
}
