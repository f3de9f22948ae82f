// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package reservation

import (
	"slices"
	"time"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// removeFar takes out the starts that are expected after the window. They still count for the depth of their queue and in
// total, so that a session does not look for the starts of all other gangs instead.
func (p *planned) removeFar() {
	end := p.plan.Now + int64(p.Window)
	for _, s := range slices.Clone(p.order) {
		at := p.expectedStart(s)
		if at <= end {
			continue
		}
		p.remove(s)
		p.inQueue[s.Job.Queue]++
		p.far = append(p.far, s.Job)
		p.ssn.WakeAt(time.Unix(0, at-int64(p.Window)))
	}
}

// isFar reports whether the start of a job is after the window, as far as this session or the last one knows.
func (p *planned) isFar(j *api.JobInfo) bool { return slices.Contains(p.far, j) || p.farBefore[j.ID] }

// explainFar says of gangs that their start is after the window.
func (p *planned) explainFar() {
	for _, j := range p.far {
		p.explainJob(j, func(v *api.Verdict) { v.Start = api.StartEstimate{Beyond: p.Window} })
	}
}

func idsOf(jobs []*api.JobInfo) map[api.JobID]bool {
	ids := make(map[api.JobID]bool, len(jobs))
	for _, j := range jobs {
		ids[j.ID] = true
	}
	return ids
}
