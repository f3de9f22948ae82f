// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// InFlight is the record of what the scheduler has committed and the API server has neither shown nor refused: binds,
// evictions, and backoffs of jobs. It is the only place that has it: a model that replaces another gets the record of
// that one (Options.InFlight) and applies it while the objects are replayed. The tasks refer to its commitments.
type InFlight struct {
	binds     map[api.TaskID]InFlightBind
	evictions map[api.TaskID]struct{}
	backoffs  map[api.JobID]string // why the job must not be tried now
}

// InFlightBind is a bind that was committed and that the API server has neither shown nor refused.
type InFlightBind struct {
	Node       string
	Commitment *api.Commitment // never changed; the members of a job share it
}

// NewInFlight returns an empty record.
func NewInFlight() *InFlight {
	return &InFlight{
		binds:     map[api.TaskID]InFlightBind{},
		evictions: map[api.TaskID]struct{}{},
		backoffs:  map[api.JobID]string{},
	}
}

// AddBind records a bind of a pod that no model has yet.
func (f *InFlight) AddBind(id api.TaskID, bind InFlightBind) { f.binds[id] = bind }

// AddEviction records an eviction of a pod that no model has yet.
func (f *InFlight) AddEviction(id api.TaskID) { f.evictions[id] = struct{}{} }

// addBind records the bind of t to its node, and where t counts from now on.
func (f *InFlight) addBind(t *api.TaskInfo) {
	t.Tracking.Bind = currentCommitment(t.Job)
	f.AddBind(t.ID, InFlightBind{Node: t.Node.Name, Commitment: t.Tracking.Bind})
}

// currentCommitment returns where members of j count whose binds are decided now. All of them share the result until
// the group or the queue of the job changes.
func currentCommitment(j *api.JobInfo) *api.Commitment {
	now := api.Commitment{GroupUID: j.GroupUID()}
	if j.Queue != nil {
		now.Queue = j.Queue.ID
	}
	if shared := j.Tracking.Commitment; shared == nil || *shared != now {
		j.Tracking.Commitment = new(now) // &now would allocate in every call
	}
	return j.Tracking.Commitment
}

func (f *InFlight) endBind(t *api.TaskInfo) {
	delete(f.binds, t.ID)
	t.Tracking.Bind = nil
}

func (f *InFlight) addEviction(t *api.TaskInfo) {
	f.AddEviction(t.ID)
	t.Tracking.Evicting = true
}

func (f *InFlight) endEviction(t *api.TaskInfo) {
	delete(f.evictions, t.ID)
	t.Tracking.Evicting = false
}

// restore gives a new task what is recorded for its pod.
func (f *InFlight) restore(t *api.TaskInfo) {
	t.Tracking.Bind = f.binds[t.ID].Commitment
	_, t.Tracking.Evicting = f.evictions[t.ID]
}

// forget drops what is recorded for a deleted pod.
func (f *InFlight) forget(uid types.UID) {
	delete(f.binds, api.TaskID(uid))
	delete(f.evictions, api.TaskID(uid))
}

func (f *InFlight) setBackoff(j *api.JobInfo, why string) {
	j.Tracking.Backoff = why
	if why == "" {
		delete(f.backoffs, j.ID)
	} else {
		f.backoffs[j.ID] = why
	}
}
