// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package reservation

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/place"
)

// StarvationName is the name of the action that reserves resources for gangs that wait, in logs and metrics.
const StarvationName = "reservation"

// Starvation registers the policy that keeps resources for gangs that have waited long. Without it a stream of small jobs
// would take whatever becomes free, piece by piece, and a gang that needs many pieces at once would never start. Its
// action belongs before those of the configuration and after nominated.
//
// If the configuration has reservations with a start time, they serve the gangs whose start is known.
func Starvation() framework.ComponentSpec {
	return framework.ComponentSpec{Name: StarvationName, New: func(env framework.Environment) (framework.Plugin, framework.Action) {
		s := &starvation{
			after: env.Configuration.StarvationAfter, waits: map[*framework.JobClass]waits{},
			planned: planned{Reservations: env.Configuration.Reservations, delays: delays{}},
		}
		s.reserver = place.NewReserver(s.lastPlacements)
		return s, s
	}}
}

// starvation remembers what the last session has reserved, so that gangs keep to their nodes.
type starvation struct {
	after    time.Duration // how long a gang waits before resources are reserved for it; 0: resources are never reserved
	previous map[api.JobID]place.Placements
	waits    map[*framework.JobClass]waits
	open     []*reservation // of the session that is open
	planned  planned
	reserver *place.Reserver
}

// waits are since when the jobs of a job class wait, sorted, at a version of its jobs.
type waits struct {
	version uint64
	since   []int64
}

func (*starvation) Name() string { return StarvationName }

func (s *starvation) OnSessionOpen(ssn *framework.Session) {
	s.open = nil
	s.reserver.Open(ssn)
	fns := framework.ReservationFns{Activate: func(current *api.JobInfo) { s.activate(ssn, current) }}
	if s.planned.enabled() {
		s.planned.opened(ssn, func() { s.releaseAll(ssn) })
		fns.Skip = s.planned.skip
		ssn.AddEvictionAllowedFn(StarvationName, s.planned.evictionAllowed)
		fns.Unplaced = func(j *api.JobInfo) bool { return s.unplaced(ssn, j) }
	}
	fns.Describe = func(j *api.JobInfo) *api.StarvationReservation { return s.describe(ssn, j) }
	ssn.AddReservationFns(StarvationName, fns)
	ssn.AddClosedFn(StarvationName, func() { s.close(ssn) })
}

func (*starvation) OnSessionClose(*framework.Session) {}

// Execute reserves resources for gangs that have waited long enough. Allocate places such a gang when all of it fits.
func (s *starvation) Execute(ctx context.Context, ssn *framework.Session) error {
	// 1. Plan the starts of gangs, as far as the ends of pods are known. Jobs that should have ended are evicted for them.
	if s.planned.enabled() {
		due := s.planned.due(ssn)
		s.planned.planAgain()
		s.planned.evictFor(due)
	}

	// 2. Of the others, choose one gang of each queue, the first in job order, and the nodes that will have its resources soonest.
	chosen := s.choose(ctx, ssn)

	// 3. Reserve what is free there until the session closes.
	for _, c := range chosen {
		r := &reservation{job: c.job, placements: c.placements}
		r.hold(ssn)
		s.open = append(s.open, r)
		if s.previous[c.job.ID] == nil {
			logCreated(ssn, r)
		}
	}
	return ctx.Err()
}

// activate makes what is reserved for the current job available. A gang that has all its nodes needs no others.
func (s *starvation) activate(ssn *framework.Session, current *api.JobInfo) {
	s.planned.activate(current)
	s.holdFrom(ssn, current)
}

// holdFrom makes the reservations available that the current job may use, and holds the others. Planned starts come first:
// others reserve what these leave.
func (s *starvation) holdFrom(ssn *framework.Session, current *api.JobInfo) {
	for _, r := range s.open {
		switch available := ssn.JobPipelined(r.job) || r.availableTo(ssn, current); {
		case available:
			r.release(ssn)
		case r.held == nil:
			s.planned.keepAll(func() { r.hold(ssn) })
		}
	}
}

// releaseAll releases the reservations of gangs whose start is not known.
func (s *starvation) releaseAll(ssn *framework.Session) {
	for _, r := range s.open {
		r.release(ssn)
	}
}

// unplaced is called with each job whose gang could not be placed. If its start can be planned, it needs no other
// reservation, and if it is after the window, it gets none.
func (s *starvation) unplaced(ssn *framework.Session, j *api.JobInfo) (again bool) {
	again = s.planned.unplaced(j)
	if s.planned.unknown[j] {
		s.planned.keepAll(func() { s.reserveFor(ssn, j) })
	}
	if i := slices.IndexFunc(s.open, func(r *reservation) bool { return r.job == j }); i >= 0 && (s.planned.has(j) || s.planned.far.hasNow(j)) {
		s.open[i].release(ssn)
		s.open = slices.Delete(s.open, i, i+1)
	}
	s.holdFrom(ssn, j)
	return again
}

