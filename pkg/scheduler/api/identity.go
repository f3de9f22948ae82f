package api

import (
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// TaskID is the UID of a pod.
type TaskID types.UID

// JobID names a job: "group/<namespace>/<name>" for the members of a PodGroup, and a
// "shadow/…" or "former/…" id for jobs that have none (see Membership).
type JobID string

// QueueID is the name of a Queue; queues are cluster scoped.
type QueueID string

// Membership says where a pod counts.
type Membership struct {
	Job JobID
	// Group is the namespace/name of the PodGroup that the pod asks for; empty for pods
	// without one and for members of a group that is gone.
	Group string
	// Queue is the queue of a job without PodGroup.
	Queue QueueID
	// MinMember is the gang size of a job without PodGroup.
	MinMember int32
}

// Commitment is what our Binding wrote on a bound pod: from then on it decides where the pod
// counts, so that relabelling a pod or deleting its group frees nobody from queue and cap.
type Commitment struct {
	Queue    QueueID
	GroupUID types.UID
}

// bindingOf reads the annotations of a bound pod. It is nil for pods that wait and for pods
// that somebody else has bound.
func bindingOf(pod *v1.Pod) *Commitment {
	if pod.Spec.NodeName == "" {
		return nil
	}
	queue, ours := pod.Annotations[v1alpha1.AnnotationQueue]
	uid, also := pod.Annotations[v1alpha1.AnnotationPodGroupUID]
	if !ours || !also {
		return nil
	}
	return &Commitment{Queue: QueueID(queue), GroupUID: types.UID(uid)}
}

// memberOf is the one rule that assigns a pod to its job. The first match wins:
//
//  1. a binding of ours that names a group: that very group while it exists in that queue, else
//     a shadow of it, in the queue of the binding. A group of another namespace, which nobody
//     but a forger names, is as good as gone;
//  2. the label scheduling.batch-scheduler.dev/pod-group;
//  3. the annotation scheduling.k8s.io/group-name of kube-batch and Volcano;
//  4. one shadow job per controller owner and queue, else one per pod.
//
// live returns the namespace/name and queue of the PodGroup with a UID, if there is one.
func memberOf(pod *v1.Pod, binding *Commitment, defaultQueue QueueID, live func(types.UID) (group string, queue QueueID, ok bool)) Membership {
	if binding != nil && binding.GroupUID != "" {
		if group, queue, ok := live(binding.GroupUID); ok && queue == binding.Queue && strings.HasPrefix(group, pod.Namespace+"/") {
			return Membership{Job: groupJob(group), Group: group}
		}
		id := JobID("former/" + string(binding.GroupUID) + "/" + pod.Namespace + "/" + string(binding.Queue))
		return Membership{Job: id, Queue: binding.Queue, MinMember: 1}
	}
	if binding == nil {
		if name := GroupNameOf(pod); name != "" {
			group := pod.Namespace + "/" + name
			return Membership{Job: groupJob(group), Group: group}
		}
	}
	queue := QueueID(pod.Labels[v1alpha1.LabelQueue])
	if binding != nil {
		queue = binding.Queue
	}
	if queue == "" {
		queue = defaultQueue
	}
	return Membership{Job: shadowJob(pod, queue), Queue: queue, MinMember: shadowMinMember(pod)}
}

// IsMember tells whether a pod counts in a group, for those who look at the two from outside. A group that names
// no queue is in whatever queue its pods were bound for.
func IsMember(pod *v1.Pod, group *v1alpha1.PodGroup) bool {
	binding := bindingOf(pod)
	name := group.Namespace + "/" + group.Name
	m := memberOf(pod, binding, "", func(uid types.UID) (string, QueueID, bool) {
		queue := QueueID(group.Spec.Queue)
		if queue == "" {
			queue = binding.Queue
		}
		return name, queue, uid == group.UID
	})
	return m.Group == name
}

func groupJob(group string) JobID { return JobID("group/" + group) }

// GroupNameOf returns the name of the PodGroup that a pod asks for, empty if for none.
func GroupNameOf(pod *v1.Pod) string {
	if name := pod.Labels[v1alpha1.LabelPodGroup]; name != "" {
		return name
	}
	return pod.Annotations[v1alpha1.AnnotationGroupName]
}

func shadowJob(pod *v1.Pod, queue QueueID) JobID {
	owner := string(pod.UID)
	if controller := metav1.GetControllerOf(pod); controller != nil {
		owner = string(controller.UID)
	}
	return JobID("shadow/" + pod.Namespace + "/" + owner + "/" + string(queue))
}

// shadowMinMember reads the gang size annotation; what is not a positive number counts as 1.
func shadowMinMember(pod *v1.Pod) int32 {
	n, err := strconv.ParseInt(pod.Annotations[v1alpha1.AnnotationGroupMinMember], 10, 32)
	if err != nil || n < 1 {
		return 1
	}
	return int32(n)
}
