// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// limited declares the run time of a gang in seconds.
func limited(seconds int32) part {
	return func(g *gangParts) { g.group.Spec.MaximumExecutionTimeSeconds = &seconds }
}

// admitting sets the longest run time of a queue in seconds.
func admitting(seconds int32) func(*v1alpha1.Queue) {
	return func(q *v1alpha1.Queue) { q.Spec.ExecutionTime = &v1alpha1.QueueExecutionTime{Maximum: &seconds} }
}

// TestRunTimesAreValidated: the API server refuses run times that contradict themselves.
func TestRunTimesAreValidated(t *testing.T) {
	h := newHarness(t, noControllers)
	for name, spec := range map[string]v1alpha1.PodGroupSpec{
		"Invalid value: 0": {MaximumExecutionTimeSeconds: new(int32(0))},
		"must not exceed maximumExecutionTimeSeconds": {MaximumExecutionTimeSeconds: new(int32(60)), ExpectedExecutionTimeSeconds: new(int32(61))},
		"supported values":                            {OnOverrun: "Kill"},
	} {
		g := &v1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: "g", Namespace: namespace}, Spec: spec}
		_, err := h.batch.SchedulingV1alpha1().PodGroups(namespace).Create(h.ctx, g, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if !apierrors.IsInvalid(err) || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(name)) {
			t.Errorf("the API server answers %v, want an error with %q", err, name)
		}
	}
	q := &v1alpha1.Queue{
		ObjectMeta: metav1.ObjectMeta{Name: "q"},
		Spec:       v1alpha1.QueueSpec{ExecutionTime: &v1alpha1.QueueExecutionTime{Default: new(int32(61)), Maximum: new(int32(60))}},
	}
	_, err := h.batch.SchedulingV1alpha1().Queues().Create(h.ctx, q, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "must not exceed maximum") {
		t.Errorf("the API server answers %v", err)
	}
}

// TestRunTimes: a queue admits no run time above its maximum (TI15), the status has the start of a PodGroup, also under the
// next process, and the plugin shows both.
func TestRunTimes(t *testing.T) {
	h := newHarness(t, noControllers)
	h.do(nodes("n", 1, "8cpu"), queue("default", 1), queue("team", 1, admitting(3600)),
		gang("long", 2, pods(2, "1cpu"), in("team"), limited(7200)),
		gang("short", 2, pods(2, "1cpu"), in("team"), limited(1800)))
	h.start()
	const tooLong = "its run time is limited to 2h, and queue team admits at most 1h"
	h.boundNow("short-0", "short-1")
	h.waitNow("ExecutionTimeTooLong", tooLong, "long-0", "long-1")
	started := func(name string) *v1alpha1.PodGroup {
		var g *v1alpha1.PodGroup
		h.eventually(func() (err error) {
			g, err = h.batch.SchedulingV1alpha1().PodGroups(namespace).Get(h.ctx, name, metav1.GetOptions{})
			if err == nil && g.Status.StartTime == nil {
				err = fmt.Errorf("PodGroup %s has no start: %+v", name, g.Status)
			}
			return err
		})
		return g
	}
	short := started("short")
	if age := time.Since(short.Status.StartTime.Time); age < 0 || age > 5*time.Minute {
		t.Errorf("PodGroup short started %s ago", age)
	}
	pod, err := h.client.CoreV1().Pods(namespace).Get(h.ctx, "short-1", metav1.GetOptions{})
	h.must(err)
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.LastTransitionTime.After(short.Status.StartTime.Time) {
			t.Errorf("PodGroup short started at %s, before its pod got a node at %s", short.Status.StartTime, c.LastTransitionTime)
		}
	}
	ada := h.newPlugin()
	ada.eventuallySays("why long", "Reason: ExecutionTimeTooLong", tooLong, "Run time: limit 2h")
	ada.eventuallySays("why short", "Run time: limit 30m", "Start:")
	ada.eventuallySays("get podgroups --start", "long team Pending 2h - - ExecutionTimeTooLong", "short team Running 30m")

	h.stop()
	h.start()
	h.do(queue("team", 1))
	h.boundNow("long-0", "long-1", "short-0", "short-1")
	started("long")
	if now := started("short"); !now.Status.StartTime.Equal(short.Status.StartTime) {
		t.Errorf("under another process PodGroup short started at %s, before at %s", now.Status.StartTime, short.Status.StartTime)
	}
}

// TestNodesThatBecomeUnavailable: only pods that are over by then are placed on a node that becomes unavailable (TI11), and a
// time that cannot be read is reported.
func TestNodesThatBecomeUnavailable(t *testing.T) {
	h := newHarness(t, noControllers)
	from := time.Now().Add(30 * time.Minute).UTC().Format(time.RFC3339)
	annotate := func(value string) {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, v1alpha1.AnnotationUnavailableFrom, value)
		_, err := h.client.CoreV1().Nodes().Patch(h.ctx, "n1", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		h.must(err)
	}
	h.do(nodes("n", 1, "8cpu"), queue("default", 1))
	annotate(`"` + from + `"`)
	h.start()
	h.do(gang("short", 1, pods(1, "1cpu"), limited(1200)), gang("long", 1, pods(1, "1cpu"), limited(2400)), gang("none", 1, pods(1, "1cpu")))
	h.boundNow("short-0")
	h.waitNow("Unschedulable", "1 node(s) were unavailable from "+from+" on, before the pod is over", "long-0", "none-0")
	h.newPlugin().eventuallySays("why none", "node(s) were unavailable from "+from)

	annotate(`"tomorrow"`)
	h.boundNow("long-0", "none-0", "short-0")
	h.eventually(func() error {
		list, err := h.client.CoreV1().Events(metav1.NamespaceDefault).List(h.ctx, metav1.ListOptions{FieldSelector: "reason=InvalidUnavailableFrom"})
		if err != nil || len(list.Items) > 0 && list.Items[0].InvolvedObject.Name == "n1" {
			return err
		}
		return fmt.Errorf("node n1 has no event, there are %v", list.Items)
	})
}
