// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package reservation

import (
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/timeline"
)

// planAgain plans the starts of the last session again, and keeps what they need until the session closes. Others are
// added when allocate finds that they do not fit.
func (p *planned) planAgain() {
	var jobs []plannedJob
	for _, one := range p.jobs {
		one.job = p.ssn.Cluster().Jobs()[one.id]
		if one.job != nil && p.ssn.Backlog().IsOpen(one.job) && !p.ssn.JobPipelined(one.job) {
			jobs = append(jobs, one)
		}
	}
	p.more = p.more || len(jobs) < len(p.jobs)
	if len(jobs) > 0 {
		p.planAll(jobs, false)
		p.activate(nil)
	}
}

// planAll plans the starts of jobs, and of no others. Those that have a start keep it if that is possible, or get an earlier
// one that delays no other; more says that the starts of others are dropped, whose resources they may use.
func (p *planned) planAll(jobs []plannedJob, more bool) {
	p.release()
	p.releaseOthers()
	p.plan = timeline.New(p.model())
	p.order, p.stale = nil, false
	p.far.planned()
	clear(p.inQueue)
	clear(p.last)
	for _, j := range p.far.jobs {
		p.inQueue[j.Queue]++
	}
	starts, same := p.keepStarts(jobs)
	var kept []*timeline.Start
	for i, one := range jobs {
		if starts[i] == nil {
			p.add(one.job)
			continue
		}
		p.count(starts[i])
		kept = append(kept, starts[i])
	}
	if p.plan.Improve(kept, more || !same || p.more) {
		p.far.forget()
	}
	p.more = false
	if len(jobs) > 1 {
		p.plan.Choose()
	}
	p.delays.update(p, jobs)
	p.expect()
	p.far.takeFrom(p)
}

// keepStarts plans the starts of jobs for the times at which they were planned before, or later where that is not possible; nil
// where no time is known, or where none was planned. It reports whether those that are kept have the same nodes and last as
// long as before.
func (p *planned) keepStarts(jobs []plannedJob) (starts []*timeline.Start, same bool) {
	starts, same = make([]*timeline.Start, len(jobs)), true
	var kept []*timeline.Start
	for i, one := range jobs {
		if one.at == 0 {
			continue
		}
		if gang, ok := gangOf(p.ssn, one.job, p.Margin); ok {
			starts[i] = &timeline.Start{Gang: gang, At: one.at, Placements: one.placements}
			kept = append(kept, starts[i])
		}
		same = same && starts[i] != nil && starts[i].Run == one.run && one.division == divisionOf(p.ssn, one.job)
	}
	if p.plan.KeepAll(kept) {
		return starts, same
	}
	for i, s := range starts {
		if s != nil {
			starts[i] = p.keep(s)
		}
	}
	return starts, false
}

// keep plans a start of before. If it does not fit at its time on any nodes, because something ends later than it was to, it
// becomes later before those that come after it are planned: these must not delay it more. It returns nil if no time is known.
func (p *planned) keep(before *timeline.Start) *timeline.Start {
	if s, ok := p.plan.Keep(before.Gang, before.At, before.Placements); ok {
		return s
	}
	if s, ok := p.plan.AddAt(before.Gang, before.At); ok {
		return s
	}
	return p.plan.Add(before.Gang)
}

// add plans the start of a job after all others, unless it is not known.
func (p *planned) add(j *api.JobInfo) {
	gang, ok := gangOf(p.ssn, j, p.Margin)
	if !ok {
		p.inQueue[j.Queue]++
		return
	}
	if s := p.plan.Add(gang); s != nil {
		p.count(s)
		return
	}
	p.inQueue[j.Queue]++
	p.unknown[j] = true
}

// count adds a start of the plan to the order.
func (p *planned) count(s *timeline.Start) {
	p.order = append(p.order, s)
	p.inQueue[s.Job.Queue]++
	p.setLast(s.Job)
}

