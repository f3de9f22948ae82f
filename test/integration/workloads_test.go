// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/test/cluster"
	"github.com/batch-scheduler/batch-scheduler/test/workloads"
)

// TestSamplesOfWorkloads: the gang of each file in config/samples/workloads runs. Jobs make their pods themselves;
// where there is no controller here, the pods are made as it would make them.
func TestSamplesOfWorkloads(t *testing.T) {
	samples, err := workloads.ReadAll("../../config/samples/workloads")
	if err != nil {
		t.Fatal(err)
	}
	h := newHarness(t, cluster.Options{ControllerManager: true, JobRunTime: time.Hour})
	h.do(nodes("n", 6, "8cpu 2gpu"))
	var want strings.Builder
	for _, s := range samples {
		h.do(sampleGroup(s), samplePods(s))
		fmt.Fprintf(&want, "%s: Running Scheduled; %d running\n", s.Name, s.Group.Spec.MinMember)
	}
	fmt.Fprintln(&want, "beside-sparkapplication: 1 running") // the driver
	h.start()
	h.awaitStable(want.String(), "")
	if err := h.view.invariants(); err != nil {
		t.Error(err)
	}
}

func sampleGroup(s *workloads.Sample) row {
	return func(h *harness) {
		s.Group.Labels = map[string]string{jobLabel: s.Name}
		h.apply(s.Group, v1alpha1.SchemeGroupVersion.WithKind("PodGroup"))
	}
}

// samplePods makes the pods of a file, under its name in pictures; those outside of the group beside it.
func samplePods(s *workloads.Sample) row {
	return func(h *harness) {
		if s.Service != nil {
			_, err := h.client.CoreV1().Services(namespace).Create(h.ctx, s.Service, metav1.CreateOptions{})
			h.must(err)
		}
		if s.Job != nil {
			s.Job.Spec.Template.Labels[jobLabel] = s.Name
			_, err := h.client.BatchV1().Jobs(namespace).Create(h.ctx, s.Job, metav1.CreateOptions{})
			h.must(err)
			return
		}
		for i, p := range s.Pods {
			var list []*corev1.Pod
			for j := range p.Count {
				pod := &corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(s.Name, "-", i, "-", j), Namespace: namespace, Labels: maps.Clone(p.Template.Labels)},
					Spec:       p.Template.Spec,
				}
				pod.Labels[jobLabel] = s.Name
				if pod.Labels[v1alpha1.LabelPodGroup] == "" {
					pod.Labels[jobLabel] = "beside-" + s.Name
				}
				list = append(list, pod)
			}
			h.create(list)
		}
	}
}
