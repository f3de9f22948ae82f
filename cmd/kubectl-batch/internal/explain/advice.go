// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// advice says in one sentence what would unblock who waits for a reason; empty if the reason is not known here.
func advice(reason string) string {
	switch reason {
	case v1alpha1.ReasonScheduled:
		return "No action is required: the gang has its nodes."
	case v1alpha1.ReasonNotEnoughPods:
		return "Check whether the controller can create the pods (quota, admission), remove their scheduling gates, or decrease minMember."
	case v1alpha1.ReasonNotEnoughResources:
		return "Wait until other pods on suitable nodes end, decrease the requests of its pods, or add nodes."
	case v1alpha1.ReasonExceedsClusterCapacity:
		return "Waiting for other pods does not help. Decrease minMember or the requests of the pods, uncordon nodes, or add nodes."
	case v1alpha1.ReasonUnschedulable:
		return "Waiting for other pods does not help. Correct the requests, node selector, affinity or tolerations of the pods, uncordon suitable nodes, or add some."
	case v1alpha1.ReasonQueueNotFound:
		return "Correct spec.queue of the PodGroup, or ask an administrator to create the Queue."
	case v1alpha1.ReasonQueueFull:
		return "Wait until pods of the same queue end, or ask an administrator to increase its capability. More nodes do not help."
	case v1alpha1.ReasonExceedsQueueCapability:
		return "Waiting and more nodes do not help. Decrease minMember or the requests of the pods, name another queue, or ask an administrator to increase the capability."
	case v1alpha1.ReasonExecutionTimeTooLong:
		return "Waiting does not help. Decrease the limit of the run time, name another queue, or ask an administrator to increase spec.executionTime.maximum of the Queue."
	case v1alpha1.ReasonPreempting:
		return "No action is required: it starts when the evicted pods on its nodes have terminated."
	case v1alpha1.ReasonClaimsNotReady:
		return "Check the events of the claims of its pods. If the message names a claim, its provisioner failed or is slow; the scheduler retries."
	case v1alpha1.ReasonBindFailed:
		return "Check the message of the API server: usually a policy or webhook of the cluster denies the binding. The scheduler retries."
	case v1alpha1.ReasonGangDegraded:
		return "Free resources for the missing pods, or delete the PodGroup. With preempt or reclaim the scheduler evicts it if that allows another gang to start."
	case v1alpha1.ReasonFailed:
		return "Check the logs of the failed pods. If their controller does not create others, correct the cause and submit again."
	case v1alpha1.ReasonGroupNotFound:
		return "Create the PodGroup in the namespace of the pod, or correct the label or annotation of the pod that names it."
	case v1alpha1.ReasonUnsupportedPodGroupAPI:
		return "Create a PodGroup (" + v1alpha1.SchemeGroupVersion.String() + ") in the namespace of the pod, and name it with the label " + v1alpha1.LabelPodGroup + " in the pod template. To start the pod without a gang, remove what names the other group."
	case v1alpha1.ReasonQueueConflict:
		return "Name one queue with the label " + v1alpha1.LabelQueue + " on the group, or give all of its pods the same label."
	case v1alpha1.ReasonNotSupported:
		return "Remove the field or annotation that the message names, or create a PodGroup (" + v1alpha1.SchemeGroupVersion.String() + ") and name it with the label " + v1alpha1.LabelPodGroup + " in the pod template, which takes precedence."
	case v1alpha1.ReasonInvalidSubGroups:
		return "Correct spec.subGroups of the PodGroup. The message names the subgroup."
	case v1alpha1.ReasonTopologyNotFound:
		return "Correct the level that the PodGroup or the annotations name, or ask an administrator to create the Topology or its level."
	case v1alpha1.ReasonGroupConflict:
		return "Set the annotation " + v1alpha1.AnnotationMinMember + " to the same number on all pods with this " + v1alpha1.AnnotationGroupKey + "."
	case v1alpha1.ReasonOwnerUnknown:
		return "Usually no action is required: it starts when the scheduler has read the object. If it stays, ask an administrator to grant the scheduler the permission to read objects of this kind."
	case v1alpha1.ReasonGangPending:
		return "Check the reason of the PodGroup: this pod is not one of the minMember pods and starts after them."
	case v1alpha1.ReasonOverShare:
		return "Wait until pods of the queue end or the queue deserves more, or ask an administrator to increase its weight."
	}
	return ""
}

