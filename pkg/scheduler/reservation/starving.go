// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package reservation

import (
	"context"
	"slices"
	"time"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/worklist"
)

// chosen is a gang with its placements. While others are chosen it is pipelined there, so that they choose other nodes.
type chosen struct {
	job        *api.JobInfo
	stmt       *framework.Statement
	placements []api.Decision
}

// choose returns the gangs for which resources are to be reserved, and where. It leaves the model as it was.
func (s *starvation) choose(ctx context.Context, ssn *framework.Session) []chosen {
	c := &chooser{
		starvation: s, ssn: ssn, starving: s.starvingGangs(ssn), served: map[*api.QueueInfo]bool{}, kept: map[*framework.JobClass]int{},
	}
	if c.starving.none() {
		return nil
	}
	for id := range s.previous {
		if j := ssn.Cluster().Jobs()[id]; j != nil {
			c.kept[ssn.Backlog().JobClass(j)]++
		}
	}
	list := worklist.Of(ssn, c.parts())
	list.OnSkip(func(jobs []*api.JobInfo) {
		ssn.ActivateReservation(jobs[0])
		ssn.ActivateReservation(jobs[len(jobs)-1])
	})
	for job := list.Next(); job != nil && ctx.Err() == nil; job = list.Next() {
		ssn.ActivateReservation(job)
		switch others := c.consider(job); {
		case !c.planned.enabled() && (c.served[job.Queue] || c.first != nil && !c.starving.queues[job.Queue]):
			ssn.ActivateReservation(nil)
			list.Drop(job.Queue)
		case !others:
			list.Refuse()
		}
	}
	for _, one := range slices.Backward(c.chosen) {
		one.stmt.Discard()
	}
	s.planned.release() // it could keep less while these were pipelined
	ssn.ActivateReservation(nil)
	return c.chosen
}

// parts returns the pending jobs. Those of a job class are equal, unless planned starts have to know of each job.
func (c *chooser) parts() []*worklist.Part {
	if c.planned.enabled() {
		return worklist.Sorted(c.ssn, c.ssn.Jobs())
	}
	return worklist.Pending(c.ssn)
}

// starving are the gangs that have waited long enough: single ones, and those of some job classes.
type starving struct {
	jobs    map[*api.JobInfo]bool
	classes map[*framework.JobClass]bool // that have some
	queues  map[*api.QueueInfo]bool      // likewise
}

func (s *starving) none() bool { return len(s.jobs)+len(s.classes) == 0 }

// starvingGangs returns the gangs that have waited long enough, and asks for a session when the next one will have.
func (s *starvation) starvingGangs(ssn *framework.Session) starving {
	found := starving{s.lookedFor(ssn), map[*framework.JobClass]bool{}, map[*api.QueueInfo]bool{}} // most sessions find none
	if s.after == 0 {
		return found
	}
	b := ssn.Backlog()
	for _, j := range b.Unclassified() {
		if s.isDue(ssn, j) {
			found.jobs[j], found.queues[j.Queue] = true, true
		}
	}
	latest := ssn.Now.Add(-s.after).UnixNano()
	for _, jc := range b.JobClasses() {
		since := s.waitsOf(ssn, jc)
		i, _ := slices.BinarySearch(since, latest+1)
		if i > 0 {
			found.classes[jc], found.queues[jc.Queue()] = true, true
		}
		if i < len(since) {
			ssn.WakeAt(time.Unix(0, since[i]).Add(s.after))
		}
	}
	return found
}

// isDue reports whether a gang has waited long enough. If it has not, it asks for a session when it will have.
func (s *starvation) isDue(ssn *framework.Session, j *api.JobInfo) bool {
	if ssn.JobPipelined(j) {
		return false
	}
	due := waitsSince(ssn, j).Add(s.after)
	if ssn.Now.Before(due) {
		ssn.WakeAt(due)
		return false
	}
	return true
}

// lookedFor returns the gangs that have a reservation because their start was looked for and is not known.
func (s *starvation) lookedFor(ssn *framework.Session) map[*api.JobInfo]bool {
	found := map[*api.JobInfo]bool{}
	if !s.planned.enabled() {
		return found
	}
	for id := range s.previous {
		if j := ssn.Cluster().Jobs()[id]; j != nil && ssn.Backlog().IsOpen(j) && !ssn.JobPipelined(j) {
			found[j] = true
		}
	}
	return found
}

