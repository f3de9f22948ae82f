package api

import (
	"cmp"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TaskInfo is a pod as the scheduler sees it. Pods of other schedulers are tasks without job.
type TaskInfo struct {
	ID  TaskID
	Pod *v1.Pod // as last shown by the API server; read only
	Key string  // namespace/name

	// Job is nil for pods that are not ours to schedule.
	Job *JobInfo
	// Signature holds what the scheduler needs to know of the spec; tasks of equal spec share it.
	Signature *Signature
	// Request is Shape.Request: what the task takes on its node, one pod included. Read only.
	Request Resource
	// Priority is the pod's priority.
	Priority int32
	// Gated tasks wait for a scheduling gate to be lifted and ask for nothing.
	Gated bool
	// Created is the creation time in nanoseconds since 1970.
	Created int64
	// local is set for pods that belong to their node: mirror pods and those of DaemonSets.
	local bool

	Status TaskStatus
	// Node is where the task is or goes: nil while it waits and once it has ended. The node may
	// be unknown to the model (NodeInfo.Exists), then the task holds nothing.
	Node *NodeInfo

	// inFlight is set from the commit of a bind until the API server shows it or refuses it.
	// Meanwhile Status and Node are ours, whatever an older watch event says.
	inFlight *Commitment
	// evicting is set from the commit of an eviction until the API server shows the deletion or
	// refuses it. Meanwhile the task is Releasing, whatever an older watch event says.
	evicting bool
	// overdue is set while a session does not count on the end of a pod that is being deleted.
	overdue bool
	// evictionBlocked is set while an eviction that was refused must not be tried again.
	evictionBlocked bool
	// lastBindError says why the last bind has not taken effect; empty if none has failed, or the task has a node since.
	lastBindError string
	// nominated is the node that another scheduler has reserved for this task by preemption.
	nominated *NodeInfo

	indexInJob int

	// class is what ClassOf has found out, true of classAt.
	class   *EquivalenceClass
	classAt classesAt
}

func newTask(pod *v1.Pod) *TaskInfo {
	return &TaskInfo{ID: TaskID(pod.UID), Key: pod.Namespace + "/" + pod.Name}
}

// read takes over what the API server shows, except for status and place.
func (t *TaskInfo) read(pod *v1.Pod, signature *Signature) {
	t.Pod = pod
	t.Signature = signature
	t.class = nil
	t.Request = signature.Request
	t.Priority = 0
	if pod.Spec.Priority != nil {
		t.Priority = *pod.Spec.Priority
	}
	t.Gated = len(pod.Spec.SchedulingGates) > 0 && pod.Spec.NodeName == ""
	t.Created = pod.CreationTimestamp.UnixNano()
	t.local = belongsToNode(pod)
}

// belongsToNode tells whether a pod would only come back to its node if it were evicted: mirror pods
// stand for what the kubelet runs by itself, and a DaemonSet wants one pod on each node.
func belongsToNode(pod *v1.Pod) bool {
	_, mirror := pod.Annotations[v1.MirrorPodAnnotationKey]
	owner := metav1.GetControllerOfNoCopy(pod)
	return mirror || owner != nil && owner.Kind == "DaemonSet"
}

// observedStatus is the status that the API server shows, or will show once it has carried out an
// eviction.
func (t *TaskInfo) observedStatus() TaskStatus {
	status := statusOf(t.Pod)
	switch {
	case status == Releasing || status.Ended():
		t.evicting = false
	case t.evicting:
		return Releasing
	}
	return status
}

// BestEffort tasks ask for nothing but one pod's place.
func (t *TaskInfo) BestEffort() bool { return t.Signature.BestEffort }

// holds tells whether the task has its room for good on a node that exists.
func (t *TaskInfo) holds() bool { return t.Status.Holding() && t.Node != nil && t.Node.Exists() }

// Waiting tells whether the task may be placed: pending, not gated, not in flight, and in a
// namespace that takes new pods.
func (t *TaskInfo) Waiting() bool { return t.Status == Pending && !t.Gated }

// InFlight tells whether a bind of ours has been decided and not yet been shown or refused.
func (t *TaskInfo) InFlight() bool { return t.inFlight != nil }

// LastBindError says why the last bind of the task has not taken effect; empty if none has failed, or the task has
// a node since. It stays while the next attempt is on its way.
func (t *TaskInfo) LastBindError() string { return t.lastBindError }

// Evictable tells whether the task stands on a node for all to see, so that evicting it would set
// room free, and stay away if it were evicted.
func (t *TaskInfo) Evictable() bool {
	return !t.evictionBlocked && !t.local && (t.Status == Bound || t.Status == Running) && t.Job != nil && t.Node != nil && t.Node.Exists()
}

// Overdue reports whether the session does not count on the end of the pod, which is being deleted.
func (t *TaskInfo) Overdue() bool { return t.overdue }

// Evicting tells whether an eviction of ours has been decided and not yet been shown or refused.
func (t *TaskInfo) Evicting() bool { return t.evicting }

// CompareAge orders by creation, then by namespace and name: the last tie everywhere.
func CompareAge(createdA, createdB int64, keyA, keyB string) int {
	if n := cmp.Compare(createdA, createdB); n != 0 {
		return n
	}
	return cmp.Compare(keyA, keyB)
}
