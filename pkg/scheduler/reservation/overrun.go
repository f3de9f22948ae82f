// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package reservation

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

// OverrunName is the name of the action that evicts jobs at their limits, in logs and metrics.
const OverrunName = "overrun"

// Overrun registers the policy for jobs whose onOverrun is Evict: they are evicted when they have run for as long as they
// declare. Their own PodGroup says so, so that no configuration has to.
//
// It ends: a job is evicted at most once for each time that it starts, after it has run for its limit.
func Overrun() framework.ComponentSpec {
	return framework.ComponentSpec{Name: OverrunName, New: func(framework.Environment) (framework.Plugin, framework.Action) {
		o := &overrun{limited: map[api.JobID]bool{}}
		return o, o
	}}
}

// overrun follows which jobs are to be evicted at their limits. Most clusters have none.
type overrun struct {
	reader  api.JournalReader
	limited map[api.JobID]bool
}

func (*overrun) Name() string { return OverrunName }

func (*overrun) OnSessionOpen(*framework.Session) {}

func (*overrun) OnSessionClose(*framework.Session) {}

// Execute evicts the jobs whose limits have passed.
func (o *overrun) Execute(ctx context.Context, ssn *framework.Session) error {
	for _, j := range o.follow(ssn) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		// 1. Ask for a session when the next limit passes.
		limit := time.Unix(0, j.Started+int64(j.RunTime.Maximum))
		if ssn.Now.Before(limit) {
			ssn.WakeAt(limit)
			continue
		}

		// 2. Evict all that the job holds, unless some of it must not be evicted.
		if unit, ok := unitOf(ssn, j); ok {
			evict(ssn, unit)
		}
	}
	return ctx.Err()
}

// follow returns the running jobs that are to be evicted at their limits, by id.
func (o *overrun) follow(ssn *framework.Session) []*api.JobInfo {
	table := ssn.Cluster().JobTable()
	changed, known := o.reader.CatchUp(table.Changes(), len(table.ByIndex()))
	if !known {
		clear(o.limited)
		for _, j := range table.ByIndex() {
			o.see(j)
		}
	}
	for _, i := range changed {
		o.see(table.ByIndex()[i])
	}
	var jobs []*api.JobInfo
	for id := range o.limited {
		switch j := ssn.Cluster().Jobs()[id]; {
		case j == nil:
			delete(o.limited, id)
		case j.Started > 0:
			jobs = append(jobs, j)
		}
	}
	slices.SortFunc(jobs, func(a, b *api.JobInfo) int { return cmp.Compare(a.ID, b.ID) })
	return jobs
}

// see takes a change of a job into account; nil is one that was removed.
func (o *overrun) see(j *api.JobInfo) {
	switch {
	case j == nil:
	case j.RunTime.OnOverrun == api.OverrunEvict && j.RunTime.Maximum > 0:
		o.limited[j.ID] = true
	default:
		delete(o.limited, j.ID)
	}
}

// evict evicts a job that has exceeded its limit, in a statement of its own.
func evict(ssn *framework.Session, u api.Unit) {
	stmt := ssn.Statement()
	for _, t := range u.Tasks {
		stmt.Evict(t, u.Job, api.Overran)
	}
	stmt.Commit()
}