// messageAdvice returns the advice for a reason with a message. The message tells cases of a reason apart.
func messageAdvice(reason, message string) string {
	onePod := strings.Contains(message, "a pod requests ")
	switch {
	case reason == v1alpha1.ReasonExceedsClusterCapacity && onePod:
		return "Waiting and a smaller minMember do not help. Decrease the requests of the pods, uncordon larger nodes, or add some."
	case reason == v1alpha1.ReasonExceedsClusterCapacity && strings.Contains(message, "(at most 0 of "):
		return "Waiting and a smaller minMember do not help. Decrease the requests of the pods, uncordon nodes, or add some."
	case reason == v1alpha1.ReasonExceedsQueueCapability && onePod:
		return "Waiting, more nodes and a smaller minMember do not help. Decrease the requests of the pods, name another queue, or ask an administrator to increase the capability."
	case reason == v1alpha1.ReasonGroupNotFound && strings.HasPrefix(message, "CompositePodGroup"):
		return "Create the CompositePodGroup, or ask an administrator whether the scheduler may read it."
	case reason == v1alpha1.ReasonInvalidSubGroups && !strings.HasPrefix(message, "spec.subGroups"):
		return "Correct spec.parentCompositePodGroupName of the groups: create those that the message names again with other parents, and at most 64 groups in 4 levels."
	case reason == v1alpha1.ReasonGroupConflict && strings.HasPrefix(message, "the groups of the tree"):
		return "Create the groups again with the same priority class and preemption policy."
	case reason == v1alpha1.ReasonOverShare && strings.Contains(message, "spec.reclaimable is false"):
		return "Wait until pods of the queue end. Or ask an administrator to increase the weight of the queue, or to allow it to borrow with spec.reclaimable: true; then other queues can reclaim what it borrows."
	case reason == v1alpha1.ReasonOverShare && strings.Contains(message, "had borrowed"):
		return "No action is required: the job starts again when its queue deserves enough for it, or the queue for which it was evicted deserves less. To start it before, decrease minMember or the requests, or ask an administrator to increase the weight of the queue."
	}
	return advice(reason)
}

// podAdvice returns the advice for a pod without a PodGroup. The reason Unschedulable includes pods for which only the
// resources are insufficient, because autoscalers search for it. The message says if no node could ever
// run the pod.
func podAdvice(reason, message string) string {
	switch reason {
	case corev1.PodReasonUnschedulable:
		if strings.Contains(message, "would not fit the empty nodes") {
			return messageAdvice(v1alpha1.ReasonExceedsClusterCapacity, message)
		}
		return "If only resources are insufficient, wait, decrease the requests or add nodes; otherwise correct the node selector, affinity or tolerations of the pod."
	case corev1.PodReasonSchedulingGated:
		return "The component that set the scheduling gates must remove them."
	}
	return messageAdvice(reason, message)
}

const (
	adviceEvicted          = "Its pods were evicted. If a controller created them, it creates others, and the gang starts again; check the controller if that takes long. Pods without a controller do not come back: create them again."
	adviceEvictedBare      = "Its pods were evicted, and have no controller that creates others: create them again when they have terminated."
	adviceWithoutScheduler = "Check whether the scheduler runs, and its log: kubectl get pods -n batch-scheduler-system."
	adviceOrphaned         = "The pod counts in its queue, but not in a gang: it can be evicted alone. A new PodGroup of that name does not include it; for that, delete the pod, so that its controller creates another."
	adviceForeignScheduler = "Set spec.schedulerName to batch-scheduler in the pod template, and recreate the pods."
)
