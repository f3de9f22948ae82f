// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/cmd/kubectl-batch/internal/explain"
	"github.com/batch-scheduler/batch-scheduler/internal/jobfailure"
	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// noon is the time of all cases; ago is so many minutes before.
func noon() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

func ago(minutes int) metav1.Time {
	return metav1.NewTime(noon().Add(-time.Duration(minutes) * time.Minute))
}

// ofJob gives facts a Job named train.
func ofJob(f *explain.Facts, edits ...func(*batchv1.Job)) *explain.Facts {
	f.Job = &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "train", UID: "uid-train"}}
	f.Job.Spec.Template.Labels = map[string]string{v1alpha1.LabelPodGroup: "train"}
	for _, edit := range edits {
		edit(f.Job)
	}
	return f
}

func jobEnded(kind batchv1.JobConditionType, reason, message string) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.Status.Conditions = []batchv1.JobCondition{{Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: message, LastTransitionTime: ago(5)}}
	}
}

func ignoresEvictions(j *batchv1.Job) { j.Spec.PodFailurePolicy = jobfailure.IgnoreEvictions() }

func perIndex(j *batchv1.Job) { j.Spec.BackoffLimitPerIndex = ptr.To[int32](6) }

// evictedAgo sets the time of the eviction, so many minutes ago.
func evictedAgo(minutes int) func(*v1alpha1.PodGroup) {
	return func(g *v1alpha1.PodGroup) {
		meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionEvicted).LastTransitionTime = ago(minutes)
	}
}

func controlledBy(job string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: job, UID: types.UID("uid-" + job), Controller: ptr.To(true)}}
	}
}

func facts(g *v1alpha1.PodGroup, pods []corev1.Pod, q *v1alpha1.Queue, events ...corev1.Event) *explain.Facts {
	return &explain.Facts{Now: noon(), Group: g, Pods: pods, Queue: q, Events: events}
}

func unread(f *explain.Facts, what string) *explain.Facts {
	f.Unread = append(f.Unread, what)
	return f
}

// orphaned makes the PodGroup of the pod one that was deleted.
func orphaned(f *explain.Facts, group string) *explain.Facts {
	f.MissingGroup = group
	return f
}

// boundFor is a pod that was bound for a queue and a PodGroup that was deleted.
func boundFor(queue string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Annotations = map[string]string{v1alpha1.AnnotationQueue: queue, v1alpha1.AnnotationPodGroupUID: "uid-deleted"}
	}
}

// at makes everything about a PodGroup happen so many minutes ago.
func at(minutes int) func(*v1alpha1.PodGroup) {
	return func(g *v1alpha1.PodGroup) {
		g.CreationTimestamp = ago(minutes)
		for i := range g.Status.Conditions {
			g.Status.Conditions[i].LastTransitionTime = ago(minutes)
		}
	}
}

func createdAt(minutes int) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.CreationTimestamp = ago(minutes) }
}

func boundAt(minutes int) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Conditions[0].LastTransitionTime = ago(minutes) }
}

// eventAt is an event of so many minutes before noon, and so many milliseconds after that.
func eventAt(kind, name string, minutes, milliseconds int, reason, message string) corev1.Event {
	e := event(kind, name, minutes, reason, message)
	e.EventTime = metav1.NewMicroTime(ago(minutes).Add(time.Duration(milliseconds) * time.Millisecond))
	return e
}

// holdsNothing is a queue of which jobs wait for GPUs.
func holdsNothing() *v1alpha1.Queue {
	q := queue("gpus", nil, nil, nil)
	q.Status.Pending = amounts("nvidia.com/gpu", "8")
	return q
}

func verbose(f *explain.Facts) *explain.Facts {
	f.Verbose = true
	return f
}

// refusedBy sets the plugins for which a group waits.
func refusedBy(plugins ...string) func(*v1alpha1.PodGroup) {
	return func(g *v1alpha1.PodGroup) { g.Status.UnschedulablePlugins = plugins }
}

// group is one that was made 15 minutes ago.
func group(name string, minMember int32, queue string, edits ...func(*v1alpha1.PodGroup)) *v1alpha1.PodGroup {
	g := &v1alpha1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID("uid-" + name), Generation: 1, CreationTimestamp: ago(15)},
		Spec:       v1alpha1.PodGroupSpec{MinMember: minMember, Queue: queue},
	}
	for _, edit := range edits {
		edit(g)
	}
	return g
}

// pending is a group that has waited for 12 minutes.
func pending(reason, message string) func(*v1alpha1.PodGroup) {
	return func(g *v1alpha1.PodGroup) {
		g.Status.Phase = v1alpha1.PodGroupPending
		g.Status.Conditions = []metav1.Condition{{
			Type: v1alpha1.ConditionPodGroupScheduled, Status: metav1.ConditionFalse, Reason: reason, Message: message,
			LastTransitionTime: ago(12), ObservedGeneration: 1,
		}}
	}
}

func scheduled(g *v1alpha1.PodGroup) {
	g.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionPodGroupScheduled, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonScheduled,
		Message:            fmt.Sprintf("all %d pods that must start together have a node", g.Spec.MinMember),
		LastTransitionTime: ago(11), ObservedGeneration: 1,
	}}
	if g.Spec.MinMember == 1 {
		g.Status.Conditions[0].Message = "the 1 pod that must start has a node"
	}
}

// evicted is a PodGroup that has lost pods by an eviction.
func evicted(status metav1.ConditionStatus, message string) func(*v1alpha1.PodGroup) {
	return func(g *v1alpha1.PodGroup) {
		g.Status.Conditions = append(g.Status.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionEvicted, Status: status, Reason: v1alpha1.EvictedByReclaim, Message: message, LastTransitionTime: ago(12),
		})
	}
}

