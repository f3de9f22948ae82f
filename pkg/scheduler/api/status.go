package api

import v1 "k8s.io/api/core/v1"

// TaskStatus says where a task stands between its creation and its end.
type TaskStatus int8

const (
	Pending   TaskStatus = iota // waits for a node
	Allocated                   // placed on idle room by a statement of this session
	Pipelined                   // placed on room that is still being released
	Binding                     // decided, the API server has not shown it yet
	Bound                       // has its node, not yet running
	Running
	Releasing // being deleted; its room is future room
	Succeeded
	Failed
	Unknown // the kubelet has lost it; it still stands on its node
	NumStatus
)

var statusNames = [NumStatus]string{"Pending", "Allocated", "Pipelined", "Binding", "Bound", "Running", "Releasing", "Succeeded", "Failed", "Unknown"}

func (s TaskStatus) String() string { return statusNames[s] }

// Holding tells whether a task in this status holds its room for good: Allocated, Binding,
// Bound or Running.
func (s TaskStatus) Holding() bool {
	return s == Allocated || s == Binding || s == Bound || s == Running
}

// Ended tells whether the pod will never run again.
func (s TaskStatus) Ended() bool { return s == Succeeded || s == Failed }

// statusOf reads the status that the API server shows.
func statusOf(pod *v1.Pod) TaskStatus {
	switch {
	case pod.Status.Phase == v1.PodSucceeded:
		return Succeeded
	case pod.Status.Phase == v1.PodFailed:
		return Failed
	case pod.DeletionTimestamp != nil:
		return Releasing
	case pod.Spec.NodeName == "":
		return Pending
	case pod.Status.Phase == v1.PodRunning:
		return Running
	case pod.Status.Phase == v1.PodUnknown:
		return Unknown
	}
	return Bound
}
