// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package reservation

import (
	"maps"
	"slices"
	"time"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/place"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/timeline"
)

// planned keeps resources for gangs whose start is planned. The first gangs of each queue that do not fit get a start: the
// earliest time at which they fit if nothing else starts, by the run times that jobs declare. Jobs that end before it may
// use the resources until then, others only what the gang does not need: this is backfilling.
//
// It remembers the starts of the last session in the order in which they were planned. A start that comes later in this
// order delays none that comes before, and a start that is planned again, because resources became free earlier than
// expected, delays no other one.
type planned struct {
	conf.Reservations
	jobs     []plannedJob
	readings struct{ planned, expected timeline.Readings }
	reader   api.JournalReader // of jobs, for readings
	delays   delays
	far      farGangs
	more     bool // a gang has started before its planned time, or is gone, so that others may start earlier

	// Of the session that is open:
	ssn           *framework.Session
	releaseOthers func()
	plan          *timeline.Plan
	order         []*timeline.Start               // in the order in which they were planned
	inQueue       map[*api.QueueInfo]int          // gangs that a start was looked for
	last          map[*api.QueueInfo]*api.JobInfo // of each queue the last one in job order of those in order
	first         *api.QueueInfo                  // of the first job that could not be placed
	open          []bool                          // which starts of order are open for the current job
	stale         bool                            // the model has changed since nodes were chosen
	placed        bool                            // the model has changed since the session was opened
	holds         bool
	held          []*api.Reservation
	capacity      map[capacityKey]int64
	// unknown are the gangs whose start was looked for and is not known, and blocked those that did not fit on what is
	// reserved for others, with the first start that they would delay; tried are the latter in the order of the session.
	unknown map[*api.JobInfo]bool
	blocked map[*api.JobInfo]int64
	tried   []*api.JobInfo
	// evicting is set while jobs that have exceeded their limits are evicted.
	evicting bool
	// expected are the starts by the expected ends of tasks, if these are others than those of the plan. While a session
	// places jobs, they are those of before: a plan of their own after each placement would cost as much as the one by limits.
	expected map[*api.JobInfo]int64
}

// plannedJob is a job with its start in nanoseconds since 1970; 0 if it is not planned yet. Between sessions job is nil.
type plannedJob struct {
	id  api.JobID
	job *api.JobInfo
	at  int64
	run int64 // how long it was to run then
	// placements are those of the last session.
	placements []api.Decision
	division   division // then
}

// capacityKey is what makes tasks equal in where they fit.
type capacityKey struct {
	signature *api.Signature
	priority  int32
}

func (p *planned) enabled() bool { return p.Depth != 0 && p.Total > 0 }

// opened begins a session. Others reserve what planned starts leave: releaseOthers is called before nodes are chosen.
func (p *planned) opened(ssn *framework.Session, releaseOthers func()) {
	p.ssn, p.releaseOthers, p.capacity = ssn, releaseOthers, map[capacityKey]int64{}
	p.inQueue, p.last = map[*api.QueueInfo]int{}, map[*api.QueueInfo]*api.JobInfo{}
	p.unknown, p.blocked = map[*api.JobInfo]bool{}, map[*api.JobInfo]int64{}
	p.followJobs()
	ssn.AddCommittedFn(StarvationName, func([]api.Decision, bool) {
		p.stale, p.placed = true, true
		clear(p.capacity)
	})
}

// has reports whether a start of the job is planned.
func (p *planned) has(j *api.JobInfo) bool { return p.indexOf(j) >= 0 }

// indexOf returns the index of the start of the job in the order in which they were planned; -1 if there is none.
func (p *planned) indexOf(j *api.JobInfo) int {
	return slices.IndexFunc(p.order, func(s *timeline.Start) bool { return s.Job == j })
}

// unplaced is called in the order in which jobs are served with each one whose gang could not be placed. It reports whether
// the gang is to be tried once more: it fits if other starts take other nodes.
func (p *planned) unplaced(j *api.JobInfo) (again bool) {
	p.setFirst(j)
	if i := p.indexOf(j); i >= 0 {
		return p.placeAsPlanned(p.order[i])
	}
	if p.far.hasNow(j) {
		return false
	}
	p.refresh()
	behind := slices.ContainsFunc(p.order, func(s *timeline.Start) bool { return p.comesAfter(s.Job, j) })
	if p.isFull(j.Queue) && !behind || !p.mayPlan(j) {
		return false
	}
	if p.plan == nil {
		p.planAll(nil, false)
	}
	switch {
	case behind:
		p.planAll(p.inserted(j), true)
	case p.far.keep(p, j):
		if !p.holds {
			p.hold()
		}
		return false
	default:
		p.release()
		p.releaseOthers()
		p.add(j)
		p.expect()
		p.far.takeFrom(p)
	}
	p.hold()
	i := p.indexOf(j)
	return i >= 0 && p.order[i].At <= p.plan.Now
}

