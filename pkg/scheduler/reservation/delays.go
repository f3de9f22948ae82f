// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package reservation

import (
	"fmt"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/timeline"
)

// delays says of jobs whose planned start became later because of a node why it did, until it becomes earlier again.
type delays map[api.JobID]string

// of returns those of the jobs with a planned start.
func (d delays) of(jobs []plannedJob) delays {
	kept := delays{}
	for _, one := range jobs {
		if why := d[one.id]; why != "" {
			kept[one.id] = why
		}
	}
	return kept
}

// update compares the starts of jobs with those of before.
func (d delays) update(p *planned, before []plannedJob) {
	for _, one := range before {
		i := p.indexOf(one.job)
		if one.at == 0 || i < 0 {
			continue
		}
		switch s := p.order[i]; {
		case s.At < one.at:
			delete(d, one.job.ID)
		case s.At > max(one.at, p.plan.Now):
			if why := lostNode(p.plan, one); why != "" {
				d[one.job.ID] = why
			}
		}
	}
}

// lostNode says what happened to the first node of the placements of a job where it cannot start any more; empty if there is
// no such node.
func lostNode(plan *timeline.Plan, one plannedJob) string {
	for _, d := range one.placements {
		n := d.Node
		if plan.Suits(d.Task, n, one.at) {
			continue
		}
		what := "does not suit its pods any more"
		switch {
		case !n.Exists():
			what = "is gone"
		case !n.Ready():
			what = "is not ready"
		case n.Node.Spec.Unschedulable:
			what = "is cordoned"
		case n.Outlasts(d.Task, one.at):
			what = "becomes unavailable before its pods are over"
		}
		return fmt.Sprintf("node %s %s", n.Name, what)
	}
	return ""
}
