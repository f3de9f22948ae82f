package api

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// JobInfo is a PodGroup with its tasks, or a job without PodGroup (a shadow).
type JobInfo struct {
	ID        JobID
	Key       string // namespace/name of the group; for shadows that of their first pod's owner
	Namespace string

	// Group is nil for shadows, and while the group that pods name does not exist.
	Group *v1alpha1.PodGroup
	// GroupName is the namespace/name of the group that members ask for; empty for shadows.
	GroupName string

	// QueueName is the queue that the job asks for.
	QueueName QueueID
	// Queue is where the job counts: the queue of its name, else the default queue, else nil.
	Queue *QueueInfo

	MinMember int32
	// Priority is that of the group's priority class, else the highest among active members.
	Priority int32
	Created  int64 // nanoseconds since 1970

	// MinResources is spec.minResources, nil if not given.
	MinResources Resource

	// Generation changes when anything about the members does.
	Generation uint64

	// Tasks are the members, in no order.
	Tasks  []*TaskInfo
	counts [NumStatus]int32
	gated  int32
	lost   int32 // in a holding status, but on no existing node

	// Allocated sums tasks that hold room and Pipelined ones: what shares count.
	Allocated Resource
	// Releasing sums members that are being deleted.
	Releasing Resource
	// Requested sums members that wait and are not gated.
	Requested Resource

	backoff       string // why the job must not be tried now; empty if it may be
	groupPriority *int32 // of the group's priority class
	committed     *Commitment
	dirty         bool
	counted       v1alpha1.PodGroupPhase // as which Queue.Groups counts the job; empty for shadows
}

// Shadow tells whether the job stands for pods without PodGroup.
func (j *JobInfo) Shadow() bool { return j.GroupName == "" }

// Count returns how many members are in status s.
func (j *JobInfo) Count(s TaskStatus) int32 { return j.counts[s] }

// Gated returns how many waiting members have scheduling gates.
func (j *JobInfo) Gated() int32 { return j.gated }

// Waiting returns how many members could be placed.
func (j *JobInfo) Waiting() int32 { return j.counts[Pending] - j.gated }

// Holding returns how many members hold room on existing nodes.
func (j *JobInfo) Holding() int32 {
	return j.counts[Allocated] + j.counts[Binding] + j.counts[Bound] + j.counts[Running] - j.lost
}

// ReadyCount counts members that hold their room or have succeeded.
func (j *JobInfo) ReadyCount() int32 { return j.Holding() + j.counts[Succeeded] }

// Ready tells whether the gang has all it needs to start.
func (j *JobInfo) Ready() bool { return j.ReadyCount() >= j.MinMember }

// Pipelined tells whether the gang has all it needs once room being released is free.
func (j *JobInfo) Pipelined() bool { return j.ReadyCount()+j.counts[Pipelined] >= j.MinMember }

// Degraded tells whether some members hold room although the gang is not ready.
func (j *JobInfo) Degraded() bool { return j.Holding() > 0 && !j.Ready() }

// ValidCount counts members that run, have succeeded, or could be placed.
func (j *JobInfo) ValidCount() int32 {
	return j.ReadyCount() + j.counts[Pipelined] + j.Waiting()
}

// Surplus counts members beyond those that must run together: they may be evicted one by one.
func (j *JobInfo) Surplus() int32 { return max(j.ReadyCount()-j.MinMember, 0) }

// Active counts members that are not at their end.
func (j *JobInfo) Active() int32 {
	return int32(len(j.Tasks)) - j.counts[Succeeded] - j.counts[Failed]
}

// GroupUID returns the UID of the PodGroup, empty for shadows.
func (j *JobInfo) GroupUID() types.UID {
	if j.Group == nil {
		return ""
	}
	return j.Group.UID
}

// commitment returns where members count whose binds are decided now. It is never changed, and shared by
// all members for which it is the same.
func (j *JobInfo) commitment() *Commitment {
	now := Commitment{GroupUID: j.GroupUID()}
	if j.Queue != nil {
		now.Queue = j.Queue.ID
	}
	if j.committed == nil || *j.committed != now {
		j.committed = new(now) // not &now, which would be made on the heap each time
	}
	return j.committed
}

// UnknownPriorityClass returns the priority class that the group names, if there is no such class.
// The highest priority of the members counts then.
func (j *JobInfo) UnknownPriorityClass() (name string, unknown bool) {
	if j.Group == nil || j.groupPriority != nil {
		return "", false
	}
	return j.Group.Spec.PriorityClassName, j.Group.Spec.PriorityClassName != ""
}

// Phase derives status.phase from the counts.
func (j *JobInfo) Phase() v1alpha1.PodGroupPhase {
	ended := j.counts[Succeeded] + j.counts[Failed]
	switch {
	case j.Active() == 0 && ended >= j.MinMember:
		return v1alpha1.PodGroupFinished
	case j.Running() > 0 && j.Running()+j.counts[Succeeded] >= j.MinMember:
		return v1alpha1.PodGroupRunning
	case j.Running() > 0 && !j.Ready(): // else the rest of the gang is on its way to its nodes
		return v1alpha1.PodGroupUnknown
	}
	return v1alpha1.PodGroupPending
}

// Running counts members that have their node for all to see: unlike Holding it leaves out
// binds that are still in flight.
func (j *JobInfo) Running() int32 {
	return max(j.counts[Bound]+j.counts[Running]-j.lost, 0)
}

// Waits tells whether there is anything to say or do about the job in a session: members to
// place, or a group that is neither running nor finished.
func (j *JobInfo) Waits() bool {
	return j.counts[Pending] > 0 || j.Group != nil && !j.Ready() && j.Phase() != v1alpha1.PodGroupFinished
}

func (j *JobInfo) addTask(t *TaskInfo) {
	t.Job, t.indexInJob = j, len(j.Tasks)
	j.Tasks = append(j.Tasks, t)
}

func (j *JobInfo) removeTask(t *TaskInfo) {
	last := len(j.Tasks) - 1
	moved := j.Tasks[last]
	j.Tasks[t.indexInJob], moved.indexInJob = moved, t.indexInJob
	j.Tasks[last] = nil
	j.Tasks = j.Tasks[:last]
	t.Job = nil
}

// account adds (sign +1) or takes away (sign -1) what t means to its job and queue.
func (j *JobInfo) account(t *TaskInfo, sign int32) {
	j.counts[t.Status] += sign
	if t.Status == Pending && t.Gated {
		j.gated += sign
	}
	if t.Status.Holding() && !t.holds() {
		j.lost += sign
	}
	move := (*Resource).Add
	if sign < 0 {
		move = (*Resource).Sub
	}
	switch {
	case t.holds(), t.Status == Pipelined:
		move(&j.Allocated, t.Request)
		if j.Queue != nil {
			move(&j.Queue.Allocated, t.Request)
		}
	case t.Status == Releasing && t.Node != nil && t.Node.Exists():
		move(&j.Releasing, t.Request)
		if j.Queue != nil {
			move(&j.Queue.Releasing, t.Request)
		}
	case t.Waiting():
		move(&j.Requested, t.Request)
		if j.Queue != nil {
			move(&j.Queue.Requested, t.Request)
		}
	}
}

// updatePriority recomputes the priority; called when members or the group changed.
func (j *JobInfo) updatePriority() {
	if j.groupPriority != nil {
		j.Priority = *j.groupPriority
		return
	}
	first := true
	for _, t := range j.Tasks {
		if !t.Status.Ended() && (first || t.Priority > j.Priority) {
			j.Priority, first = t.Priority, false
		}
	}
	if first {
		j.Priority = 0
	}
}
