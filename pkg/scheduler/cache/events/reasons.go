// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"cmp"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// NotScheduled records why a gang does not start: once per reason, not for each change of the
// numbers in the message.
func (r *Recorder) NotScheduled(g *api.Group, reason, message string) {
	r.addPodGroup(event{
		regarding: *Reference(g), kind: v1.EventTypeWarning, reason: reason, action: "Scheduling",
		note: message, key: string(g.UID) + "/" + reason,
	})
}

// PodBound records a bound pod. For its PodGroup, if it has one, all pods of a moment are one event.
func (r *Recorder) PodBound(pod v1.ObjectReference, podGroup *v1.ObjectReference, node string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if podGroup != nil {
		r.bound[*podGroup]++
	}
	r.addPod(event{
		regarding: pod, kind: v1.EventTypeNormal, reason: v1alpha1.ReasonScheduled, action: "Binding",
		note: fmt.Sprintf("Successfully assigned %s/%s to %s", pod.Namespace, pod.Name, node),
	})
}

// podGroupBound is the event for pods of a PodGroup that were bound.
func podGroupBound(group v1.ObjectReference, pods int) event {
	note := fmt.Sprintf("%d pods bound", pods)
	if pods == 1 {
		note = "1 pod bound"
	}
	return event{regarding: group, kind: v1.EventTypeNormal, reason: v1alpha1.ReasonScheduled, action: "Binding", note: note}
}

// PrepareFailed records why a gang, or a pod without PodGroup, was not bound.
func (r *Recorder) PrepareFailed(pod v1.ObjectReference, podGroup *v1.ObjectReference, err error) {
	regarding := pod
	if podGroup != nil {
		regarding = *podGroup
	}
	r.addPodGroup(event{
		regarding: regarding, kind: v1.EventTypeWarning, reason: v1alpha1.ReasonClaimsNotReady, action: "Binding",
		note: err.Error(), key: fmt.Sprint(regarding.UID, "/", v1alpha1.ReasonClaimsNotReady, "/", pod.UID),
	})
}

// PodEvicted records for which preemptor a pod was evicted.
func (r *Recorder) PodEvicted(pod v1.ObjectReference, cause api.EvictionCause, preemptor string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addPod(event{
		regarding: pod, kind: v1.EventTypeNormal, reason: cause.Reason(), action: "Evicting",
		note: "Evicted " + why(preemptor),
	})
}

// why says for which preemptor pods are evicted; empty for their own limit.
func why(preemptor string) string {
	if preemptor == "" {
		return "because the limit of its run time has passed"
	}
	return "for " + preemptor
}

// EvictionRefused records that the pods of a PodGroup whose limit has passed may not be evicted.
func (r *Recorder) EvictionRefused(podGroup v1.ObjectReference, err error) {
	r.addPodGroup(event{
		regarding: podGroup, kind: v1.EventTypeWarning, reason: v1alpha1.EventEvictionRefused, action: "Evicting",
		note: "The limit of its run time has passed, and the API server refuses to evict its pods: " + err.Error(),
		key:  fmt.Sprint(podGroup.UID, "/", v1alpha1.EventEvictionRefused),
	})
}

// PodGroupEvicted records that a PodGroup has lost pods by an eviction, with the condition that describes it.
func (r *Recorder) PodGroupEvicted(podGroup v1.ObjectReference, condition metav1.Condition) {
	r.addPodGroup(event{
		regarding: podGroup, kind: v1.EventTypeNormal, reason: condition.Reason, action: "Evicting", note: condition.Message,
	})
}

// JobEnded records that a Job fails because its pods were evicted. The event is on the Job, whose pods do not exist for
// long.
func (r *Recorder) JobEnded(job v1.ObjectReference, preemptor, reason string) {
	r.addPodGroup(event{
		regarding: job, kind: v1.EventTypeWarning, reason: v1alpha1.EventEvictionEndsJob, action: "Evicting",
		note: fmt.Sprintf("Pods of the Job were evicted %s, and the Job ends: %s", why(preemptor), reason),
	})
}

// PodsPreempted records how many pods an action has evicted for a PodGroup, and of which jobs.
func (r *Recorder) PodsPreempted(podGroup v1.ObjectReference, pods int, action, victims string) {
	evicted := fmt.Sprintf("%d pods", pods)
	if pods == 1 {
		evicted = "1 pod"
	}
	r.addPodGroup(event{
		regarding: podGroup, kind: v1.EventTypeNormal, reason: v1alpha1.ReasonPreempting, action: "Evicting",
		note: evicted + " evicted by " + action + " to free resources for this PodGroup: " + victims,
	})
}

// NameContested records that another client has bound a pod which this scheduler should schedule: one event per name and
// namespace, because it usually concerns all of their pods.
func (r *Recorder) NameContested(pod *v1.Pod) {
	r.addPodGroup(event{
		regarding: v1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		kind:      v1.EventTypeWarning, reason: v1alpha1.EventNameContested, action: "Scheduling",
		note: fmt.Sprintf("Another client has bound the pod to %s, although %s schedules pods with the schedulerName %s: only one scheduler may use a name",
			pod.Spec.NodeName, r.SchedulerName, pod.Spec.SchedulerName),
		key: strings.Join([]string{v1alpha1.EventNameContested, pod.Namespace, pod.Spec.SchedulerName}, "/"),
	})
}

// AmbiguousGroup records that a pod names several gangs, of which it counts in the first: one event per two gangs of a
// namespace, because it usually concerns all of their pods.
func (r *Recorder) AmbiguousGroup(pod *v1.Pod, first, other string) {
	r.addPodGroup(event{
		regarding: v1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		kind:      v1.EventTypeWarning, reason: v1alpha1.EventAmbiguousGroup, action: "Scheduling",
		note: fmt.Sprintf("The pod names two gangs. It is a member of the first, %s, and not of %s: remove the name of one of them", first, other),
		key:  strings.Join([]string{v1alpha1.EventAmbiguousGroup, pod.Namespace, first, other}, "/"),
	})
}

// InvalidRunTime records that a pod declares a run time that cannot be read: one event per problem and namespace.
func (r *Recorder) InvalidRunTime(pod *v1.Pod, problem string) {
	r.addPodGroup(event{
		regarding: v1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		kind:      v1.EventTypeWarning, reason: v1alpha1.EventInvalidRunTime, action: "Scheduling",
		note: "The run time is ignored: " + problem,
		key:  strings.Join([]string{v1alpha1.EventInvalidRunTime, pod.Namespace, problem}, "/"),
	})
}

// InvalidUnavailableFrom records that the time from which a node is not available cannot be read.
func (r *Recorder) InvalidUnavailableFrom(node *v1.Node, problem string) {
	r.addPodGroup(event{
		regarding: v1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID},
		kind:      v1.EventTypeWarning, reason: v1alpha1.EventInvalidUnavailableFrom, action: "Scheduling",
		note: "The node is used without end: " + problem,
		key:  strings.Join([]string{v1alpha1.EventInvalidUnavailableFrom, node.Name, problem}, "/"),
	})
}

// Reference returns the reference by which events name a PodGroup.
func Reference(g *api.Group) *v1.ObjectReference {
	return &v1.ObjectReference{
		APIVersion: cmp.Or(g.APIVersion, g.Source.APIVersion()), Kind: cmp.Or(g.Kind, "PodGroup"),
		Namespace: g.Namespace, Name: g.Name, UID: g.UID,
	}
}