func phase(p v1alpha1.PodGroupPhase) func(*v1alpha1.PodGroup) {
	return func(g *v1alpha1.PodGroup) { g.Status.Phase = p }
}

func generation(n int64) func(*v1alpha1.PodGroup) {
	return func(g *v1alpha1.PodGroup) { g.Generation = n }
}

func aged(seconds int) func(*v1alpha1.PodGroup) {
	return func(g *v1alpha1.PodGroup) {
		g.CreationTimestamp = metav1.NewTime(noon().Add(-time.Duration(seconds) * time.Second))
	}
}

func pod(name string, edits ...func(*corev1.Pod)) corev1.Pod {
	p := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID("uid-" + name), CreationTimestamp: ago(14)},
		Spec:       corev1.PodSpec{SchedulerName: "batch-scheduler"},
		Status:     corev1.PodStatus{Phase: corev1.PodPending},
	}
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Train", Name: "train", UID: "uid-owner", Controller: ptr.To(true)}}
	for _, edit := range edits {
		edit(&p)
	}
	return p
}

func pods(group string, count int, edits ...func(*corev1.Pod)) []corev1.Pod {
	return named(group+"-", 0, count, edits...)
}

func named(prefix string, first, count int, edits ...func(*corev1.Pod)) []corev1.Pod {
	var list []corev1.Pod
	for i := range count {
		list = append(list, pod(fmt.Sprint(prefix, first+i), edits...))
	}
	return list
}

func waiting(reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, Message: message}}
	}
}

// limited declares a run time in seconds, and an estimate; 0 for none.
func limited(limit, expected int32) func(*v1alpha1.PodGroup) {
	return func(g *v1alpha1.PodGroup) {
		g.Spec.MaximumExecutionTimeSeconds = &limit
		if expected > 0 {
			g.Spec.ExpectedExecutionTimeSeconds = &expected
		}
	}
}

// startsIn sets when a PodGroup starts, or has if that is negative, and at the latest, if that is not zero.
func startsIn(d, latest time.Duration) func(*v1alpha1.PodGroup) {
	return func(g *v1alpha1.PodGroup) {
		at := metav1.NewTime(noon().Add(d))
		if d < 0 {
			g.Status.StartTime = &at
			return
		}
		g.Status.EstimatedStartTime = &at
		if latest > 0 {
			g.Status.LatestStartTime = &metav1.Time{Time: noon().Add(latest)}
		}
	}
}

// admitting sets the longest run time of a queue in seconds.
func admitting(q *v1alpha1.Queue, longest int32) *v1alpha1.Queue {
	q.Spec.ExecutionTime = &v1alpha1.QueueExecutionTime{Maximum: &longest}
	return q
}

func activeFor(seconds int64) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = ptr.To(seconds) }
}

func bare(p *corev1.Pod) { p.OwnerReferences = nil }

func running(p *corev1.Pod) {
	p.Spec.NodeName, p.Status.Phase = "n-17", corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: ago(11)}}
}

func succeeded(p *corev1.Pod) {
	running(p)
	p.Status.Phase = corev1.PodSucceeded
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: ago(2)}}}}
}

func failed(p *corev1.Pod) {
	succeeded(p)
	p.Status.Phase = corev1.PodFailed
}

func gated(name string) corev1.Pod {
	return pod(name, waiting(corev1.PodReasonSchedulingGated, "Scheduling is blocked due to non-empty scheduling gates"), func(p *corev1.Pod) {
		p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/quota"}}
	})
}

func foreign(name string) corev1.Pod {
	return pod(name, func(p *corev1.Pod) { p.Spec.SchedulerName = corev1.DefaultSchedulerName })
}

func deleted(name string, edits ...func(*corev1.Pod)) corev1.Pod {
	at := ago(0)
	edits = append(edits, func(p *corev1.Pod) { p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &at, ptr.To[int64](180) })
	return pod(name, edits...)
}

func silent(name string) corev1.Pod { return pod(name) }

func queue(name string, allocated, deserved, limit corev1.ResourceList) *v1alpha1.Queue {
	return &v1alpha1.Queue{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.QueueSpec{Weight: 3, Capability: limit},
		Status:     v1alpha1.QueueStatus{Allocated: allocated, Deserved: deserved},
	}
}

// ordered is a queue with an order of so many jobs, the first of which are PodGroups with these names.
func ordered(q *v1alpha1.Queue, length int32, first ...string) *v1alpha1.Queue {
	q.Status.Order = &v1alpha1.QueueOrder{Length: length}
	for _, key := range first {
		namespace, name, _ := strings.Cut(key, "/")
		q.Status.Order.First = append(q.Status.Order.First, v1alpha1.QueuedJob{Namespace: namespace, Name: name})
	}
	return q
}

func amounts(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

// event is one of so many minutes ago, as the scheduler writes them.
func event(kind, name string, minutes int, reason, message string) corev1.Event {
	return corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "team", Name: fmt.Sprintf("%s.%d", name, minutes)},
		InvolvedObject: corev1.ObjectReference{Kind: kind, Namespace: "team", Name: name, UID: types.UID("uid-" + name)},
		Reason:         reason, Message: message, EventTime: metav1.NewMicroTime(ago(minutes).Time),
	}
}

func many(name string, count int) []corev1.Event {
	var list []corev1.Event
	for i := range count {
		list = append(list, event("PodGroup", name, 1+i*7%count, "QueueFull", fmt.Sprintf("event %d", i)))
	}
	list[0].Series = &corev1.EventSeries{Count: 4, LastObservedTime: metav1.NewMicroTime(ago(0).Time)}
	return list
}
