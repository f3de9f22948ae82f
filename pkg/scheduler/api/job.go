// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"cmp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// JobInfo is a PodGroup with its tasks, or a job without PodGroup (a shadow).
type JobInfo struct {
	ID        JobID
	Index     int    // among the jobs that exist; small, and used again when the job is gone
	Key       string // namespace/name of the group; for shadows that of their first pod's owner
	Namespace string

	// Group is nil for shadows, and while the group that pods name does not exist.
	Group *Group
	// GroupName is the namespace/name of the group that members ask for, which is of Source; empty for shadows.
	GroupName string
	Source    GroupSource

	// Unsupported is the group of another API that the members of a shadow name; nil if they name none. They are not
	// placed, and what they request does not count.
	Unsupported *GroupReference
	// Owner is the object that makes a gang of the members of a shadow; nil if there is none.
	Owner *JobOwner

	// QueueName is the queue that the job asks for.
	QueueName QueueID
	// Queue is where the job counts: the queue of its name, else the default queue, else nil.
	Queue *QueueInfo

	// MinMember is how many members must run together, those of subgroups included.
	MinMember int32
	// SubGroups is the gang as the root of the tree of its subgroups; nil for most jobs.
	SubGroups *SubGroup
	// TopologyLevel is the level of which all members must be in one domain; nil for most jobs, and while the level or its
	// topology does not exist.
	TopologyLevel *TopologyLevel
	// PreferredLevel is the level of which the members use as few domains as possible; nil for most jobs. It is not wider than
	// TopologyLevel. PreferredWait is how long the gang waits for one domain of it.
	PreferredLevel *TopologyLevel
	PreferredWait  time.Duration
	// Priority is that of the group's priority class, else the highest among active members.
	Priority int32
	Created  int64 // nanoseconds since 1970

	// RunTime is what the job declares about its run time, else its queue for it.
	RunTime RunTime
	// Started is when MinMember members had nodes, in nanoseconds since 1970; 0 if the gang is not ready, or that is unknown.
	Started int64

	// MinResources is spec.minResources, nil if not given.
	MinResources Resource

	// Generation changes when anything about the members does.
	Generation uint64

	// Tasks are the members, in no order.
	Tasks []*TaskInfo

	// Allocated sums tasks that hold resources and Pipelined ones: what shares count.
	Allocated Resource
	// Releasing sums members that are being deleted.
	Releasing Resource
	// Requested sums members that are pending and not gated; zero for a job with an Unsupported group or an unknown owner.
	Requested Resource

	// Tracking is maintained by package model.
	Tracking JobTracking
}

// JobTracking is what package model derives from the members and the group of a job. Other packages read it
// through the methods of JobInfo.
type JobTracking struct {
	MemberCounts

	Conflict string // why pods with a group key do not agree about the size of the gang; empty if they do
	// OtherQueue is a queue that some pods name besides QueueName, if the group is of another API and names none. QueueStale
	// is set if it, or QueueName, may have changed since it was derived.
	OtherQueue QueueID
	QueueStale bool
	// InvalidSubGroups says why the subgroups of the group cannot be read; empty if they can.
	InvalidSubGroups string

	// UnknownTopology says why the topology constraint of the group names no level; empty if it names one, or if there is no
	// constraint.
	UnknownTopology string

	// Topology is what the pods of a shadow declare about their domains, and SlicedFor the size of the gang for which their
	// slices were made.
	Topology  DeclaredTopology
	SlicedFor int32

	// InvalidRunTime says which declarations of a run time are ignored, and why; empty if none are.
	InvalidRunTime string

	Backoff       string      // why the job must not be tried now; empty if it may be
	GroupPriority *int32      // of the group's priority class; nil if there is none
	Commitment    *Commitment // shared by all members whose binds were decided with it

	Changed      bool                   // since the last Recompute
	CountedPhase v1alpha1.PodGroupPhase // as which Queue.Groups counts the job; empty for shadows
}

// GetName returns the name in Key. With GetNamespace it makes the job an object that klog.KObj accepts.
func (j *JobInfo) GetName() string { return j.Key[strings.Index(j.Key, "/")+1:] }

// GetNamespace returns the namespace of the job.
func (j *JobInfo) GetNamespace() string { return j.Namespace }

// Shadow reports whether the job consists of pods without PodGroup.
func (j *JobInfo) Shadow() bool { return j.GroupName == "" }

// Count returns how many members are in status s.
func (j *JobInfo) Count(s TaskStatus) int32 { return j.Tracking.Counts[s] }

// Gated returns how many pending members have scheduling gates.
func (j *JobInfo) Gated() int32 { return j.Tracking.Gated }

