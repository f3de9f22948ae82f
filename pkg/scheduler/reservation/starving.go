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
	starving := s.starvingGangs(ssn)
	if len(starving) == 0 {
		return nil
	}
	c := &chooser{
		starvation: s, ssn: ssn, starving: starving, served: map[*api.QueueInfo]bool{},
	}
	list := worklist.New(ssn, ssn.Jobs())
	for job := list.Next(); job != nil && ctx.Err() == nil; job = list.Next() {
		ssn.ActivateReservation(job)
		c.consider(job)
	}
	for _, one := range slices.Backward(c.chosen) {
		one.stmt.Discard()
	}
	s.planned.release() // it could keep less while these were pipelined
	ssn.ActivateReservation(nil)
	return c.chosen
}

// starvingGangs returns the gangs that have waited long enough, and asks for a session when the next one will have.
func (s *starvation) starvingGangs(ssn *framework.Session) map[*api.JobInfo]bool {
	found := s.lookedFor(ssn) // most sessions find none
	if s.after == 0 {
		return found
	}
	starves := func(j *api.JobInfo) {
		switch due := waitsSince(ssn, j).Add(s.after); {
		case ssn.JobPipelined(j):
		case ssn.Now.Before(due):
			ssn.WakeAt(due)
		case found == nil:
			found = map[*api.JobInfo]bool{j: true}
		default:
			found[j] = true
		}
	}
	b := ssn.Backlog()
	for _, j := range b.Unclassified() {
		starves(j)
	}
	for _, jc := range b.JobClasses() {
		if due := s.firstOf(ssn, jc).Add(s.after); ssn.Now.Before(due) {
			ssn.WakeAt(due)
			continue
		}
		for _, j := range jc.Jobs() {
			if b.JobClass(j) == jc {
				starves(j)
			}
		}
	}
	return found
}

// lookedFor returns the gangs that have a reservation because their start was looked for and is not known.
func (s *starvation) lookedFor(ssn *framework.Session) map[*api.JobInfo]bool {
	if !s.planned.enabled() {
		return nil
	}
	found := map[*api.JobInfo]bool{}
	for id := range s.previous {
		if j := ssn.Cluster().Jobs()[id]; j != nil && ssn.Backlog().IsOpen(j) && !ssn.JobPipelined(j) {
			found[j] = true
		}
	}
	return found
}

// firstOf returns since when the first of the jobs of a job class waits. It is remembered while they are the same.
func (s *starvation) firstOf(ssn *framework.Session, jc *framework.JobClass) time.Time {
	known, ok := s.first[jc]
	if ok && known.version == jc.Version() {
		return known.since
	}
	if len(s.first) > 2*len(ssn.Backlog().JobClasses())+64 {
		clear(s.first) // most of these do not exist any more
	}
	var first time.Time
	for i, j := range jc.Jobs() {
		if since := waitsSince(ssn, j); i == 0 || since.Before(first) {
			first = since
		}
	}
	s.first[jc] = firstWait{jc.Version(), first}
	return first
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
	starving map[*api.JobInfo]bool
	first    *api.QueueInfo // in queue order, of those with a job that could start or grow
	served   map[*api.QueueInfo]bool
	chosen   []chosen
}

// consider is called for all jobs, the best queue first.
func (c *chooser) consider(job *api.JobInfo) {
	starves := c.starving[job]
	if c.served[job.Queue] || c.first != nil && !starves || !couldStart(c.ssn, job) {
		return
	}
	if c.first == nil {
		c.first = job.Queue
	}
	if !starves || c.planned.has(job) || c.planned.far.has(job) {
		return
	}
	tasks := c.ssn.WaitingTasks(job)
	claim := worklist.Claim(c.ssn, job, tasks)
	if claim == nil || !c.mayReserve(claim) {
		return
	}
	stmt := c.ssn.Statement()
	if c.reserver.Gang(stmt, claim, tasks) {
		c.served[job.Queue] = true
		c.chosen = append(c.chosen, chosen{job, stmt, stmt.Decisions()})
	}
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
