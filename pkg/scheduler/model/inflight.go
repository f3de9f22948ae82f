// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"maps"

	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// InFlight is the record of what the scheduler has committed and the API server has neither shown nor refused: binds,
// evictions, and backoffs of jobs. A task has its own operations (TaskTracking), so that a commit costs no lookup; the
// record has those of tasks that a model does not have. A model that replaces another starts with the record of that one
// (Options.InFlight), and each task that it creates gets its operations from there.
type InFlight struct {
	binds     map[api.TaskID]InFlightBind
	evictions map[api.TaskID]struct{}
	backoffs  map[api.JobID]string // why the job must not be tried now
}

// InFlightBind is a bind that was committed and that the API server has neither shown nor refused.
type InFlightBind struct {
	Node       string
	Commitment *api.Commitment // never changed; the members of a job share it
	At         int64           // when it was committed, in nanoseconds since 1970
}

// NewInFlight returns an empty record.
func NewInFlight() *InFlight {
	return &InFlight{
		binds:     map[api.TaskID]InFlightBind{},
		evictions: map[api.TaskID]struct{}{},
		backoffs:  map[api.JobID]string{},
	}
}

// Binds returns the binds in flight. Read only.
func (f *InFlight) Binds() map[api.TaskID]InFlightBind { return f.binds }

// Evictions returns the evictions in flight. Read only.
func (f *InFlight) Evictions() map[api.TaskID]struct{} { return f.evictions }

// AddBind records a bind of a pod that no model has yet.
func (f *InFlight) AddBind(id api.TaskID, bind InFlightBind) { f.binds[id] = bind }

// AddEviction records an eviction of a pod that no model has yet.
func (f *InFlight) AddEviction(id api.TaskID) { f.evictions[id] = struct{}{} }

// InFlight returns the record of all operations in flight, for the model that replaces this one.
func (c *Cluster) InFlight() *InFlight {
	all := &InFlight{binds: maps.Clone(c.inFlight.binds), evictions: maps.Clone(c.inFlight.evictions), backoffs: maps.Clone(c.inFlight.backoffs)}
	for _, t := range c.tasks {
		if t.InFlight() {
			all.AddBind(t.ID, InFlightBind{Node: c.inFlight.nodeOf(t), Commitment: t.Tracking.Bind, At: t.Tracking.BoundAt})
		}
		if t.Evicting() {
			all.AddEviction(t.ID)
		}
	}
	return all
}

// nodeOf returns the node of the bind of t that is in flight.
func (f *InFlight) nodeOf(t *api.TaskInfo) string {
	if t.Node != nil {
		return t.Node.Name
	}
	return f.binds[t.ID].Node // t was just created
}

// currentCommitment returns where members of j count whose binds are decided now. All of them share the result until
// the group or the queue of the job changes.
func currentCommitment(j *api.JobInfo) *api.Commitment {
	if j.Tracking.Commitment == nil {
		now := &api.Commitment{GroupUID: j.GroupUID()}
		if j.Queue != nil {
			now.Queue = j.Queue.ID
		}
		j.Tracking.Commitment = now
	}
	return j.Tracking.Commitment
}

func (f *InFlight) endBind(t *api.TaskInfo) {
	delete(f.binds, t.ID)
	t.Tracking.Bind, t.Tracking.BoundAt = nil, 0
}

func (f *InFlight) endEviction(t *api.TaskInfo) {
	delete(f.evictions, t.ID)
	t.Tracking.Evicting = false
}

// restore gives a new task what is recorded for its pod.
func (f *InFlight) restore(t *api.TaskInfo) {
	bind := f.binds[t.ID]
	t.Tracking.Bind, t.Tracking.BoundAt = bind.Commitment, bind.At
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
