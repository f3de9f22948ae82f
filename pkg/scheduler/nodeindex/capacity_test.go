// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package nodeindex

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model/modeltest"
)

// TestCouldFit has a gang of pods with 2 cpu, in a cluster of one node with 12 cpu unless the case says otherwise.
func TestCouldFit(t *testing.T) {
	t.Parallel()
	type result struct {
		Tasks  int64
		Enough bool
	}
	for name, test := range map[string]struct {
		nodes            []*v1.Node
		running, waiting int           // members
		change           func(*v1.Pod) // of running members
		each             func(*v1.Pod) // of all members
		others           []*v1.Pod
		minMember        int
		want             result
	}{
		"as many members as the capacity": {waiting: 6, minMember: 6, want: result{6, true}},
		"more members than the capacity":  {waiting: 7, minMember: 7, want: result{6, false}},
		"the minimum suffices":            {waiting: 7, minMember: 6, want: result{6, true}},
		"running members use capacity":    {running: 2, waiting: 6, minMember: 6, want: result{4, true}},
		"running members use capacity that the minimum needs": {
			running: 2, waiting: 6, minMember: 7, want: result{4, false},
		},
		"running members do not use the capacity of other nodes": {
			nodes:   []*v1.Node{Node("n", 4, labelled("broken", "yes")), Node("m", 8)},
			running: 2, waiting: 6, minMember: 6, want: result{4, true},
		},
		"members that are being deleted count as started": {
			running: 2, waiting: 4, change: beingDeleted, minMember: 6, want: result{4, true},
		},
		"members of queues use no capacity": {
			others: []*v1.Pod{Pod("other", 8, On("n"))}, waiting: 6, minMember: 6, want: result{6, true},
		},
		"foreign pods use capacity": {
			others: []*v1.Pod{Pod("other", 3, On("n"), foreign)}, waiting: 6, minMember: 6, want: result{4, false},
		},
		"a cordoned node has no capacity": {
			nodes: []*v1.Node{Node("n", 12, cordoned)}, waiting: 1, minMember: 1, want: result{0, false},
		},
		"a node that is not ready has no capacity": {
			nodes: []*v1.Node{Node("n", 12, notReady)}, waiting: 1, minMember: 1, want: result{0, false},
		},
		"requests are not split between nodes": {
			nodes: []*v1.Node{Node("n", 3), Node("m", 5)}, waiting: 4, minMember: 4, want: result{3, false},
		},
		"a self-affinity keeps the members in one domain": {
			nodes: []*v1.Node{Node("n", 4, labelled("rack", "a")), Node("m", 6, labelled("rack", "b")), Node("o", 2, labelled("rack", "b")), Node("p", 12)},
			each:  together("rack"), waiting: 5, minMember: 5, want: result{4, false},
		},
		"the domain suffices": {
			nodes: []*v1.Node{Node("n", 4, labelled("rack", "a")), Node("m", 8, labelled("rack", "b"))},
			each:  together("rack"), waiting: 4, minMember: 4, want: result{4, true},
		},
		"running members determine the domain": {
			nodes: []*v1.Node{Node("n", 4, labelled("rack", "a")), Node("m", 8, labelled("rack", "b"))},
			each:  together("rack"), running: 1, waiting: 6, minMember: 1, want: result{5, true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := NewCluster()
			if test.nodes == nil {
				test.nodes = []*v1.Node{Node("n", 12)}
			}
			for _, n := range test.nodes {
				c.Events().SetNode(n)
			}
			c.Events().SetPodGroup(Group("gang", test.minMember))
			for i := range test.running + test.waiting {
				p := Pod(fmt.Sprintf("p%d", i), 2, InGroup("gang"))
				if test.each != nil {
					test.each(p)
				}
				if i < test.running {
					On("n")(p)
					if test.change != nil {
						test.change(p)
					}
				}
				c.Events().SetPod(p)
			}
			for _, p := range test.others {
				c.Events().SetPod(p)
			}
			index := New(c, c.Dims())
			open(index, c)
			task := c.Tasks()[api.TaskID(fmt.Sprintf("p%d", test.running))]
			tasks, enough := index.CouldFit(task.Job)
			if diff := cmp.Diff(test.want, result{tasks[task.Signature], enough}); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestMaxMembersIgnoresForeignPods compares the two capacities: one without foreign pods, one with them.
func TestMaxMembersIgnoresForeignPods(t *testing.T) {
	t.Parallel()
	c := NewCluster()
	c.Events().SetNode(Node("n", 12))
	c.Events().SetPodGroup(Group("gang", 7))
	for i := range 7 {
		c.Events().SetPod(Pod(fmt.Sprintf("p%d", i), 2, InGroup("gang")))
	}
	c.Events().SetPod(Pod("other", 3, On("n"), foreign))
	index := New(c, c.Dims())
	open(index, c)
	task := c.Tasks()["p0"]
	if got := index.MaxMembers(task.Job); got != 6 {
		t.Errorf("%d members fit at most, want 6", got)
	}
	if with := index.CapacityCount(task.Signature); with != 4 {
		t.Errorf("capacity for %d members with foreign pods, want 4", with)
	}
	if !index.CouldHold(task.Signature, 6) || index.CouldHold(task.Signature, 7) {
		t.Error("the capacity without foreign pods is not 6")
	}
}
