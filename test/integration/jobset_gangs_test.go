// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/test/cluster"
)

// TestJobSetsAreGangs runs the controller of JobSet, with grouping. No object names a gang.
func TestJobSetsAreGangs(t *testing.T) {
	controller := jobSet.build(t)
	h := newHarness(t, cluster.Options{ControllerManager: true, JobRunTime: time.Hour})
	h.grantGrouping("jobset")
	for name, cpu := range map[string]string{"flat": "8cpu", "staged": "3cpu", "again": "8cpu"} {
		h.do(node(name, cpu))
	}
	h.startJobSet(controller)
	h.start(h.groupingPolicy("{kinds: [jobset]}"))
	for name, test := range map[string]func(*harness){"flat": flatJobSet, "staged": stagedJobSet, "again": jobSetAgain} {
		t.Run(name, func(t *testing.T) {
			inner := *h
			inner.t = t
			test(&inner)
		})
	}
}

// replicatedJob is an entry of a JobSet whose pods request 1 cpu each, on a node only.
func replicatedJob(name, node string, replicas, pods int, more, annotations string) string {
	return fmt.Sprintf(`{name: %s, replicas: %d, %s template: {spec: {parallelism: %d, completions: %d, backoffLimit: 0, template: {
		metadata: {annotations: {%s}},
		spec: {schedulerName: batch-scheduler, restartPolicy: Never, nodeSelector: {kubernetes.io/hostname: %s}, containers: [{name: main, image: image, resources: {requests: {cpu: "1"}}}]}}}}}`,
		name, replicas, more, pods, pods, annotations, node)
}

// jobSet creates a JobSet.
func (h *harness) jobSet(name, more string, jobs ...string) {
	h.t.Helper()
	set := parseObject(h, fmt.Sprintf("{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: %s}, spec: {%s replicatedJobs: [%s]}}",
		name, more, strings.Join(jobs, ", ")))
	h.eventually(func() error { // its webhooks may not be served yet
		_, err := h.jobSets().Create(h.ctx, set, metav1.CreateOptions{})
		return err
	})
}

// each applies a function to the pods of a namespace whose names begin with a prefix.
func (h *harness) eachPod(prefix string, visit func(*corev1.Pod)) int {
	h.t.Helper()
	list, err := h.client.CoreV1().Pods(namespace).List(h.ctx, metav1.ListOptions{})
	h.must(err)
	n := 0
	for i := range list.Items {
		if strings.HasPrefix(list.Items[i].Name, prefix) {
			visit(&list.Items[i])
			n++
		}
	}
	return n
}

// allWait compares how many pods there are, and why all of them wait.
func (h *harness) allWait(prefix string, count int, reason, part string) error {
	var err error
	n := h.eachPod(prefix, func(p *corev1.Pod) {
		if waits := h.waits(namespace, p.Name, reason, part); waits != nil {
			err = waits
		}
	})
	if err == nil && n != count {
		err = fmt.Errorf("%d pods %s*, want %d", n, prefix, count)
	}
	return err
}

// IG1: a driver and two Jobs of four workers, with cpu for eight pods, then for nine.
func flatJobSet(h *harness) {
	h.jobSet("flat", "", replicatedJob("driver", "flat", 1, 1, "", ""), replicatedJob("workers", "flat", 2, 4, "", ""))
	h.eventually(func() error { return h.allWait("flat-", 9, "Unschedulable", "9 more pods") })
	h.must(h.boundOf("flat-", 0))
	h.resize("flat", "9")
	h.eventually(func() error { return h.boundOf("flat-", 9) })
}

// IG2: four pods that depend on the end of one, with cpu for three pods, then for four.
func stagedJobSet(h *harness) {
	h.jobSet("staged", "", replicatedJob("init", "staged", 1, 1, "", `localcluster.batch-scheduler.dev/run-for: "1s"`),
		replicatedJob("train", "staged", 1, 4, "dependsOn: [{name: init, status: Complete}],", ""))
	h.eventually(func() error { return h.allWait("staged-train-", 4, "Unschedulable", "4 more pods") })
	h.must(h.boundOf("staged-train-", 0))
	h.must(h.boundOf("staged-init-", 1))
	h.resize("staged", "4")
	h.eventually(func() error { return h.boundOf("staged-train-", 4) })
}

// IG7: a JobSet of two Jobs of two pods restarts after a failure, and the pods of one Job take long to terminate. One pod has
// succeeded before.
func jobSetAgain(h *harness) {
	h.jobSet("again", "failurePolicy: {maxRestarts: 3},", replicatedJob("fast", "again", 1, 2, "", ""),
		replicatedJob("slow", "again", 1, 2, "", `localcluster.batch-scheduler.dev/terminate-after: "1h"`))
	running := func(attempt string) func() error {
		return func() error {
			n := 0
			h.eachPod("again-", func(p *corev1.Pod) {
				if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil && p.Labels["jobset.sigs.k8s.io/restart-attempt"] == attempt {
					n++
				}
			})
			if n != 4 {
				return fmt.Errorf("%d pods run of attempt %s, want 4", n, attempt)
			}
			return nil
		}
	}
	h.eventually(running("0"))
	end := func(prefix, phase string) {
		h.eachPod(prefix, func(p *corev1.Pod) {
			_, err := h.client.CoreV1().Pods(namespace).Patch(h.ctx, p.Name, types.MergePatchType, []byte(`{"status":{"phase":"`+phase+`"}}`), metav1.PatchOptions{}, "status")
			h.must(err)
		})
	}
	end("again-fast-0-0", "Succeeded")
	end("again-fast-0-1", "Failed")
	again := func() error {
		var names []string
		h.eachPod("again-", func(p *corev1.Pod) {
			if p.Labels["jobset.sigs.k8s.io/restart-attempt"] == "1" {
				names = append(names, p.Name)
			}
		})
		if len(names) != 2 {
			return fmt.Errorf("pods of the second attempt: %v", names)
		}
		for _, name := range names {
			if err := h.waits(namespace, name, "NotEnoughPods", "2 of 4 pods"); err != nil {
				return err
			}
		}
		return nil
	}
	h.eventually(again)
	h.eachPod("again-slow-", func(p *corev1.Pod) { // their kubelet has stopped them
		h.must(h.client.CoreV1().Pods(namespace).Delete(h.ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}))
	})
	h.eventually(running("1"))
}
