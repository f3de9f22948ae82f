// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package reservation

import (
	"slices"
	"time"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// farGangs are the gangs whose start was looked for and is after the window. Nothing is reserved for them.
type farGangs struct {
	jobs   []*api.JobInfo     // of the session that is open
	before map[api.JobID]bool // of the last session
}

// takeFrom takes the starts out of the plan that are expected after the window. They still count for the depth of their queue
// and in total, so that a session does not look for the starts of all other gangs instead.
func (f *farGangs) takeFrom(p *planned) {
	end := p.plan.Now + int64(p.Window)
	for _, s := range slices.Clone(p.order) {
		at := p.expectedStart(s)
		if at <= end {
			continue
		}
		p.remove(s)
		p.inQueue[s.Job.Queue]++
		f.jobs = append(f.jobs, s.Job)
		p.ssn.WakeAt(time.Unix(0, at-int64(p.Window)))
	}
}

// has reports whether the start of a job is after the window, as far as this session or the last one knows.
func (f *farGangs) has(j *api.JobInfo) bool { return f.hasNow(j) || f.before[j.ID] }

func (f *farGangs) hasNow(j *api.JobInfo) bool { return slices.Contains(f.jobs, j) }

// explain says of gangs that their start is after the window.
func (f *farGangs) explain(p *planned) {
	for _, j := range f.jobs {
		p.explainJob(j, func(v *api.Verdict) { v.Start = api.StartEstimate{Beyond: p.Window} })
	}
}

// closed returns what the next session has to know.
func (f *farGangs) closed() farGangs {
	ids := make(map[api.JobID]bool, len(f.jobs))
	for _, j := range f.jobs {
		ids[j.ID] = true
	}
	return farGangs{before: ids}
}
