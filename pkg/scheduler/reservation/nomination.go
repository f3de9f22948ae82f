// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package reservation

import (
	"slices"
	"time"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/place"
)

// NominatedName is the name of the action that places nominated jobs, in logs and metrics.
const NominatedName = "nominated"

// Nominated registers the policy that resources which pods were evicted for go to the preemptor, so that evictions are
// not in vain. Its action belongs before all others.
func Nominated() framework.ComponentSpec {
	return framework.ComponentSpec{Name: NominatedName, New: func(env framework.Environment) (framework.Plugin, framework.Action) {
		n := &nominations{byJob: restore(env.Cluster), backoffs: backoffs{}}
		return n, n
	}}
}

// nomination is what a preemptor is to get for its evictions. It ends
//
//   - when its tasks are bound;
//   - when there are no resources for them, now or later: evictions were refused, a node was lost, or a pod of another
//     scheduler took the resources;
//   - when the last victim is gone or overdue.
type nomination struct {
	placements []place.Placement // of the tasks that are to be placed
	victims    []api.TaskID      // some may be gone
}

// nominations are those of all preemptors, from session to session.
type nominations struct {
	byJob    map[api.JobID]*nomination
	backoffs backoffs
	open     *nominated
}

// nominated is what the policy knows in the session that is open.
type nominated struct {
	*nominations
	ssn *framework.Session

	reservations []*reservation
	nomination   map[*reservation]*nomination
	// outstanding are victims of nominations that have ended in this session.
	outstanding map[api.JobID][]api.TaskID
	held        []api.Decision // placements that were committed in this session and wait for resources
	bound       int            // how many were committed and do not wait
}

func (*nominations) Name() string { return NominatedName }

func (n *nominations) OnSessionOpen(ssn *framework.Session) {
	o := &nominated{nominations: n, ssn: ssn, nomination: map[*reservation]*nomination{}, outstanding: map[api.JobID][]api.TaskID{}}
	n.open = o
	ssn.AddActivateReservationFn(NominatedName, o.activate)
	ssn.AddEvictionAllowedFn(NominatedName, o.evictionAllowed)
	ssn.AddCommittedFn(NominatedName, o.committed)
	ssn.AddClosedFn(NominatedName, o.closed)
}

func (n *nominations) OnSessionClose(*framework.Session) { n.open = nil }

// activate makes what is reserved for the current job available.
func (o *nominated) activate(current *api.JobInfo) {
	for _, r := range o.reservations {
		if r.availableTo(o.ssn, current) {
			r.release(o.ssn)
		} else {
			r.hold(o.ssn)
		}
	}
}

// evictionAllowed reports whether the job is not in backoff. It asks for a session at the end of the backoff.
func (o *nominated) evictionAllowed(j *api.JobInfo) bool {
	until := o.backoffs.until(j.ID, o.ssn.Now)
	if !until.IsZero() {
		o.ssn.WakeAt(until)
	}
	return until.IsZero()
}

// committed records for which job a statement evicts, and its placements.
func (o *nominated) committed(decisions []api.Decision, held bool) {
	if !held && !slices.ContainsFunc(decisions, isEviction) { // so are most
		o.bound += len(decisions)
		return
	}
	var preemptor *api.JobInfo
	var victims []api.TaskID
	var placements []place.Placement
	for _, d := range decisions {
		if isEviction(d) {
			preemptor = d.For
			victims = append(victims, d.Task.ID)
			continue
		}
		placements = append(placements, place.PlacementOf(d))
		if held {
			o.held = append(o.held, d)
		} else {
			o.bound++
		}
	}
	if preemptor == nil || len(placements) == 0 {
		return
	}
	n := o.byJob[preemptor.ID]
	if n == nil {
		n = &nomination{victims: o.outstanding[preemptor.ID]} // the plan counts on their resources too
		o.byJob[preemptor.ID] = n
	}
	n.placements = append(n.placements, placements...)
	n.victims = append(n.victims, victims...)
	left, _ := o.pending(n)
	o.explain(preemptor, left, time.Time{})
}

func isEviction(d api.Decision) bool { return d.Kind == api.Evict }

// closed reports the nodes where tasks wait for victims.
func (o *nominated) closed() {
	for _, d := range o.held {
		if o.byJob[d.Task.Job.ID] != nil {
			o.ssn.SetNominatedNode(d.Task, d.Node.Name)
		}
	}
	for _, r := range o.reservations {
		r.release(o.ssn)
	}
}

// pending returns how many victims have not ended yet, and by when the API server expects the last of them to end; zero
// if it does not show that. Overdue victims and those on lost nodes do not count.
func (o *nominated) pending(n *nomination) (left int, until time.Time) {
	for _, id := range n.victims {
		t := o.ssn.Cluster().Tasks()[id]
		if t == nil || t.Status != api.Releasing || t.Node == nil || !t.Node.Ready() || t.Overdue() {
			continue
		}
		if shown := t.Pod.DeletionTimestamp; shown != nil && shown.After(until) {
			until = shown.Time
		}
		left++
	}
	return left, until
}

// anyPending is 1 if a victim has not ended yet, else 0.
func (o *nominated) anyPending(n *nomination) int {
	left, _ := o.pending(n)
	return min(left, 1)
}

// terminatingOn returns the pods that are being deleted on the nodes of placements.
func (o *nominated) terminatingOn(placements []place.Placement) []api.TaskID {
	var list []api.TaskID
	known := map[string]bool{}
	for _, placement := range placements {
		n := o.ssn.Cluster().Node(placement.Node)
		if n == nil || known[placement.Node] {
			continue
		}
		known[placement.Node] = true
		for id, t := range n.Tasks {
			if t.Status == api.Releasing {
				list = append(list, id)
			}
		}
	}
	slices.Sort(list)
	return list
}

// failed reports whether an eviction of the nomination was refused, or a node was lost: then no other pod has taken the
// resources.
func (o *nominated) failed(n *nomination) bool {
	return slices.ContainsFunc(n.victims, func(id api.TaskID) bool {
		t := o.ssn.Cluster().Tasks()[id]
		return t != nil && !t.Status.Ended() && (t.Status != api.Releasing || t.Node == nil || !t.Node.Ready())
	})
}

func (o *nominated) explain(j *api.JobInfo, left int, until time.Time) {
	v := &api.Verdict{Reason: v1alpha1.ReasonPreempting, Victims: int32(left), Until: until}
	if !o.ssn.JobReady(j) {
		o.ssn.Explain(j, v)
		return
	}
	for _, t := range j.Tasks {
		if t.Status == api.Pipelined {
			o.ssn.ExplainTasks(j, t.Signature, v)
		}
	}
}
