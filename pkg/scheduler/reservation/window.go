// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package reservation

import (
	"maps"
	"slices"
	"time"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/timeline"
)

// farGangs are the gangs whose start was looked for and is after the window. Nothing is reserved for them. As with planned
// starts, an earlier one is looked for only when more is free at some time than before.
type farGangs struct {
	jobs   []*api.JobInfo     // of the session that is open
	before map[api.JobID]bool // of the last session
	starts map[api.JobID]farStart
	same   map[timeline.Kind]bool // of tasks for which nothing more was found to be free in the plan of the session
}

// farStart is the start of a gang after the window, found in a plan by limits.
type farStart struct {
	at         int64 // in nanoseconds since 1970
	run        int64
	signatures []*api.Signature // of the tasks
	division   division
}

func farStartOf(ssn *framework.Session, g timeline.Gang, at int64) farStart {
	start := farStart{at: at, run: g.Run, signatures: make([]*api.Signature, len(g.Tasks)), division: divisionOf(ssn, g.Job)}
	for i, t := range g.Tasks {
		start.signatures[i] = t.Signature
	}
	return start
}

// takeFrom takes the starts out of the plan that are expected after the window. They still count for the depth of their queue
// and in total, so that a session does not look for the starts of all other gangs instead.
func (f *farGangs) takeFrom(p *planned) {
	end := p.windowEnd()
	for _, s := range slices.Clone(p.order) {
		at := p.expectedStart(s)
		if at <= end {
			continue
		}
		p.remove(s)
		f.add(p, s.Job, at)
		if p.expected == nil { // nothing ends earlier than its limit for the time being
			if f.starts == nil {
				f.starts = map[api.JobID]farStart{}
			}
			f.starts[s.Job.ID] = farStartOf(p.ssn, s.Gang, s.At)
		}
	}
}

func (f *farGangs) add(p *planned, j *api.JobInfo, at int64) {
	p.inQueue[j.Queue]++
	f.jobs = append(f.jobs, j)
	p.ssn.WakeAt(time.Unix(0, at-int64(p.Window)))
}

// keep reports whether the start of a gang was found to be after the window in an earlier session and still is.
func (f *farGangs) keep(p *planned, j *api.JobInfo) bool {
	start, known := f.starts[j.ID]
	if !known || start.at <= p.windowEnd() || p.expected != nil {
		return false
	}
	gang, ok := gangOf(p.ssn, j, p.Margin)
	if !ok {
		return false
	}
	if now := farStartOf(p.ssn, gang, start.at); now.run != start.run || now.division != start.division || !slices.Equal(now.signatures, start.signatures) {
		return false
	}
	for _, t := range gang.Tasks {
		kind := timeline.KindOf(t)
		if f.same[kind] {
			continue
		}
		p.release() // what is reserved is not free
		p.releaseOthers()
		if p.plan.HasGrown(t) {
			f.forget()
			return false
		}
		f.same[kind] = true
	}
	f.add(p, j, start.at)
	return true
}

// planned is called with a new plan of the session.
func (f *farGangs) planned() { f.same = map[timeline.Kind]bool{} }

// forget is called when gangs may start earlier than was found.
func (f *farGangs) forget() { clear(f.starts) }

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
func (f *farGangs) closed(p *planned) farGangs {
	maps.DeleteFunc(f.starts, func(id api.JobID, _ farStart) bool { return p.ssn.Cluster().Jobs()[id] == nil })
	ids := make(map[api.JobID]bool, len(f.jobs))
	for _, j := range f.jobs {
		ids[j.ID] = true
	}
	return farGangs{before: ids, starts: f.starts}
}
