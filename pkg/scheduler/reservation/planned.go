// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package reservation

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/timeline"
)

// planned keeps resources for gangs whose start is planned. The first gangs of each queue that do not fit get a start: the
// earliest time at which they fit if nothing else starts, by the run times that jobs declare. Jobs that end before it may
// use the resources until then, others only what the gang does not need: this is backfilling.
//
// It remembers for which jobs starts were planned in the last session, in the order of the promises: a start that comes
// later in this order delays none that comes before.
type planned struct {
	conf.Reservations
	jobs []api.JobID

	// Of the session that is open:
	ssn      *framework.Session
	plan     *timeline.Plan
	order    []*timeline.Start               // in the order of the promises
	inQueue  map[*api.QueueInfo]int          // gangs that a start was looked for
	last     map[*api.QueueInfo]*api.JobInfo // of each queue the last one in job order of those in order
	first    *api.QueueInfo                  // of the first job that could not be placed
	open     []bool                          // which starts of order are open for the current job
	stale    bool                            // the model has changed since nodes were chosen
	holds    bool
	held     []*api.Reservation
	capacity map[capacityKey]int64
	// unknown are the gangs whose start was looked for and is not known, and blocked those that did not fit on what is
	// reserved for others, with the first start that they would delay.
	unknown map[*api.JobInfo]bool
	blocked map[*api.JobInfo]int64
	// uncertain is set if a task is expected to end before its limit.
	uncertain bool
}

// capacityKey is what makes tasks equal in where they fit.
type capacityKey struct {
	signature *api.Signature
	priority  int32
}

func (p *planned) enabled() bool { return p.Depth != 0 && p.Total > 0 }

// opened begins a session.
func (p *planned) opened(ssn *framework.Session) {
	p.ssn, p.capacity = ssn, map[capacityKey]int64{}
	p.inQueue, p.last = map[*api.QueueInfo]int{}, map[*api.QueueInfo]*api.JobInfo{}
	p.unknown, p.blocked = map[*api.JobInfo]bool{}, map[*api.JobInfo]int64{}
	ssn.AddCommittedFn(StarvationName, func([]api.Decision, bool) { p.stale = true })
}

// has reports whether a start of the job is planned.
func (p *planned) has(j *api.JobInfo) bool { return p.indexOf(j) >= 0 }

// indexOf returns the index of the start of the job in the order of the promises; -1 if there is none.
func (p *planned) indexOf(j *api.JobInfo) int {
	return slices.IndexFunc(p.order, func(s *timeline.Start) bool { return s.Job == j })
}

// planAgain plans the starts of the last session again, and keeps what they need until the session closes. Others are
// added when allocate finds that they do not fit.
func (p *planned) planAgain() {
	var jobs []*api.JobInfo
	for _, id := range p.jobs {
		if j := p.ssn.Cluster().Jobs()[id]; j != nil && p.ssn.Backlog().IsOpen(j) && !p.ssn.JobPipelined(j) {
			jobs = append(jobs, j)
		}
	}
	if len(jobs) > 0 {
		p.planAll(jobs)
		p.activate(nil)
	}
}

// planAll plans the starts of jobs, and of no others.
func (p *planned) planAll(jobs []*api.JobInfo) {
	p.release()
	p.plan = timeline.New(p.model())
	p.order, p.stale = nil, false
	clear(p.inQueue)
	clear(p.last)
	for _, j := range jobs {
		p.add(j)
	}
}

// add plans the start of a job after all others, unless it is not known. It reports whether it did.
func (p *planned) add(j *api.JobInfo) bool {
	p.inQueue[j.Queue]++
	gang, ok := gangOf(p.ssn, j)
	if !ok {
		return false
	}
	s := p.plan.Add(gang)
	if s == nil {
		p.unknown[j] = true
		return false
	}
	p.order = append(p.order, s)
	p.setLast(j)
	return true
}

// setLast makes j the last job of its queue if it comes after the one that is.
func (p *planned) setLast(j *api.JobInfo) {
	if last := p.last[j.Queue]; last == nil || p.ssn.CompareJobs(last, j) < 0 {
		p.last[j.Queue] = j
	}
}

