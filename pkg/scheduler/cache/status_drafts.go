package cache

import (
	"context"
	"encoding/json"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// newStatuses makes the writers of all kinds. They run in Run.
func (c *Cache) newStatuses() statuses {
	return statuses{
		groups: newWriter(c, &writer[api.PodGroupReport]{
			resource: "podgroups/status",
			equal:    equalValues[api.PodGroupReport], draft: c.draftGroup,
			reason: func(g api.PodGroupReport) string { return g.Reason },
		}),
		queues: newWriter(c, &writer[api.QueueReport]{
			resource: "queues/status",
			equal:    equalQueueReports, draft: c.draftQueue,
			reason: func(api.QueueReport) string { return "" },
		}),
		pods: newWriter(c, &writer[api.PodReport]{
			resource: "pods/status",
			equal:    equalValues[api.PodReport], draft: c.draftPod,
			reason: func(p api.PodReport) string { return p.Reason },
		}),
	}
}

func equalValues[W comparable](a, b W) bool { return a == b }

func equalQueueReports(a, b api.QueueReport) bool { return equality.Semantic.DeepEqual(a, b) }

// draftGroup compares a PodGroup with its report.
func (c *Cache) draftGroup(want api.PodGroupReport) (*draft, bool) {
	shown, err := c.groupInformers.Scheduling().V1alpha1().PodGroups().Lister().PodGroups(want.Namespace).Get(want.Name)
	if err != nil || shown.UID != want.UID {
		return nil, false
	}
	next := shown.DeepCopy()
	next.Status.Phase = want.Phase
	next.Status.Pending, next.Status.Running = want.Pending, want.Running
	next.Status.Succeeded, next.Status.Failed = want.Succeeded, want.Failed
	if want.Reason != "" {
		meta.SetStatusCondition(&next.Status.Conditions, metav1.Condition{
			Type:               v1alpha1.ConditionPodGroupScheduled,
			Status:             conditionStatus(want.Scheduled),
			Reason:             want.Reason,
			Message:            want.Message,
			ObservedGeneration: want.Generation,
			LastTransitionTime: metav1.NewTime(c.options.Clock.Now()),
		})
	}
	if equality.Semantic.DeepEqual(shown.Status, next.Status) {
		return nil, true
	}
	before := meta.FindStatusCondition(shown.Status.Conditions, v1alpha1.ConditionPodGroupScheduled)
	after := meta.FindStatusCondition(next.Status.Conditions, v1alpha1.ConditionPodGroupScheduled)
	d := &draft{
		base:  shown.ResourceVersion,
		waits: want.Phase == v1alpha1.PodGroupPending && shown.Status.Phase == "",
		pause: countsPause,
		send: func(ctx context.Context) (string, error) {
			written, err := c.options.Batch.SchedulingV1alpha1().PodGroups(next.Namespace).UpdateStatus(ctx, next, metav1.UpdateOptions{})
			return versionOf(written, err), err
		},
	}
	switch {
	case shown.Status.Phase != next.Status.Phase || !alike(before, after):
		d.pause = 0
	case equalCounts(&shown.Status, &next.Status):
		d.pause = messagePause
	}
	if after != nil && after.Status == metav1.ConditionFalse && (before == nil || before.Reason != after.Reason) {
		d.waits = true
		d.sent = func() { c.recorder.add(groupWaits(next, after)) }
	}
	return d, true
}

// draftQueue compares a Queue with its report.
func (c *Cache) draftQueue(want api.QueueReport) (*draft, bool) {
	shown, err := c.groupInformers.Scheduling().V1alpha1().Queues().Lister().Get(want.Name)
	if err != nil || shown.UID != want.UID {
		return nil, false
	}
	next := shown.DeepCopy()
	next.Status = *want.Status.DeepCopy()
	if equality.Semantic.DeepEqual(shown.Status, next.Status) {
		return nil, true
	}
	return &draft{
		base:  shown.ResourceVersion,
		pause: countsPause,
		send: func(ctx context.Context) (string, error) {
			written, err := c.options.Batch.SchedulingV1alpha1().Queues().UpdateStatus(ctx, next, metav1.UpdateOptions{})
			return versionOf(written, err), err
		},
	}, true
}

// draftPod compares the PodScheduled condition of a waiting pod with its report.
func (c *Cache) draftPod(want api.PodReport) (*draft, bool) {
	shown, err := c.options.Informers.Core().V1().Pods().Lister().Pods(want.Namespace).Get(want.Name)
	if err != nil || shown.UID != want.UID || !showsWaiting(shown) {
		return nil, false
	}
	before := podScheduled(shown)
	after := v1.PodCondition{
		Type:               v1.PodScheduled,
		Status:             v1.ConditionFalse,
		Reason:             want.Reason,
		Message:            want.Message,
		ObservedGeneration: shown.Generation,
		LastTransitionTime: metav1.NewTime(c.options.Clock.Now()),
	}
	pause := time.Duration(0)
	if before != nil && before.Status == after.Status {
		moved := shown.Status.NominatedNodeName != want.NominatedNode
		if before.Reason == after.Reason && before.Message == after.Message && !moved {
			return nil, true
		}
		if before.Reason == after.Reason && !moved {
			pause = messagePause
		}
		after.LastTransitionTime = before.LastTransitionTime
	}
	return &draft{
		base:  shown.ResourceVersion,
		pause: pause,
		waits: pause == 0,
		send: func(ctx context.Context) (string, error) {
			patch, err := json.Marshal(newPodPatch(shown, after, want.NominatedNode))
			if err != nil {
				return "", err
			}
			written, err := c.options.Kube.CoreV1().Pods(shown.Namespace).Patch(ctx, shown.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
			return versionOf(written, err), err
		},
	}, true
}

// podPatch sets one condition of a pod and the node that it is nominated for, provided that the pod is still the one that was looked
// at: a pod that was bound meanwhile must not be told that it waits.
type podPatch struct {
	Metadata struct {
		UID             types.UID `json:"uid"`
		ResourceVersion string    `json:"resourceVersion,omitempty"`
	} `json:"metadata"`
	Status struct {
		Conditions []v1.PodCondition `json:"conditions"`
		// NominatedNodeName is always written: empty takes back what was nominated before.
		NominatedNodeName string `json:"nominatedNodeName"`
	} `json:"status"`
}

func newPodPatch(pod *v1.Pod, condition v1.PodCondition, nominated string) podPatch {
	var p podPatch
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

// showsWaiting tells whether a PodScheduled condition of ours is in place: not on pods that have
// a node, are over, are being deleted, or are gated (the API server owns that condition).
func showsWaiting(pod *v1.Pod) bool {
	return pod.Spec.NodeName == "" && len(pod.Spec.SchedulingGates) == 0 && pod.DeletionTimestamp == nil && !ended(pod)
}

func equalCounts(a, b *v1alpha1.PodGroupStatus) bool {
	return a.Pending == b.Pending && a.Running == b.Running && a.Succeeded == b.Succeeded && a.Failed == b.Failed
}

// alike tells whether two conditions differ in nothing but numbers.
func alike(a, b *metav1.Condition) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Status == b.Status && a.Reason == b.Reason && a.ObservedGeneration == b.ObservedGeneration
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