// placeAsPlanned places a gang whose start is due on the nodes of its plan. Allocate has looked for the best node for one task
// after the other, and may have found none for the last ones if tasks request different amounts. It reports whether the gang
// has nodes.
func (p *planned) placeAsPlanned(s *timeline.Start) bool {
	if p.refresh(); s.At > p.plan.Now {
		return false
	}
	nodes := make(map[*api.TaskInfo]*api.NodeInfo, len(s.Placements))
	for _, d := range s.Placements {
		nodes[d.Task] = d.Node
	}
	allocator := place.NewAllocator(p.ssn)
	claim := allocator.ClaimOf(s.Job, slices.Collect(maps.Keys(nodes)))
	return claim != nil && allocator.Try(claim, place.Options{Nodes: nodes})
}

// skip reports whether a job need not be tried: it does not fit on what is idle, and its start is planned, or would not be.
func (p *planned) skip(j *api.JobInfo) bool {
	last := p.last[j.Queue]
	behind := last != nil && p.isFull(j.Queue) && (last == j || p.ssn.CompareJobs(last, j) < 0)
	if !behind && !p.has(j) || p.couldFit(j) {
		return false
	}
	p.setFirst(j)
	return true
}

// setFirst is called in the order in which jobs are served with each one that cannot be placed.
func (p *planned) setFirst(j *api.JobInfo) {
	if p.first == nil && couldStart(p.ssn, j) {
		p.first = j.Queue
	}
}

// isFull reports whether no start of another gang of a queue is planned, unless it takes the place of one.
func (p *planned) isFull(q *api.QueueInfo) bool {
	return p.Depth > 0 && p.inQueue[q] >= p.Depth || len(p.order)+len(p.far.jobs) >= p.Total
}

// mayPlan reports whether a start may be planned for a job that could not be placed.
func (p *planned) mayPlan(j *api.JobInfo) bool {
	if p.After > 0 {
		if due := waitsSince(p.ssn, j).Add(p.After); p.ssn.Now.Before(due) {
			p.ssn.WakeAt(due)
			return false
		}
	}
	claim := claimOf(p.ssn, j)
	return claim != nil && couldStart(p.ssn, j) && capsAllow(p.ssn, claim) && (j.Queue == p.first || deserves(p.ssn, claim))
}

// activate makes what is reserved available to the current job as far as it may use it: if it is for the job itself or for
// one that it comes before, or if the job will have ended by then: by when the start is planned, or for a job without a start of
// its own, by when it is expected. Nil may use nothing.
func (p *planned) activate(current *api.JobInfo) {
	if len(p.order) == 0 || current != nil && !p.couldFit(current) {
		return
	}
	p.refresh()
	open, own := make([]bool, len(p.order)), current != nil && p.has(current)
	for i, s := range p.order {
		start := s.At
		if !own {
			start = p.expectedStart(s)
		}
		open[i] = current != nil && (mayUse(p.ssn, current, s.Job) || p.endsBefore(current, start))
		if at, known := p.blocked[current]; current != nil && !open[i] && (!known || start < at) {
			if p.blocked[current] = start; !known {
				p.tried = append(p.tried, current)
			}
		}
	}
	if p.holds && slices.Equal(open, p.open) {
		return
	}
	p.release()
	p.open = open
	p.hold()
}

// endsBefore reports whether a job that starts now will have ended at a time.
func (p *planned) endsBefore(j *api.JobInfo, at int64) bool {
	limit := int64(j.RunTime.Limit())
	start := p.plan.Now
	if j.Started > 0 { // it grows
		start = j.Started
	}
	return limit > 0 && start+limit <= at-int64(p.Margin)
}

// couldFit reports whether the gang of a job could fit on what is idle or being released if nothing were reserved. Most
// waiting gangs do not. It is a necessary condition.
func (p *planned) couldFit(j *api.JobInfo) bool {
	if p.ssn.Backlog().JobClass(j) == nil {
		return true
	}
	t := j.Tasks[0]
	key := capacityKey{t.Signature, t.Priority}
	fit, known := p.capacity[key]
	if !known {
		nodes := p.ssn.Cluster().Nodes()
		p.ssn.Nodes().Feasible(t.Signature).Each(func(i int) {
			free := nodes[i].Idle
			if !nodes[i].Releasing.IsZero() {
				free = free.Plus(nodes[i].Releasing)
			}
			fit += t.Request.TimesIn(free)
		})
		p.capacity[key] = fit
	}
	return fit >= int64(j.MinMember)
}

// hold reserves what the starts need that are not open for the current job.
func (p *planned) hold() {
	if p.plan == nil {
		return
	}
	if len(p.open) != len(p.order) { // starts were added or dropped
		p.open = make([]bool, len(p.order))
	}
	index := make(map[*timeline.Start]int, len(p.order))
	for i, s := range p.order {
		s.Open, index[s] = p.open[i], i
	}
	parts := make([][]api.ReservedPart, len(p.order))
	p.plan.Hold(func(s *timeline.Start, n *api.NodeInfo, amount api.Resource) {
		parts[index[s]] = append(parts[index[s]], api.ReservedPart{Node: n, Amount: amount})
	})
	for i, s := range p.order {
		if len(parts[i]) > 0 {
			p.held = append(p.held, p.ssn.ReserveParts(s.Job, parts[i]))
		}
	}
	p.holds = true
}

