// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/audit"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

// outcome counts decisions by "queue class" of the pod.
type outcome map[string]counts

type counts struct {
	victims   int
	bound     int
	pipelined int // or allocated, while other members of the gang are pipelined
}

func (c counts) plus(o counts) counts {
	return counts{c.victims + o.victims, c.bound + o.bound, c.pipelined + o.pipelined}
}

func (c counts) String() string {
	return fmt.Sprintf("%d evicted, %d bound, %d pipelined", c.victims, c.bound, c.pipelined)
}

// outcomeOf counts the decisions of a session and the tasks that the open session has placed.
func outcomeOf(c *model.Cluster, decisions []api.Decision) outcome {
	got := outcome{}
	note := func(t *api.TaskInfo, one counts) {
		key := string(t.Job.QueueName) + " " + t.Pod.Spec.PriorityClassName
		got[key] = got[key].plus(one)
	}
	for _, d := range decisions {
		switch d.Kind {
		case api.Evict:
			note(d.Task, counts{victims: 1})
		case api.Allocate:
			note(d.Task, counts{bound: 1})
		}
	}
	for _, t := range c.Tasks() {
		if t.Status == api.Pipelined || t.Status == api.Allocated {
			note(t, counts{pipelined: 1})
		}
	}
	return got
}

// faults returns the problems of the decisions of a session before it closes. A nil outcome accepts all decisions.
func faults(c *model.Cluster, decisions []api.Decision, want outcome) []string {
	var list []string
	if err := audit.Model(c); err != nil {
		list = append(list, err.Error())
	}
	got := outcomeOf(c, decisions)
	if want == nil {
		want = got
	}
	keys := maps.Clone(want)
	maps.Copy(keys, got)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if g, w := got[key], want[key]; g != w {
			list = append(list, fmt.Sprintf("pods of %s: %s, and should be %s", key, g, w))
		}
	}
	return append(append(list, overfull(c)...), partialGangs(c)...)
}

// overfull returns the nodes that are overcommitted, now or once what is being released is gone.
func overfull(c *model.Cluster) []string {
	var list []string
	for _, n := range c.Nodes() {
		future := n.Idle.Plus(n.Releasing).Minus(n.Pipelined)
		for d := range c.Dims().Len() {
			if n.Idle.At(d) < 0 || future.At(d) < 0 {
				list = append(list, fmt.Sprintf("%s is overcommitted of %s", n.Name, c.Dims().Name(d)))
			}
		}
	}
	return list
}

// partialGangs returns the gangs of which some members hold or have a placement, but too few.
func partialGangs(c *model.Cluster) []string {
	var list []string
	for _, j := range c.SortedJobs() {
		if has := j.ReadyCount() + j.Count(api.Pipelined); has > 0 && has < j.MinMember {
			list = append(list, fmt.Sprintf("%s has %d of the %d members that it needs", j.Key, has, j.MinMember))
		}
	}
	return list
}
