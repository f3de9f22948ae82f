// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/test/cluster"
)

// TestSchedulerNamePolicy is about the sample policy that sets the name of the scheduler by a label of the namespace.
func TestSchedulerNamePolicy(t *testing.T) {
	h := newHarness(t, cluster.Options{})
	h.do(node("n1", "4cpu"))
	const label, policy = "scheduling.batch-scheduler.dev/scheduler-name", "scheduler-name.scheduling.batch-scheduler.dev"
	for name, labels := range map[string]map[string]string{
		"labelled":     {label: "batch-scheduler"},
		"unlabelled":   {"team": "a"},
		"another-name": {label: "volcano"},
	} {
		_, err := h.client.CoreV1().Namespaces().Create(h.ctx,
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, metav1.CreateOptions{})
		h.must(err)
	}
	h.must(h.cluster.Apply(h.ctx, "../../config/samples/scheduler-name"))
	h.awaitSchedulerName("batch-scheduler") // policies are in force a moment after they are created

	named := func(name string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.SchedulerName = name } }
	owned := func(kind string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: "o", UID: "u", Controller: ptr.To(true)}}
		}
	}
	for name, test := range map[string]struct {
		in   string
		edit func(*corev1.Pod)
		want string
	}{
		"a pod":                            {"labelled", nil, "batch-scheduler"},
		"a pod that names default":         {"labelled", named("default-scheduler"), "batch-scheduler"},
		"a pod of a ReplicaSet":            {"labelled", owned("ReplicaSet"), "batch-scheduler"},
		"a pod in another namespace":       {"unlabelled", nil, "default-scheduler"},
		"a namespace with another value":   {"another-name", nil, "default-scheduler"},
		"a pod that names another":         {"labelled", named("volcano"), "volcano"},
		"a pod of a DaemonSet":             {"labelled", owned("DaemonSet"), "default-scheduler"},
		"a pod that is bound when created": {"labelled", func(p *corev1.Pod) { p.Spec.NodeName = "n1" }, "default-scheduler"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := h.schedulerNameIn(h.ctx, test.in, test.edit)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("scheduler name (-want +got):\n%s", diff)
			}
		})
	}

	t.Run("the scheduler places the pod", func(t *testing.T) {
		h.start()
		_, err := h.client.CoreV1().Pods("labelled").Create(h.ctx, podToName("run"), metav1.CreateOptions{})
		h.must(err)
		h.eventually(func() error {
			pod, err := h.client.CoreV1().Pods("labelled").Get(h.ctx, "run", metav1.GetOptions{})
			if err == nil && pod.Spec.NodeName == "" {
				err = fmt.Errorf("the pod is not bound: %v", pod.Status.Conditions)
			}
			return err
		})
	})

	t.Run("an expression fails", func(t *testing.T) {
		failing := `[{"op": "add", "path": "/spec/matchConditions/-", "value": {"name": "fails", "expression": "object.metadata.labels['absent'] == 'a'"}}]`
		_, err := h.client.AdmissionregistrationV1().MutatingAdmissionPolicies().Patch(h.ctx, policy, types.JSONPatchType, []byte(failing), metav1.PatchOptions{})
		h.must(err)
		h.awaitSchedulerName("default-scheduler") // it is created with the name that it has
	})
}

func podToName(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "image"}}},
	}
}

// schedulerNameIn returns the scheduler name that a new pod gets in a namespace.
func (h *harness) schedulerNameIn(ctx context.Context, namespace string, edit func(*corev1.Pod)) (string, error) {
	pod := podToName("named")
	if edit != nil {
		edit(pod)
	}
	created, err := h.client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return "", err
	}
	return created.Spec.SchedulerName, nil
}

// awaitSchedulerName waits until new pods of the labelled namespace have the name.
func (h *harness) awaitSchedulerName(want string) {
	h.t.Helper()
	h.must(wait.PollUntilContextTimeout(h.ctx, idleCycles/10, waitTimeout, true, func(ctx context.Context) (bool, error) {
		got, err := h.schedulerNameIn(ctx, "labelled", nil)
		return got == want, err
	}))
}
