// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/cmd/localcluster/annotation"
	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/test/cluster"
)

// TestEvictedJobsComeBack: reclaim evicts a gang of 8 pods, which a Job created. With the policy that submit writes the Job
// creates the pods again, and completes. Without it the Job fails, because its backoffLimit is 6.
func TestEvictedJobsComeBack(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		submit row
		after  func(*harness, plugin) // the eviction
	}{
		"with the policy that submit writes": {
			submit: func(h *harness) {
				h.newPlugin().prints("submit --name victim --replicas 8 --cpu 1 --queue lender --image i", "job.batch/victim created")
			},
			after: func(h *harness, p plugin) {
				h.eventually(func() error { return h.groupIs("victim", "Pending OverShare: 8 pending, 0 running") })
				h.must(difference("0 failed", h.jobIs("victim")))
				p.prints("why victim", "PodGroup: default/victim")

				h.do(remove("preemptor"))
				h.eventually(func() error { return h.groupIs("victim", "Running Scheduled: 0 pending, 8 running") })
				h.do(succeed("victim"))
				h.eventually(func() error { return difference("Complete CompletionsReached, 0 failed", h.jobIs("victim")) })
				h.eventually(func() error { return h.groupIs("victim", "Finished Scheduled: 0 pending, 0 running") })
				p.eventuallyPrints("why victim", "Job victim is complete")
			},
		},
		"without it": {
			submit: func(h *harness) { h.do(group("victim", 8, in("lender")), job("victim", 8, "1cpu")) },
			after: func(h *harness, p plugin) {
				h.eventually(func() error { return difference("Failed BackoffLimitExceeded, 8 failed", h.jobIs("victim")) })
				h.eventually(func() error {
					return h.event("EvictionEndsJob", "evicted for default/preemptor, and the Job ends: evicted pods count as failures, these would be 8")
				})
				p.eventuallyPrints("why victim", "Reason:   BackoffLimitExceeded", "Job victim failed", "The eviction ended the Job", "that ignores DisruptionTarget")
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, cluster.Options{ControllerManager: true, JobRunTime: time.Hour})
			h.do(threeNodes, queue("lender", 1), queue("other", 1))
			p := h.newPlugin()
			test.submit(h)
			h.start("--scheduler-conf=" + h.file("policy.yaml", evictingPolicy))
			h.eventually(func() error { return h.groupIs("victim", "Running Scheduled: 0 pending, 8 running") })
			h.do(gang("preemptor", 6, pods(6, "1cpu"), in("other")))
			h.eventually(func() error { return h.groupIs("preemptor", "Running Scheduled: 0 pending, 6 running") })
			test.after(h, p)
		})
	}
}

// TestEndsOfJobs: the PodGroup of a Job that has ended does not count as pending, as far as its pods show it, and why
// states the reason of the Job in any case.
func TestEndsOfJobs(t *testing.T) {
	h := newHarness(t, controllers)
	h.do(threeNodes, queue("q", 1),
		group("fails", 2, in("q")), job("fails", 2, "1cpu", func(j *batchv1.Job) {
			j.Spec.BackoffLimit = ptr.To[int32](0)
			j.Spec.Template.Annotations = map[string]string{annotation.RunFor: "100ms", annotation.ExitCode: "1"}
		}),
		group("completes", 2, in("q")), job("completes", 2, "1cpu", func(j *batchv1.Job) {
			j.Spec.Template.Annotations = map[string]string{annotation.RunFor: "100ms"}
		}),
		group("late", 2, in("q")), job("late", 2, "1cpu", func(j *batchv1.Job) {
			j.Spec.ActiveDeadlineSeconds = ptr.To[int64](3)
			j.Spec.Template.Annotations = map[string]string{annotation.RunFor: "1h"}
		}))
	h.start()
	p := h.newPlugin()
	h.eventually(func() error { return h.groupIs("fails", "Failed Failed: 0 pending, 0 running") })
	h.eventually(func() error { return h.groupIs("completes", "Finished Scheduled: 0 pending, 0 running") })
	p.eventuallyPrints("why fails", "Reason:   BackoffLimitExceeded", "Job fails failed")
	p.eventuallyPrints("why late", "Reason:   DeadlineExceeded", "Job late failed", "The activeDeadlineSeconds of a Job includes")
	h.eventually(func() error { // the pods of "late" are deleted, and show nothing
		q, err := h.view.queues.Get("q")
		if err != nil {
			return err
		}
		return difference(v1alpha1.QueueGroups{Pending: 1, Finished: 1, Failed: 1}, q.Status.Groups)
	})

	h.must(h.client.CoreV1().Pods(namespace).DeleteCollection(h.ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: v1alpha1.LabelPodGroup + "=completes"}))
	h.must(h.await(func() error { return h.groupIs("completes", "Finished Scheduled: 0 pending, 0 running") }))
}