// model describes the model to a plan.
func (p *planned) model() timeline.Model {
	ssn := p.ssn
	nodes := ssn.Cluster().Nodes()
	now := ssn.Now.UnixNano()
	return timeline.Model{
		Now: now, Nodes: nodes,
		Ends: func(t *api.TaskInfo) int64 {
			p.uncertain = p.uncertain || t.Job != nil && t.Job.RunTime.Expected > 0
			return expectedEnd(t, now)
		},
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

// unplaced is called in the order in which jobs are served with each one whose gang could not be placed. It reports whether
// the gang is to be tried once more: it fits if other starts take other nodes.
func (p *planned) unplaced(j *api.JobInfo) (again bool) {
	if p.first == nil && couldStart(p.ssn, j) {
		p.first = j.Queue
	}
	if p.has(j) {
		return false
	}
	p.refresh()
	jobs := make([]*api.JobInfo, 0, len(p.order)+1)
	behind := false // there are starts of jobs of the queue that come after j
	for _, s := range p.order {
		behind = behind || s.Job.Queue == j.Queue && p.ssn.CompareJobs(j, s.Job) < 0
		jobs = append(jobs, s.Job)
	}
	full := p.isFull(j.Queue)
	if full && !behind || !p.mayPlan(j) {
		return false
	}
	if behind {
		p.planAll(p.inserted(jobs, j, full))
	} else {
		p.append(j)
	}
	p.hold()
	i := p.indexOf(j)
	return i >= 0 && p.order[i].At <= p.plan.Now
}

// skip reports whether a job need not be tried: it does not fit on what is idle, and its start is planned, or would not be.
func (p *planned) skip(j *api.JobInfo) bool {
	if p.couldFit(j) {
		return false
	}
	last := p.last[j.Queue]
	return p.isFull(j.Queue) && last != nil && (last == j || p.ssn.CompareJobs(last, j) < 0) || p.has(j)
}

// isFull reports whether no start of another gang of a queue is planned, unless it takes the place of one.
func (p *planned) isFull(q *api.QueueInfo) bool {
	return p.Depth > 0 && p.inQueue[q] >= p.Depth || len(p.order) >= p.Total
}

// append plans the start of a job after all others.
func (p *planned) append(j *api.JobInfo) {
	if p.plan == nil {
		p.planAll(nil)
	}
	p.release()
	p.add(j)
}

// inserted returns the jobs with j before those of its queue that come after it; if full, without the last of those.
func (p *planned) inserted(jobs []*api.JobInfo, j *api.JobInfo, full bool) []*api.JobInfo {
	after := func(other *api.JobInfo) bool { return other.Queue == j.Queue && p.ssn.CompareJobs(j, other) < 0 }
	jobs = slices.Insert(jobs, slices.IndexFunc(jobs, after), j)
	if !full {
		return jobs
	}
	last := -1
	for i, other := range jobs {
		if after(other) && (last < 0 || p.ssn.CompareJobs(jobs[last], other) < 0) {
			last = i
		}
	}
	return slices.Delete(jobs, last, last+1)
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

// refresh chooses the nodes of all starts again if the model has changed. The session has placed only what does not delay
// them. If one does not fit any more, because of a node that is lost, all are planned again.
func (p *planned) refresh() {
	if !p.stale || p.plan == nil {
		return
	}
	p.release()
	p.stale = false
	var jobs []*api.JobInfo
	for _, s := range slices.Clone(p.order) {
		if p.ssn.JobPipelined(s.Job) { // it has been placed
			p.remove(s)
		} else {
			jobs = append(jobs, s.Job)
		}
	}
	if !p.plan.Choose() {
		p.planAll(jobs)
	}
	p.hold()
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

// activate makes what is reserved available to the current job as far as it may use it: if it is for the job itself or for
// one that it comes before, or if the job will have ended by then. Nil may use nothing.
func (p *planned) activate(current *api.JobInfo) {
	if len(p.order) == 0 || current != nil && !p.couldFit(current) {
		return
	}
	p.refresh()
	open := make([]bool, len(p.order))
	for i, s := range p.order {
		open[i] = current != nil && (mayUse(p.ssn, current, s.Job) || p.endsBefore(current, s.At))
		if at, known := p.blocked[current]; current != nil && !open[i] && (!known || s.At < at) {
			p.blocked[current] = s.At
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

// couldFit reports whether the gang of a job could fit on what is idle if nothing were reserved. Most waiting gangs do
// not. It is a necessary condition.
func (p *planned) couldFit(j *api.JobInfo) bool {
	if p.ssn.Backlog().JobClass(j) == nil {
		return true
	}
	t := j.Tasks[0]
	key := capacityKey{t.Signature, t.Priority}
	fit, known := p.capacity[key]
	if !known {
		nodes := p.ssn.Cluster().Nodes()
		p.ssn.Nodes().Feasible(t.Signature).Each(func(i int) { fit += t.Request.TimesIn(nodes[i].Idle) })
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
	p.explain()
	before := p.jobs
	p.jobs = nil
	for _, s := range p.order {
		if !p.ssn.JobPipelined(s.Job) {
			p.jobs = append(p.jobs, s.Job.ID)
			p.ssn.WakeAt(time.Unix(0, max(s.At, p.plan.Now+1)))
		}
	}
	*p = planned{Reservations: p.Reservations, jobs: p.jobs}
	return !slices.Equal(before, p.jobs)
}

// explain adds the planned starts to the explanations of jobs, and the advice for those that could run before.
func (p *planned) explain() {
	latest := p.latest()
	for _, s := range p.order {
		delete(p.blocked, s.Job)
		if within := s.At <= p.plan.Now+int64(p.Window); within {
			p.explainJob(s.Job, func(v *api.Verdict) {
				v.Start = api.StartEstimate{Estimated: s.At, Latest: latest[s.Job], Nodes: countNodes(s.Placements)}
			})
		}
	}
	blocked := slices.SortedFunc(maps.Keys(p.blocked), func(a, b *api.JobInfo) int { return strings.Compare(a.Key, b.Key) })
	for _, j := range blocked {
		at := p.blocked[j]
		if run := at - int64(p.Margin) - p.plan.Now; run > 0 && p.couldFit(j) {
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

// latest returns the starts by limits alone, as far as they are known.
func (p *planned) latest() map[*api.JobInfo]int64 {
	starts := map[*api.JobInfo]int64{}
	if !p.uncertain {
		for _, s := range p.order {
			starts[s.Job] = s.At
		}
		return starts
	}
	model := p.model()
	model.Ends = func(t *api.TaskInfo) int64 { return latestEnd(t, model.Now) }
	plan := timeline.New(model)
	for _, s := range p.order {
		if by := plan.Add(s.Gang); by != nil {
			starts[s.Job] = by.At
		}
	}
	return starts
}