// remove takes a start out.
func (p *planned) remove(s *timeline.Start) {
	p.plan.Remove(s)
	p.inQueue[s.Job.Queue]--
	p.order = slices.DeleteFunc(p.order, func(other *timeline.Start) bool { return other == s })
	delete(p.last, s.Job.Queue)
	for _, other := range p.order {
		p.setLast(other.Job)
	}
}

// setLast makes j the last job of its queue if it comes after the one that is.
func (p *planned) setLast(j *api.JobInfo) {
	if last := p.last[j.Queue]; last == nil || p.ssn.CompareJobs(last, j) < 0 {
		p.last[j.Queue] = j
	}
}

// comesAfter reports whether the start of a job may become later because of j. Jobs of the same priority keep theirs, even if
// an older one could not be planned before.
func (p *planned) comesAfter(other, j *api.JobInfo) bool {
	return other != j && mayUse(p.ssn, j, other)
}

// inserted returns the jobs whose starts are planned, and j before those of its queue that come after it: these have to be
// planned again. If there are too many, the last of those is left out.
func (p *planned) inserted(j *api.JobInfo) []plannedJob {
	jobs := make([]plannedJob, 0, len(p.order)+1)
	first, last := -1, -1
	for i, s := range p.order {
		at := s.At
		if p.comesAfter(s.Job, j) {
			at = 0
			if first < 0 {
				first = i
			}
			if last < 0 || p.ssn.CompareJobs(jobs[last].job, s.Job) < 0 {
				last = i
			}
		}
		jobs = append(jobs, plannedJob{job: s.Job, at: at, run: s.Run, placements: s.Placements, division: divisionOf(p.ssn, s.Job)})
	}
	if p.isFull(j.Queue) {
		jobs = slices.Delete(jobs, last, last+1)
	}
	return slices.Insert(jobs, first, plannedJob{job: j})
}

// refresh chooses the nodes of all starts again if the model has changed. The session has placed only what does not delay
// them. If one does not fit any more, because of a node that is lost, all are planned again.
func (p *planned) refresh() {
	if !p.stale || p.plan == nil {
		return
	}
	p.release()
	p.releaseOthers()
	p.stale = false
	var jobs []plannedJob
	for _, s := range slices.Clone(p.order) {
		if p.started(s) {
			p.remove(s)
		} else {
			jobs = append(jobs, plannedJob{job: s.Job, at: s.At, run: s.Run, placements: s.Placements, division: divisionOf(p.ssn, s.Job)})
		}
	}
	if !p.plan.Choose() {
		p.planAll(jobs, true)
	}
	p.hold()
}

// model describes the model to a plan.
func (p *planned) model() timeline.Model {
	ssn := p.ssn
	nodes := ssn.Cluster().Nodes()
	now := ssn.Now.UnixNano()
	return timeline.Model{
		Now: now, Nodes: nodes,
		Readings: &p.readings.planned,
		Ends:     func(t *api.TaskInfo) (int64, timeline.Certainty) { return plannedEnd(t, now), certaintyOf(t, now) },
		EachFeasible: func(t *api.TaskInfo, visit func(int)) {
			ssn.Nodes().Feasible(t.Signature).Each(func(i int) {
				n := nodes[i]
				if n.Ready() && !n.Node.Spec.Unschedulable && ssn.Predicate(t, n, api.Future) == nil {
					visit(i)
				}
			})
		},
	}
}

// followJobs makes the next plan read the nodes of jobs again that have changed: the ends of their tasks may have.
func (p *planned) followJobs() {
	table := p.ssn.Cluster().JobTable()
	changed, known := p.reader.CatchUp(table.Changes(), len(table.ByIndex()))
	if !known {
		p.readings.planned, p.readings.expected = timeline.Readings{}, timeline.Readings{}
		p.far.forget()
		return
	}
	for _, i := range changed {
		if j := table.ByIndex()[i]; j != nil {
			for _, t := range j.Tasks {
				if t.Node != nil {
					p.readings.planned.Invalidate(t.Node.Index)
					p.readings.expected.Invalidate(t.Node.Index)
				}
			}
		}
	}
}
