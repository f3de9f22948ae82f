// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"cmp"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// cost orders candidates. The fields are compared in their order.
type cost struct {
	priority    int32 // the highest victim priority
	gangs, pods int32 // gangs broken, pods evicted
	loss        int64 // the negated score of the node by plugins
	runtime     int64 // the creation times of the pods in seconds since 1970, added up and negated: young pods cost less
	lost        int32 // pods without a controller, which would create them again
}

func (c cost) compare(o cost) int {
	return cmp.Or(
		cmp.Compare(c.priority, o.priority), cmp.Compare(c.gangs, o.gangs), cmp.Compare(c.pods, o.pods),
		cmp.Compare(c.loss, o.loss), cmp.Compare(c.runtime, o.runtime), cmp.Compare(c.lost, o.lost))
}

// costOf returns the cost of a victim set for a claim.
func costOf(claim *api.Claim, units []api.Unit) cost {
	var c cost
	for i := range units {
		u := &units[i]
		if u.Whole {
			c.gangs++
		}
		c.pods += int32(len(u.Tasks))
		for _, t := range u.Tasks {
			c.runtime -= t.Created / int64(1e9)
			if !t.Controlled() {
				c.lost++
			}
			if p := victimPriority(claim, t); i == 0 || p > c.priority {
				c.priority = p
			}
		}
	}
	return c
}

// highestVictimPriority returns the highest priority of a victim, and whether a gang is broken.
func highestVictimPriority(claim *api.Claim, units []api.Unit) (highest int32, gangs bool) {
	for i, u := range units {
		for _, t := range u.Tasks {
			if p := victimPriority(claim, t); i == 0 || p > highest {
				highest = p
			}
		}
		gangs = gangs || u.Whole
	}
	return highest, gangs
}

// victimPriority returns the priority of the victim's job, or of the victim itself if it is a member of the preemptor.
func victimPriority(claim *api.Claim, t *api.TaskInfo) int32 {
	if t.Job == claim.Job {
		return t.Priority
	}
	return t.Job.Priority
}