// reserveFor reserves resources for a gang whose start is looked for and not known, unless its queue has such a gang.
func (s *starvation) reserveFor(ssn *framework.Session, j *api.JobInfo) {
	if slices.ContainsFunc(s.open, func(r *reservation) bool { return r.job.Queue == j.Queue && !ssn.JobPipelined(r.job) }) {
		return
	}
	stmt := ssn.Statement()
	if !s.reserver.Gang(stmt, claimOf(ssn, j), ssn.WaitingTasks(j)) {
		return
	}
	r := &reservation{job: j, placements: stmt.Decisions()}
	stmt.Discard()
	r.hold(ssn)
	s.open = append(s.open, r)
	if s.previous[j.ID] == nil {
		logCreated(ssn, r)
	}
}

// lastPlacements returns what the last session has reserved for a job; nil if nothing.
func (s *starvation) lastPlacements(j *api.JobInfo) place.Placements { return s.previous[j.ID] }

// describe says what is reserved for the current job.
func (s *starvation) describe(ssn *framework.Session, job *api.JobInfo) *api.StarvationReservation {
	for _, r := range s.open {
		if r.job != job {
			continue
		}
		fit, waits := startable(r.placements)
		d := &api.StarvationReservation{
			After: s.after, Nodes: countNodes(r.placements), Domain: domainOf(ssn, r), Startable: fit, Need: int32(len(r.placements)),
			Awaited: holders(job, waits),
		}
		if s.planned.enabled() {
			now := ssn.Now.UnixNano()
			d.Planned = s.after == 0 || ssn.Now.Before(waitsSince(ssn, job).Add(s.after))
			d.Unbounded = awaited(job, waits, func(t *api.TaskInfo) bool { return expectedEnd(t, now) == api.NoEnd })
		}
		return d
	}
	return nil
}

// domainOf returns the topology domain of a reservation, if the gang as a whole must be in one; else it is empty.
func domainOf(ssn *framework.Session, r *reservation) api.DomainName {
	first := r.placements[0]
	level := r.job.TopologyLevel
	if level == nil {
		level = ssn.Cluster().ClassOf(first.Task).RequiredLevel()
	}
	if level == nil {
		return ""
	}
	path, ok := level.Path(first.Node.Node.Labels)
	if !ok {
		return ""
	}
	return level.Domain(path)
}

// startable counts the placements that fit on available resources, and returns the nodes of the others.
func startable(placements []api.Decision) (fit int32, waits []*api.NodeInfo) {
	available, full := map[*api.NodeInfo]api.Resource{}, map[*api.NodeInfo]bool{}
	for _, p := range placements {
		left, known := available[p.Node]
		if !known {
			left = p.Node.Available(p.Task.Priority, api.Now)
		}
		if p.Task.Request.Fits(left) {
			left.Sub(p.Task.Request)
			fit++
		} else if !full[p.Node] {
			full[p.Node] = true
			waits = append(waits, p.Node)
		}
		available[p.Node] = left
	}
	return fit, waits
}

// holders returns the pods of other jobs that hold resources of the nodes, node by node and by name.
func holders(job *api.JobInfo, nodes []*api.NodeInfo) api.AwaitedPods {
	return awaited(job, nodes, func(t *api.TaskInfo) bool { return t.Job != nil && t.Job != job })
}

// awaited returns the pods for which is returns true of those that hold resources of the nodes, node by node and by name.
func awaited(job *api.JobInfo, nodes []*api.NodeInfo, is func(*api.TaskInfo) bool) (awaited api.AwaitedPods) {
	for _, n := range nodes {
		var pods []*api.TaskInfo
		for _, t := range n.Tasks {
			if is(t) && (t.Status.Holding() || t.Status == api.Releasing) {
				pods = append(pods, t)
			}
		}
		if !awaited.Full() {
			slices.SortFunc(pods, func(a, b *api.TaskInfo) int { return cmp.Compare(a.Key, b.Key) })
		}
		for _, t := range pods {
			awaited.Add(t, job)
		}
	}
	return awaited
}

func countNodes(placements []api.Decision) int {
	nodes := map[*api.NodeInfo]bool{}
	for _, p := range placements {
		nodes[p.Node] = true
	}
	return len(nodes)
}

// close ends the reservations and remembers them for the next session. If they have changed, claims that found no plan
// because of them may find one.
func (s *starvation) close(ssn *framework.Session) {
	s.reserver.Close()
	if s.planned.enabled() && s.planned.close() {
		ssn.Plans().Invalidate()
	}
	if len(s.open) == 0 && len(s.previous) == 0 {
		return
	}
	before := s.previous
	s.previous = map[api.JobID]place.Placements{}
	for _, r := range s.open {
		r.release(ssn)
		placements := place.Placements{}
		for _, d := range r.placements {
			placements[place.PlacementOf(d)]++
		}
		s.previous[r.job.ID] = placements
	}
	s.open = nil
	logReleased(ssn, before, s.previous)
	if !maps.EqualFunc(before, s.previous, func(a, b place.Placements) bool { return maps.Equal(a, b) }) {
		ssn.Plans().Invalidate()
	}
}