// job creates a Job with pods of a PodGroup of the same name, without a podFailurePolicy; edits come after.
func job(name string, pods int32, request string, edits ...func(*batchv1.Job)) row {
	return func(h *harness) {
		j := &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: batchv1.JobSpec{
				Parallelism: &pods, Completions: &pods,
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelPodGroup: name}},
					Spec:       podSpec(request),
				},
			},
		}
		j.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
		for _, edit := range edits {
			edit(j)
		}
		_, err := h.client.BatchV1().Jobs(namespace).Create(h.ctx, j, metav1.CreateOptions{})
		h.must(err)
	}
}

// remove deletes a PodGroup and its pods.
func remove(name string) row {
	return func(h *harness) {
		h.must(h.batch.SchedulingV1alpha1().PodGroups(namespace).Delete(h.ctx, name, metav1.DeleteOptions{}))
		h.must(h.client.CoreV1().Pods(namespace).DeleteCollection(h.ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: v1alpha1.LabelPodGroup + "=" + name}))
	}
}

// succeed waits until all pods of a PodGroup run, and ends them as a kubelet does.
func succeed(name string) row {
	return func(h *harness) {
		var list *corev1.PodList
		h.eventually(func() (err error) {
			list, err = h.client.CoreV1().Pods(namespace).List(h.ctx, metav1.ListOptions{LabelSelector: v1alpha1.LabelPodGroup + "=" + name})
			if err != nil {
				return err
			}
			for i := range list.Items {
				if p := &list.Items[i]; p.Status.Phase != corev1.PodRunning {
					return fmt.Errorf("pod %s is %s", p.Name, p.Status.Phase)
				}
			}
			return nil
		})
		h.each(len(list.Items), func(i int) error {
			_, err := h.client.CoreV1().Pods(namespace).Patch(h.ctx, list.Items[i].Name, types.MergePatchType, []byte(`{"status":{"phase":"Succeeded"}}`), metav1.PatchOptions{}, "status")
			return err
		})
	}
}

// groupIs returns how a PodGroup differs from its wanted phase, reason and counts; nil if it does not.
func (h *harness) groupIs(name, want string) error {
	g, err := h.view.groups.PodGroups(namespace).Get(name)
	if err != nil {
		return err
	}
	return difference(want, fmt.Sprintf("%s %s: %d pending, %d running", g.Status.Phase, scheduled(g).Reason, g.Status.Pending, g.Status.Running))
}

// jobIs returns how a Job has ended, if it has, and how many failed pods it counts.
func (h *harness) jobIs(name string) string {
	j, err := h.client.BatchV1().Jobs(namespace).Get(h.ctx, name, metav1.GetOptions{})
	h.must(err)
	failed := fmt.Sprintf("%d failed", j.Status.Failed)
	for _, c := range j.Status.Conditions {
		if (c.Type == batchv1.JobFailed || c.Type == batchv1.JobComplete) && c.Status == corev1.ConditionTrue {
			return fmt.Sprintf("%s %s, %s", c.Type, c.Reason, failed)
		}
	}
	return failed
}
