// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"cmp"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TaskInfo is a pod as the scheduler sees it. Pods of other schedulers are tasks without job.
type TaskInfo struct {
	ID  TaskID
	Pod *v1.Pod // as last shown by the API server; read only
	Key string  // namespace/name

	// Job is nil for pods of other schedulers.
	Job *JobInfo
	// Signature holds what the scheduler needs to know of the spec; tasks of equal spec share it.
	Signature *Signature
	// Request is Signature.Request: what the task takes on its node, one pod included. Read only.
	Request Resource
	// ShareRequest is Signature.ShareRequest: what counts in its queue. Read only.
	ShareRequest Resource
	// Priority is the pod's priority.
	Priority int32
	// Gated tasks wait for the removal of a scheduling gate and request nothing.
	Gated bool
	// Ordinal is one more than the index of the pod among those of its controller, as its labels say; 0 if they say none.
	Ordinal uint32
	// Created is the creation time in nanoseconds since 1970.
	Created int64
	// Deadline is when the kubelet ends the pod, in nanoseconds since 1970: see DeadlineOf. 0: never, or the pod has not started.
	Deadline int64

	Status TaskStatus
	// Node is where the task runs or will run: nil while it is pending and once it has ended. The node may
	// be unknown to the model (NodeInfo.Exists), then the task holds nothing.
	Node *NodeInfo

	// Tracking is maintained by package model.
	Tracking TaskTracking
}

// TaskTracking is what package model records about a task besides its pod. Other packages read it
// through the methods of TaskInfo.
type TaskTracking struct {
	// Bind is the commitment of the bind in the record of operations in flight; nil if none is in flight.
	// While it is set, Status and Node are the scheduler's decision, whatever an older watch event says.
	Bind *Commitment
	// Evicting is set from the commit of an eviction until the API server shows the deletion or
	// refuses it. Meanwhile the task is Releasing, whatever an older watch event says.
	Evicting bool
	// Overdue is set while a session does not count on the end of a pod that is being deleted.
	Overdue bool
	// EvictionBlocked is set while an eviction that was refused must not be retried.
	EvictionBlocked bool
	// NodeBound is set for pods that belong to their node: mirror pods and those of DaemonSets.
	NodeBound bool
	// Controlled is set for pods with a controller, which creates another pod when one is evicted.
	Controlled bool
	// Disrupted is set for failed pods that did not fail by themselves: they were evicted or are being deleted.
	Disrupted bool
	// LastBindError says why the last bind has not taken effect; empty if none has failed, or the task has a node since.
	LastBindError string
	// BoundAt is when the bind that is in flight was committed, in nanoseconds since 1970, and Started when the task got its
	// node: as the API server shows it, until then BoundAt. 0: not known.
	BoundAt, Started int64
	// MaximumRun is the limit that an annotation or a label of the pod declares; 0: none, invalidRun: none that can be read.
	MaximumRun time.Duration
	// Topology is what annotations of the pod declare about its domain; nil if they declare nothing.
	Topology *DeclaredTopology
	// Nominated is the node that another scheduler has reserved for this task by preemption.
	Nominated *NodeInfo

	IndexInJob int
	// SubGroup is what TaskInfo.SubGroup returns.
	SubGroup *SubGroup

	// NativeGroup is the namespace/name of the native group that the pod names; empty if it names none or counts in it, or
	// if native groups are not read.
	NativeGroup string

	// QueueLabel is the queue that the pod names, if groups of other APIs are read.
	QueueLabel QueueID

	// Owner is the object whose rule applies to the pod, shared with its other pods; nil if there is none. OwnerGone is set
	// if it does not exist.
	Owner     *OwnerRef
	OwnerGone bool

	// Class is the equivalence class as of ClassAt.
	Class   *EquivalenceClass
	ClassAt ClassVersion
}

// BestEffort reports whether the task requests nothing but a pod slot.
func (t *TaskInfo) BestEffort() bool { return t.Signature.BestEffort }

// Holds reports whether the task holds resources of a node that exists, and is not being deleted.
func (t *TaskInfo) Holds() bool { return t.Status.Holding() && t.Node != nil && t.Node.Exists() }

// Waiting reports whether the task may be placed: it is pending and not gated.
func (t *TaskInfo) Waiting() bool { return t.Status == Pending && !t.Gated }

// InFlight reports whether a bind of the task is committed and neither shown nor refused by the API server.
func (t *TaskInfo) InFlight() bool { return t.Tracking.Bind != nil }

// LastBindError says why the last bind of the task has not taken effect; empty if none has failed, or the task has
// a node since. It stays while the next attempt is in flight.
func (t *TaskInfo) LastBindError() string { return t.Tracking.LastBindError }

// Evictable reports whether the API server shows the task on an existing node, so that its eviction would release
// resources, and the pod would not return to that node.
func (t *TaskInfo) Evictable() bool {
	return !t.Tracking.EvictionBlocked && !t.Tracking.NodeBound && (t.Status == Bound || t.Status == Running) && t.Job != nil && t.Node != nil && t.Node.Exists()
}

// Controlled reports whether the pod has a controller, which creates another one if it is evicted.
func (t *TaskInfo) Controlled() bool { return t.Tracking.Controlled }

// Preempts reports whether pods may be evicted for t, as far as its pod and its group say.
func (t *TaskInfo) Preempts() bool {
	policy := t.Pod.Spec.PreemptionPolicy
	return (policy == nil || *policy != v1.PreemptNever) && !(t.Job != nil && t.Job.Group != nil && t.Job.Group.NeverPreempts)
}

// FailedByItself reports whether the pod has failed, and was neither evicted nor deleted.
func (t *TaskInfo) FailedByItself() bool { return t.Status == Failed && !t.Tracking.Disrupted }

// Overdue reports whether the session does not count on the end of the pod, which is being deleted.
func (t *TaskInfo) Overdue() bool { return t.Tracking.Overdue }

// Evicting reports whether an eviction of the task is committed and neither shown nor refused by the API server.
func (t *TaskInfo) Evicting() bool { return t.Tracking.Evicting }

// CompareRank orders the tasks of a job by the index that their labels say, as numbers: those of one controller after each
// other, so that tasks that are placed one after the other have neighbouring ranks. Tasks without index come first, such as a
// launcher. It is zero for two of those.
func CompareRank(a, b *TaskInfo) int {
	if a.Ordinal == 0 || b.Ordinal == 0 {
		return cmp.Compare(min(a.Ordinal, 1), min(b.Ordinal, 1))
	}
	return cmp.Or(cmp.Compare(controllerName(a), controllerName(b)), cmp.Compare(a.Ordinal, b.Ordinal))
}

func controllerName(t *TaskInfo) string {
	if owner := metav1.GetControllerOfNoCopy(t.Pod); owner != nil {
		return owner.Name
	}
	return ""
}

// CompareAge orders by creation, then by namespace and name: the last tie everywhere.
func CompareAge(createdA, createdB int64, keyA, keyB string) int {
	if n := cmp.Compare(createdA, createdB); n != 0 {
		return n
	}
	return cmp.Compare(keyA, keyB)
}
