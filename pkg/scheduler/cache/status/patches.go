// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// podGroupPatch compares a PodGroup with its report. A new phase or reason is written at once, other
// counts after countsInterval, and other numbers in the message after messageInterval.
func (w *Writers) podGroupPatch(want api.PodGroupReport) (*patch, bool) {
	shown, err := w.PodGroups.PodGroups(want.Namespace).Get(want.Name)
	if err != nil || shown.UID != want.UID {
		return nil, false
	}
	next := shown.DeepCopy()
	next.Status.Phase = want.Phase
	next.Status.Pending, next.Status.Running = want.Pending, want.Running
	next.Status.Succeeded, next.Status.Failed = want.Succeeded, want.Failed
	if want.Reason != "" {
		changed := meta.SetStatusCondition(&next.Status.Conditions, metav1.Condition{
			Type:               v1alpha1.ConditionPodGroupScheduled,
			Status:             conditionStatus(want.Scheduled),
			Reason:             want.Reason,
			Message:            want.Message,
			ObservedGeneration: want.Generation,
			LastTransitionTime: metav1.NewTime(w.Clock.Now()),
		})
		if changed { // never a reason for a write of its own
			next.Status.UnschedulablePlugins, next.Status.NearestDomain = pluginList(want.Plugins), want.Domain.Status()
		}
	}
	w.evicted.apply(&next.Status, &want, w.Clock.Now())
	setStartTimes(&next.Status, &want, w.Clock.Now())
	next.Status.Topology = want.Topology.Status()
	if equality.Semantic.DeepEqual(shown.Status, next.Status) {
		return nil, true
	}
	before := meta.FindStatusCondition(shown.Status.Conditions, v1alpha1.ConditionPodGroupScheduled)
	after := meta.FindStatusCondition(next.Status.Conditions, v1alpha1.ConditionPodGroupScheduled)
	p := &patch{
		object:      klog.KObj(shown),
		base:        shown.ResourceVersion,
		debounced:   want.Phase == v1alpha1.PodGroupPending && shown.Status.Phase == "",
		minInterval: countsInterval,
		send: func(ctx context.Context) (string, error) {
			written, err := w.Batch.SchedulingV1alpha1().PodGroups(next.Namespace).UpdateStatus(ctx, next, metav1.UpdateOptions{})
			return versionOf(written, err), err
		},
	}
	switch {
	case shown.Status.Phase != next.Status.Phase || !equalButNumbers(before, after) || !equalEvictions(shown, next):
		p.minInterval = 0
	case equalCounts(&shown.Status, &next.Status) && equality.Semantic.DeepEqual(shown.Status.Topology, next.Status.Topology):
		p.minInterval = messageInterval
	}
	if after != nil && after.Status == metav1.ConditionFalse && (before == nil || before.Reason != after.Reason) {
		p.debounced = true
		p.sent = func() { w.Events.NotScheduled(api.OwnGroup(next), after.Reason, after.Message) }
	}
	return p, true
}

// pluginList returns the first names of a list with commas, as many as a status has at most.
func pluginList(names string) []string {
	if names == "" {
		return nil
	}
	list := strings.Split(names, ",")
	return list[:min(len(list), v1alpha1.MaxUnschedulablePlugins)]
}

// queuePatch compares a Queue with its report. New sums are written after countsInterval.
func (w *Writers) queuePatch(want api.QueueReport) (*patch, bool) {
	shown, err := w.Queues.Get(want.Name)
	if err != nil || shown.UID != want.UID {
		return nil, false
	}
	next := shown.DeepCopy()
	next.Status = *want.Status.DeepCopy()
	if equality.Semantic.DeepEqual(shown.Status, next.Status) {
		return nil, true
	}
	return countsPatch(shown, func(ctx context.Context) (string, error) {
		written, err := w.Batch.SchedulingV1alpha1().Queues().UpdateStatus(ctx, next, metav1.UpdateOptions{})
		return versionOf(written, err), err
	}), true
}

// topologyPatch compares a Topology with its report. New numbers are written after countsInterval.
func (w *Writers) topologyPatch(want api.TopologyReport) (*patch, bool) {
	shown := w.Topologies.Topology(want.Name)
	if shown == nil || shown.UID != want.UID {
		return nil, false
	}
	next := shown.DeepCopy()
	next.Status = *want.Status.DeepCopy()
	if equality.Semantic.DeepEqual(shown.Status, next.Status) {
		return nil, true
	}
	return countsPatch(shown, func(ctx context.Context) (string, error) {
		written, err := w.Batch.SchedulingV1alpha1().Topologies().UpdateStatus(ctx, next, metav1.UpdateOptions{})
		return versionOf(written, err), err
	}), true
}