// keepAll calls do while what planned starts need is kept from all jobs.
func (p *planned) keepAll(do func()) {
	if !slices.Contains(p.open, true) {
		do()
		return
	}
	before := p.open
	p.release()
	p.open = make([]bool, len(p.order))
	p.hold()
	do()
	p.release()
	p.open = before
	p.hold()
}

// release ends what hold has reserved.
func (p *planned) release() {
	for _, r := range p.held {
		p.ssn.Unreserve(r)
	}
	p.held, p.holds = p.held[:0], false
}

// close ends the reservations of the session, and remembers for which jobs starts are planned. It reports whether these
// have changed.
func (p *planned) close() (changed bool) {
	p.release()
	if p.plan != nil && p.placed {
		p.expect()
	}
	p.explain()
	before := p.jobs
	p.jobs = nil
	for _, s := range p.order {
		if !p.started(s) {
			p.jobs = append(p.jobs, plannedJob{id: s.Job.ID, at: s.At, run: s.Run, placements: s.Placements, division: divisionOf(p.ssn, s.Job)})
			for _, at := range []int64{s.At, p.expectedStart(s)} {
				if at > p.plan.Now { // otherwise something else than resources keeps it waiting, and an event ends that
					p.ssn.WakeAt(time.Unix(0, at))
				}
			}
		}
	}
	*p = planned{Reservations: p.Reservations, jobs: p.jobs, readings: p.readings, reader: p.reader, delays: p.delays.of(p.jobs), far: p.far.closed(p), more: p.more}
	return !slices.EqualFunc(before, p.jobs, func(a, b plannedJob) bool { return a.id == b.id })
}

// started reports whether the session has placed the gang of a start.
func (p *planned) started(s *timeline.Start) bool {
	if !p.ssn.JobPipelined(s.Job) {
		return false
	}
	p.more = p.more || s.At > p.plan.Now
	return true
}

// explain adds the planned starts to the explanations of jobs, and the advice for those that could run before.
func (p *planned) explain() {
	for _, s := range p.order {
		delete(p.blocked, s.Job)
		start := api.StartEstimate{Estimated: p.expectedStart(s), Latest: s.At, Nodes: countNodes(s.Placements), Delay: p.delays[s.Job.ID]}
		if p.plan.Certainty()&timeline.Unlimited != 0 {
			start.Latest = 0
		}
		if s.Domain != nil {
			start.Domain = s.Job.TopologyLevel.Domain(s.Domain.Path)
		}
		p.explainJob(s.Job, func(v *api.Verdict) { v.Start = start })
	}
	p.far.explain(p)
	for _, j := range p.tried {
		at, blocked := p.blocked[j]
		if run := at - int64(p.Margin) - p.plan.Now; blocked && run > 0 && p.couldFit(j) {
			p.explainJob(j, func(v *api.Verdict) { v.Backfill = api.BackfillAdvice{RunTime: time.Duration(run), Until: at} })
		}
	}
}

// explainJob changes what the session says about a job that waits for resources.
func (p *planned) explainJob(j *api.JobInfo, change func(*api.Verdict)) {
	outcome := p.ssn.Outcome(j)
	if outcome == nil || outcome.Job == nil || p.ssn.JobPipelined(j) {
		return
	}
	v := *outcome.Job
	change(&v)
	p.ssn.Explain(j, &v)
}

// expect computes the starts by the expected ends of tasks, as far as they are declared. Nothing may be reserved meanwhile.
func (p *planned) expect() {
	p.expected = nil
	if p.plan.Certainty()&timeline.Estimated == 0 {
		return
	}
	p.expected = make(map[*api.JobInfo]int64, len(p.order))
	model := p.model()
	model.Readings = &p.readings.expected
	model.Ends = func(t *api.TaskInfo) (int64, timeline.Certainty) {
		return expectedEnd(t, model.Now), certaintyOf(t, model.Now)
	}
	plan := timeline.New(model)
	for _, s := range p.order {
		if by := plan.Add(s.Pinned()); by != nil {
			p.expected[s.Job] = by.At
		}
	}
}

// windowEnd returns until when starts are planned.
func (p *planned) windowEnd() int64 { return p.plan.Now + int64(p.Window) }

// expectedStart returns when a gang is expected to start: at or before its start in the plan, which is by limits, so that it
// holds although some tasks run for longer than expected.
func (p *planned) expectedStart(s *timeline.Start) int64 {
	if at, known := p.expected[s.Job]; known {
		return min(at, s.At)
	}
	return s.At
}
