// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package nodeindex

import (
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// capacityIndex counts how many tasks nodes could hold that run no members of queues.
//
// A feasible node counts as often as the request of the signature fits in what is allocatable and not used by
// foreign pods. For example, a request of 3 cpu counts twice on a node with 8 cpu of which foreign pods use 1, and
// not at all if they use 6. Members of queues do not matter, because they can be evicted. The counts are made
// signature by signature: nodes that are counted for one signature are counted for another one too, so
// the sum may exceed what fits.
type capacityIndex struct {
	feasible *feasibleIndex
}

// capacityCount is the count of one signature. It is valid while node objects and foreign pods stand still.
type capacityCount struct {
	tasks   int64
	foreign uint64 // ForeignGeneration of the count
	known   bool
}

func (x *capacityIndex) count(signature *api.Signature) int64 {
	feasible, foreign := x.feasible.of(signature), x.feasible.cluster.Generations().Foreign
	c := &feasible.capacity
	if c.known && c.foreign == foreign {
		return c.tasks
	}
	*c = capacityCount{foreign: foreign, known: true}
	nodes := x.feasible.cluster.Nodes()
	feasible.set.Each(func(i int) {
		if n := nodes[i]; acceptsPods(n) {
			c.tasks += signature.Request.TimesInRest(n.Allocatable, n.Foreign)
		}
	})
	return c.tasks
}

// couldFit compares the capacity counts with what the job requests. Members of the job that run where capacity is
// counted use some of it. Members that are being deleted count as started, since they may come back.
//
// For example, a gang of 8 has 2 members that run and 6 that wait, all with one signature. If the capacity
// count is 6, then 4 of the waiting tasks could run, and the gang has 2 + 4 = 6 members: enough for a minimum of 6,
// and not for one of 7.
func (x *capacityIndex) couldFit(j *api.JobInfo) (tasks map[*api.Signature]int64, enough bool) {
	tasks, running := map[*api.Signature]int64{}, map[*api.Signature]int64{}
	for _, t := range j.Tasks {
		switch {
		case t.Waiting():
			tasks[t.Signature]++
		case x.usesCapacity(t):
			running[t.Signature]++
		}
	}
	members := int64(j.ReadyCount() + j.Count(api.Releasing))
	for signature, waiting := range tasks {
		n := min(waiting, max(x.count(signature)-running[signature], 0))
		tasks[signature] = n
		members += n
	}
	return tasks, members >= int64(j.MinMember)
}

// usesCapacity reports whether the task runs on a node that count includes.
func (x *capacityIndex) usesCapacity(t *api.TaskInfo) bool {
	return !t.Status.Ended() && t.Node != nil && t.Node.Exists() && acceptsPods(t.Node) && x.feasible.nodes(t.Signature).Has(t.Node.Index)
}