// Waiting returns how many members could be placed.
func (j *JobInfo) Waiting() int32 { return j.Tracking.Waiting() }

// Holding returns how many members hold resources of existing nodes.
func (j *JobInfo) Holding() int32 { return j.Tracking.Holding() }

// ReadyCount counts members that hold their resources or have succeeded.
func (j *JobInfo) ReadyCount() int32 { return j.Tracking.ReadyCount() }

// Ready reports whether the gang has all the members that it needs to start.
func (j *JobInfo) Ready() bool { return j.complete((*MemberCounts).ReadyCount) }

// Pipelined reports whether the gang has all the members that it needs once resources that are being released are free.
func (j *JobInfo) Pipelined() bool { return j.complete((*MemberCounts).PipelinedCount) }

// Valid reports whether enough members exist to start the gang.
func (j *JobInfo) Valid() bool { return j.complete((*MemberCounts).ValidCount) }

// complete reports whether the members that count suffice for the gang and for all its subgroups.
func (j *JobInfo) complete(count Count) bool {
	return count(&j.Tracking.MemberCounts) >= j.MinMember && (j.SubGroups == nil || j.SubGroups.Complete(count))
}

// Degraded reports whether some members hold resources although the gang is not ready.
func (j *JobInfo) Degraded() bool { return j.Holding() > 0 && !j.Ready() }

// ValidCount counts members that run, have succeeded, or could be placed.
func (j *JobInfo) ValidCount() int32 { return j.Tracking.ValidCount() }

// Surplus counts members beyond those that must run together. They may be evicted one by one, unless the job has
// subgroups: see SurplusUnit. A group that is evicted as a whole has none.
func (j *JobInfo) Surplus() int32 {
	if j.Group.IsWhole() {
		return 0
	}
	return max(j.ReadyCount()-j.MinMember, 0)
}

// Active counts members that have not ended.
func (j *JobInfo) Active() int32 {
	return int32(len(j.Tasks)) - j.Tracking.Counts[Succeeded] - j.Tracking.Counts[Failed]
}

// GroupUID returns the UID of the PodGroup, empty for shadows.
func (j *JobInfo) GroupUID() types.UID {
	if j.Group == nil {
		return ""
	}
	return j.Group.UID
}

// UnknownPriorityClass returns the priority class that the group names, if there is no such class.
// The highest priority of the members counts then.
func (j *JobInfo) UnknownPriorityClass() (name string, unknown bool) {
	if j.Group == nil || j.Tracking.GroupPriority != nil {
		return "", false
	}
	return j.Group.Spec.PriorityClassName, j.Group.Spec.PriorityClassName != ""
}

// Phase derives status.phase from the counts.
func (j *JobInfo) Phase() v1alpha1.PodGroupPhase {
	switch {
	case len(j.Tasks) == 0 && j.Group != nil && terminal(j.Group.Status.Phase):
		return j.Group.Status.Phase // the pods were deleted after they had ended
	case j.Active() == 0 && j.Failures() > 0 && !j.complete(succeeded):
		return v1alpha1.PodGroupFailed
	case j.Active() == 0 && j.Tracking.Counts[Succeeded] > 0:
		return v1alpha1.PodGroupFinished
	case j.Running() > 0 && j.complete(runningOrSucceeded):
		return v1alpha1.PodGroupRunning
	case j.Running() > 0 && !j.Ready(): // else the binds of the other members are in flight
		return v1alpha1.PodGroupUnknown
	}
	return v1alpha1.PodGroupPending
}

// Failures counts members that have failed, without those that were evicted or deleted.
func (j *JobInfo) Failures() int32 { return j.Tracking.Counts[Failed] - j.Tracking.Disrupted }

// Ended reports whether the group has finished or failed.
func (j *JobInfo) Ended() bool { return terminal(j.Phase()) }

func terminal(phase v1alpha1.PodGroupPhase) bool {
	return phase == v1alpha1.PodGroupFinished || phase == v1alpha1.PodGroupFailed
}

// Running counts members that the API server shows on an existing node: unlike Holding it leaves out
// binds in flight.
func (j *JobInfo) Running() int32 { return j.Tracking.Running() }

// Waits reports whether a session has to place or report on the job: it has pending members,
// or its group is neither running nor ended.
func (j *JobInfo) Waits() bool {
	return j.Tracking.Counts[Pending] > 0 || j.Group != nil && !j.Ready() && !j.Ended()
}

// CompareJobAge orders jobs by creation, then by namespace and name, then by id. It is never zero for two jobs.
func CompareJobAge(a, b *JobInfo) int {
	if n := CompareAge(a.Created, b.Created, a.Key, b.Key); n != 0 {
		return n
	}
	return cmp.Compare(a.ID, b.ID)
}
