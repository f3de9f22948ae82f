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

// Nominated registers the policy that keeps resources which pods were evicted for until the preemptor is placed. Its
// action belongs before all others.
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
//   - when the last victim has ended or is overdue.
type nomination struct {
	placements  []place.Placement // of the tasks that are to be placed
	victims     []api.TaskID      // some may have ended
	reservation *reservation      // in the session that is open
}

// nominations are those of all preemptors, from session to session.
type nominations struct {
	byJob    map[api.JobID]*nomination
	backoffs backoffs

	// The rest belongs to the session that is open.
	ssn      *framework.Session
	reserved []*nomination
	// outstanding are victims of nominations that have ended in this session.
	outstanding map[api.JobID][]api.TaskID
	held        []api.Decision // placements that were committed in this session and wait for resources
	bound       int            // how many were committed and do not wait
}

func (*nominations) Name() string { return NominatedName }

func (n *nominations) OnSessionOpen(ssn *framework.Session) {
	n.ssn, n.outstanding = ssn, map[api.JobID][]api.TaskID{}
	ssn.AddReservationFns(NominatedName, framework.ReservationFns{Activate: n.activate})
	ssn.AddEvictionAllowedFn(NominatedName, n.evictionAllowed)
	ssn.AddCommittedFn(NominatedName, n.committed)
	ssn.AddClosedFn(NominatedName, n.closed)
}

func (n *nominations) OnSessionClose(*framework.Session) {
	*n = nominations{byJob: n.byJob, backoffs: n.backoffs}
}

// activate makes what is reserved for the current job available.
func (n *nominations) activate(current *api.JobInfo) {
	for _, one := range n.reserved {
		if one.reservation.availableTo(n.ssn, current) {
			one.reservation.release(n.ssn)
		} else {
			one.reservation.hold(n.ssn)
		}
	}
}

// evictionAllowed reports whether the job is not in backoff. It asks for a session at the end of the backoff.
func (n *nominations) evictionAllowed(j *api.JobInfo) bool {
	until := n.backoffs.until(j.ID, n.ssn.Now)
	if !until.IsZero() {
		n.ssn.WakeAt(until)
	}
	return until.IsZero()
}

// committed records for which job a statement evicts, and its placements.
func (n *nominations) committed(decisions []api.Decision, held bool) {
	if !held && !slices.ContainsFunc(decisions, isEviction) { // so are most
		n.bound += len(decisions)
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
			n.held = append(n.held, d)
		} else {
			n.bound++
		}
	}
	if preemptor == nil || len(placements) == 0 {
		return
	}
	one := n.byJob[preemptor.ID]
	if one == nil {
		one = &nomination{victims: n.outstanding[preemptor.ID]} // the plan counts on their resources too
		n.byJob[preemptor.ID] = one
	}
	one.placements = append(one.placements, placements...)
	one.victims = append(one.victims, victims...)
	n.explain(preemptor, one, time.Time{})
}

func isEviction(d api.Decision) bool { return d.Kind == api.Evict }

// closed reports the nodes where tasks wait for victims, and ends the reservations.
func (n *nominations) closed() {
	for _, d := range n.held {
		if n.byJob[d.Task.Job.ID] != nil {
			n.ssn.SetNominatedNode(d.Task, d.Node.Name)
		}
	}
	for _, one := range n.reserved {
		one.reservation.release(n.ssn)
	}
}

// pending returns how many victims have not ended yet, and by when the API server expects the last of them to end; zero
// if it does not show that.
func (n *nominations) pending(one *nomination) (left int, until time.Time) {
	for _, id := range one.victims {
		t := n.terminating(id)
		if t == nil {
			continue
		}
		if shown := t.Pod.DeletionTimestamp; shown != nil && shown.After(until) {
			until = shown.Time
		}
		left++
	}
	return left, until
}

// terminating returns the victim with that id if it has not ended yet, else nil. Overdue victims and those on lost nodes do
// not count.
func (n *nominations) terminating(id api.TaskID) *api.TaskInfo {
	t := n.ssn.Cluster().Tasks()[id]
	if t == nil || t.Status != api.Releasing || t.Node == nil || !t.Node.Ready() || t.Overdue() {
		return nil
	}
	return t
}

// anyPending is 1 if a victim has not ended yet, else 0.
func (n *nominations) anyPending(one *nomination) int {
	left, _ := n.pending(one)
	return min(left, 1)
}

// terminatingOn returns the pods that are being deleted on the nodes of placements.
func (n *nominations) terminatingOn(placements []place.Placement) []api.TaskID {
	var list []api.TaskID
	known := map[string]bool{}
	for _, placement := range placements {
		node := n.ssn.Cluster().Node(placement.Node)
		if node == nil || known[placement.Node] {
			continue
		}
		known[placement.Node] = true
		for id, t := range node.Tasks {
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
func (n *nominations) failed(one *nomination) bool {
	return slices.ContainsFunc(one.victims, func(id api.TaskID) bool {
		t := n.ssn.Cluster().Tasks()[id]
		return t != nil && !t.Status.Ended() && (t.Status != api.Releasing || t.Node == nil || !t.Node.Ready())
	})
}

// explain records for which victims the job waits, and until when.
func (n *nominations) explain(j *api.JobInfo, one *nomination, until time.Time) {
	left, _ := n.pending(one)
	v := &api.Verdict{Reason: v1alpha1.ReasonPreempting, Victims: int32(left), Until: until}
	for _, id := range one.victims {
		if t := n.terminating(id); t != nil {
			v.Awaited.Add(t, j)
		}
	}
	if !n.ssn.JobReady(j) {
		n.ssn.Explain(j, v)
		return
	}
	for _, t := range j.Tasks {
		if t.Status == api.Pipelined {
			n.ssn.ExplainTasks(j, t.Signature, v)
		}
	}
}
