package explain

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// advice says in one sentence what would unblock who waits for a reason; empty if the reason is not known here.
func advice(reason string) string {
	switch reason {
	case v1alpha1.ReasonScheduled:
		return "Nothing holds it up: its gang has its nodes."
	case v1alpha1.ReasonNotEnoughPods:
		return "See whether the controller makes the pods (quota, admission), lift their scheduling gates, or lower minMember."
	case v1alpha1.ReasonNotEnoughResources:
		return "Wait until pods on the nodes that suit it end, let its pods ask for less, or add nodes."
	case v1alpha1.ReasonUnschedulable:
		return "Waiting does not help: correct the node selector, affinity or tolerations of the pods, let one pod ask for no more than one node has, or add nodes that suit it."
	case v1alpha1.ReasonQueueNotFound:
		return "Correct spec.queue of the group, or have the queue made by an administrator."
	case v1alpha1.ReasonQueueFull:
		return "Wait until pods of the same queue end, or have its capability raised; more nodes do not help."
	case v1alpha1.ReasonPreempting:
		return "Nothing needs to be done: it starts when the pods on its nodes are gone."
	case v1alpha1.ReasonClaimsNotReady:
		return "See the events of the claims of its pods: if the message names a claim, its provisioner has failed or is slow, and it is tried again."
	case v1alpha1.ReasonBindFailed:
		return "See who refuses the binding, by the words of the API server: mostly a policy or webhook of the cluster; it is tried again."
	case v1alpha1.ReasonGangDegraded:
		return "Make room for the pods that are missing, or delete the group; with preempt or reclaim it is evicted as soon as that lets another gang start."
	case v1alpha1.ReasonGroupNotFound:
		return "Make the PodGroup in the namespace of the pod, or correct the pod's label " + v1alpha1.LabelPodGroup + "."
	case v1alpha1.ReasonGangPending:
		return "See the reason of the group: this pod is above minMember and starts after the gang."
	case v1alpha1.ReasonOverShare:
		return "Wait until the queue deserves more, or let it borrow with spec.reclaimable: true."
	}
	return ""
}

// podAdvice is advice for a pod without a group. There Unschedulable is also the reason of those that only lack
// room, because autoscalers look for it.
func podAdvice(reason string) string {
	switch reason {
	case corev1.PodReasonUnschedulable:
		return "If the nodes lack only room, wait, ask for less or add nodes; else correct the node selector, affinity or tolerations of the pod."
	case corev1.PodReasonSchedulingGated:
		return "Have its scheduling gates lifted by whoever has put them there."
	}
	return advice(reason)
}

const (
	adviceWithoutScheduler = "See whether one runs: kubectl get pods -n batch-scheduler-system; and whether its log names an error."
	adviceForeignScheduler = "Set spec.schedulerName of the pods to batch-scheduler where they are made, and make them anew."
)