// waitsOf returns since when the jobs of a job class wait, in nanoseconds since 1970, sorted. It is remembered while they are
// the same.
func (s *starvation) waitsOf(ssn *framework.Session, jc *framework.JobClass) []int64 {
	known, ok := s.waits[jc]
	if ok && known.version == jc.Version() {
		return known.since
	}
	if len(s.waits) > 2*len(ssn.Backlog().JobClasses())+64 {
		clear(s.waits) // most of these do not exist any more
	}
	since := known.since[:0]
	for _, j := range jc.Jobs() {
		since = append(since, waitsSince(ssn, j).UnixNano())
	}
	slices.Sort(since)
	s.waits[jc] = waits{jc.Version(), since}
	return since
}

// waitsSince returns when the last of the tasks was created that the gang needs: it could have started from then on. It
// is the same for every scheduler process.
func waitsSince(ssn *framework.Session, j *api.JobInfo) time.Time {
	tasks := j.Tasks
	if need := max(j.MinMember-j.ReadyCount(), 1); need < j.Waiting() || j.SubGroups != nil {
		tasks = worklist.Needed(j, ssn.WaitingTasks(j))
	}
	var last int64
	for _, t := range tasks {
		if t.Waiting() {
			last = max(last, t.Created)
		}
	}
	return time.Unix(0, last)
}

// chooser chooses gangs and placements in one session.
type chooser struct {
	*starvation
	ssn      *framework.Session
	starving starving
	first    *api.QueueInfo // in queue order, of those with a job that could start or grow
	served   map[*api.QueueInfo]bool
	chosen   []chosen
	kept     map[*framework.JobClass]int // how many of the jobs have a reservation of the last session
}

// consider is called for all jobs, the best queue first. It reports whether to consider the others of its job class, too.
func (c *chooser) consider(job *api.JobInfo) (others bool) {
	if c.served[job.Queue] || !couldStart(c.ssn, job) {
		return false
	}
	if c.first == nil {
		c.first = job.Queue
	}
	jc := c.ssn.Backlog().JobClass(job)
	if !c.starves(job, jc) {
		return c.starving.classes[jc]
	}
	if !c.planned.has(job) && !c.planned.far.has(job) && c.placeGang(job) {
		return false
	}
	if c.lastPlacements(job) != nil {
		c.kept[jc]--
	}
	return c.kept[jc] > 0
}

// starves reports whether a job of a job class, or of none if it is nil, has waited long enough.
func (c *chooser) starves(job *api.JobInfo, jc *framework.JobClass) bool {
	return c.starving.jobs[job] || c.starving.classes[jc] && c.isDue(c.ssn, job)
}

// placeGang finds placements for a gang that has waited long enough, and pipelines it there.
func (c *chooser) placeGang(job *api.JobInfo) bool {
	tasks := c.ssn.WaitingTasks(job)
	claim := worklist.Claim(c.ssn, job, tasks)
	if claim == nil || !c.mayReserve(claim) {
		return false
	}
	stmt := c.ssn.Statement()
	if !c.reserver.Gang(stmt, claim, tasks) {
		return false
	}
	c.served[job.Queue] = true
	c.chosen = append(c.chosen, chosen{job, stmt, stmt.Decisions()})
	return true
}

// couldStart reports whether a job could start if no other members of queues ran on the nodes.
func couldStart(ssn *framework.Session, job *api.JobInfo) bool {
	tasks, enough := ssn.Nodes().CouldFit(job)
	for _, n := range tasks {
		if n > 0 {
			return enough
		}
	}
	return false
}

// mayReserve reports whether resources may be kept from others for a gang: because its queue deserves them, or is the
// first in queue order, or because the last session has reserved some for the gang, which would otherwise have had no effect.
// Only jobs of its own queue may hold what keeps the gang above the caps of the queue.
func (c *chooser) mayReserve(claim *api.Claim) bool {
	queue := claim.Job.Queue
	return capsAllow(c.ssn, claim) && (queue == c.first || c.lastPlacements(claim.Job) != nil || deserves(c.ssn, claim))
}

// capsAllow reports whether caps allow a gang to start, or only jobs of its own queue keep it from that.
func capsAllow(ssn *framework.Session, claim *api.Claim) bool {
	job, queue := claim.Job, claim.Job.Queue
	return ssn.Allocatable(job, claim.Request, api.Future) ||
		queue.CapAllows(claim.Request, api.Future) >= 0 && job.Allocated.Plus(claim.Request).Within(queue.Capability)
}

// deserves reports whether the queue holds no more than it deserves with the gang.
func deserves(ssn *framework.Session, claim *api.Claim) bool {
	deserved := ssn.Deserved(claim.Job.Queue)
	if deserved == nil { // no plugin divides the cluster between queues
		return true
	}
	dims := ssn.Cluster().Dims()
	for d, n := range claim.Request {
		if n > 0 && dims.Shared(d) && api.InParts(d, claim.QueueHeld.At(d)+n) > deserved.At(d) {
			return false
		}
	}
	return true
}
