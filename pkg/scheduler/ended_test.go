// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

// TestEndedPodGroups compares phase, condition and metrics of a PodGroup with minMember 2 whose pods have ended.
func TestEndedPodGroups(t *testing.T) {
	ended := func(name string, phase v1.PodPhase, edits ...func(*v1.Pod)) *v1.Pod {
		p := member(name)
		p.Spec.NodeName, p.Status.Phase = "n", phase
		for _, edit := range edits {
			edit(p)
		}
		return p
	}
	because := func(reason, message string) func(*v1.Pod) {
		return func(p *v1.Pod) { p.Status.Reason, p.Status.Message = reason, message }
	}
	evicted := func(p *v1.Pod) {
		p.Status.Conditions = []v1.PodCondition{{Type: v1.DisruptionTarget, Status: v1.ConditionTrue}}
	}
	for name, test := range map[string]struct {
		given []runtime.Object
		want  string
	}{
		"the kubelet states why the first pod has failed": {
			given: []runtime.Object{ended("b", v1.PodFailed), ended("a", v1.PodFailed, because("DeadlineExceeded", "Pod was active on the node longer than the specified deadline"))},
			want: "Failed; False Failed: no pod is pending or running: 0 succeeded, 2 failed; pod a: DeadlineExceeded: Pod was active on the node longer than the specified deadline\n" +
				`queue_podgroups{phase="Failed",queue="default"} 1`,
		},
		"the container has failed": {
			given: []runtime.Object{ended("a", v1.PodSucceeded), ended("b", v1.PodFailed)},
			want: "Failed; False Failed: no pod is pending or running: 1 succeeded, 1 failed; see the logs of pod b\n" +
				`queue_podgroups{phase="Failed",queue="default"} 1`,
		},
		"one has succeeded, and the other was deleted": {
			given: []runtime.Object{ended("a", v1.PodSucceeded)},
			want: "Finished; True Scheduled: the PodGroup has ended: 1 succeeded, and no pod is pending or running\n" +
				`queue_podgroups{phase="Finished",queue="default"} 1`,
		},
		"both were evicted": {
			given: []runtime.Object{ended("a", v1.PodFailed, evicted), ended("b", v1.PodFailed, evicted)},
			want: "Pending; False NotEnoughPods: 0 of 2 pods that must start together exist\n" +
				`pending_podgroups{queue="default",reason="NotEnoughPods"} 1` + "\n" + `queue_podgroups{phase="Pending",queue="default"} 1`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			probe := func(context.Context, *framework.Session) error { return nil }
			run(t, shared, probe, func(h *harness) {
				time.Sleep(10 * time.Second)
				g, err := h.batch.SchedulingV1alpha1().PodGroups("ns").Get(h.ctx, "g", metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				got := []string{string(g.Status.Phase) + "; no condition"}
				if c := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionPodGroupScheduled); c != nil {
					message, _, _ := strings.Cut(c.Message, "; priority class")
					got[0] = fmt.Sprintf("%s; %s %s: %s", g.Status.Phase, c.Status, c.Reason, message)
				}
				for _, line := range h.series("pending_podgroups", "queue_podgroups") {
					if !strings.HasSuffix(line, " 0") {
						got = append(got, line)
					}
				}
				if diff := cmp.Diff(test.want, strings.Join(got, "\n")); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			}, append(test.given, node("n"))...)
		})
	}
}

// TestEndWithoutPods: the condition of a PodGroup that has failed stays when its pods are deleted.
func TestEndWithoutPods(t *testing.T) {
	g := api.PodGroupReport{Phase: v1alpha1.PodGroupFailed}
	reportEnd(&api.JobInfo{}, &g)
	if diff := cmp.Diff(api.PodGroupReport{Phase: v1alpha1.PodGroupFailed}, g); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