// countsPatch writes numbers, which may wait for countsInterval.
func countsPatch(shown metav1.Object, send func(context.Context) (string, error)) *patch {
	return &patch{object: klog.KObj(shown), base: shown.GetResourceVersion(), minInterval: countsInterval, send: send}
}

// podPatch compares the PodScheduled condition and the nominated node of a pending pod with its report.
func (w *Writers) podPatch(want api.PodReport) (*patch, bool) {
	shown, err := w.Pods.Pods(want.Namespace).Get(want.Name)
	if err != nil || shown.UID != want.UID || !pending(shown) {
		return nil, false
	}
	before := podScheduled(shown)
	after := v1.PodCondition{
		Type:               v1.PodScheduled,
		Status:             v1.ConditionFalse,
		Reason:             want.Reason,
		Message:            want.Message,
		ObservedGeneration: shown.Generation,
		LastTransitionTime: metav1.NewTime(w.Clock.Now()),
	}
	interval := time.Duration(0)
	if before != nil && before.Status == after.Status {
		renominated := shown.Status.NominatedNodeName != want.NominatedNode
		if before.Reason == after.Reason && before.Message == after.Message && !renominated {
			return nil, true
		}
		if before.Reason == after.Reason && !renominated {
			interval = messageInterval
		}
		after.LastTransitionTime = before.LastTransitionTime
	}
	return &patch{
		object:      klog.KObj(shown),
		base:        shown.ResourceVersion,
		minInterval: interval,
		debounced:   interval == 0,
		send: func(ctx context.Context) (string, error) {
			body, err := json.Marshal(newPodStatus(shown, after, want.NominatedNode))
			if err != nil {
				return "", err
			}
			written, err := w.Kube.CoreV1().Pods(shown.Namespace).Patch(ctx, shown.Name, types.StrategicMergePatchType, body, metav1.PatchOptions{}, "status")
			return versionOf(written, err), err
		},
	}, true
}

// podStatus is the patch of a pod: one condition and the nominated node. The resource version is a
// precondition: a pod that was bound meanwhile must not get a condition that says it is pending.
type podStatus struct {
	Metadata struct {
		UID             types.UID `json:"uid"`
		ResourceVersion string    `json:"resourceVersion,omitempty"`
	} `json:"metadata"`
	Status struct {
		Conditions []v1.PodCondition `json:"conditions"`
		// NominatedNodeName is always written: empty removes an earlier nomination.
		NominatedNodeName string `json:"nominatedNodeName"`
	} `json:"status"`
}

func newPodStatus(pod *v1.Pod, condition v1.PodCondition, nominated string) podStatus {
	var p podStatus
	p.Metadata.UID, p.Metadata.ResourceVersion = pod.UID, pod.ResourceVersion
	p.Status.Conditions, p.Status.NominatedNodeName = []v1.PodCondition{condition}, nominated
	return p
}

func podScheduled(pod *v1.Pod) *v1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == v1.PodScheduled {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// pending reports whether the scheduler owns the PodScheduled condition of a pod. It does not if the
// pod has a node, has ended or is being deleted, or is gated (the API server owns the condition then).
func pending(pod *v1.Pod) bool {
	ended := pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
	return pod.Spec.NodeName == "" && len(pod.Spec.SchedulingGates) == 0 && pod.DeletionTimestamp == nil && !ended
}

func equalCounts(a, b *v1alpha1.PodGroupStatus) bool {
	return a.Pending == b.Pending && a.Running == b.Running && a.Succeeded == b.Succeeded && a.Failed == b.Failed
}

// equalButNumbers reports whether two conditions are equal except for the numbers in their messages.
func equalButNumbers(a, b *metav1.Condition) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Status == b.Status && a.Reason == b.Reason && a.ObservedGeneration == b.ObservedGeneration
}

// equalEvictions reports whether two versions of a PodGroup show the same eviction.
func equalEvictions(a, b *v1alpha1.PodGroup) bool {
	return equality.Semantic.DeepEqual(
		meta.FindStatusCondition(a.Status.Conditions, v1alpha1.ConditionEvicted),
		meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionEvicted))
}

func conditionStatus(ok bool) metav1.ConditionStatus {
	if ok {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

func versionOf[T metav1.Object](written T, err error) string {
	if err != nil {
		return ""
	}
	return written.GetResourceVersion()
}
