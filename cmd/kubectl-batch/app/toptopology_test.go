// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// withTopology has two blocks with two racks and one rack, of two nodes each, where PodGroups, a pod without one and a
// pod of another scheduler run.
func withTopology(t *testing.T) *pretended {
	t.Helper()
	p := newPretended()
	var objects []runtime.Object
	gpus := func(n int64) corev1.ResourceList {
		return corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(n, resource.DecimalSI)}
	}
	for i := range 7 {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i), Labels: map[string]string{"block": fmt.Sprint("b", i/4), "rack": fmt.Sprint("r", i/2)}}}
		n.Status.Allocatable = gpus(8)
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		switch i {
		case 3:
			n.Spec.Unschedulable = true
		case 5:
			n.Status.Conditions = nil
		case 6:
			n.Labels = nil
		}
		objects = append(objects, n)
	}
	pods := 0
	pod := func(node, queue, group string, phase corev1.PodPhase) {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: fmt.Sprint("p", pods)}}
		pods++
		p.Spec.NodeName, p.Status.Phase = node, phase
		p.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: gpus(1)}}}
		if queue != "" {
			p.Annotations = map[string]string{v1alpha1.AnnotationQueue: queue}
		}
		if group != "" {
			p.Labels = map[string]string{v1alpha1.LabelPodGroup: group}
		}
		objects = append(objects, p)
	}
	for _, group := range []string{"d", "a", "c", "b", "d"} {
		pod("n0", "q", group, corev1.PodRunning)
	}
	pod("n0", "q", "", corev1.PodRunning)
	pod("n1", "q", "over", corev1.PodSucceeded)
	pod("n1", "q", "d", corev1.PodPending)
	pod("n2", "", "foreign", corev1.PodRunning)
	pod("n6", "q", "elsewhere", corev1.PodRunning)
	for _, object := range objects {
		if err := p.core.Tracker().Add(object); err != nil {
			t.Fatal(err)
		}
	}
	topology := &v1alpha1.Topology{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	topology.Spec.Levels = []v1alpha1.TopologyLevel{{Name: "block", NodeLabel: "block"}, {NodeLabel: "rack"}}
	if err := p.batch.Tracker().Create(v1alpha1.SchemeGroupVersion.WithResource("topologies"), topology, ""); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestTopTopology(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{
		"top-topology":          "top topology default",
		"top-topology-json":     "top topology default -o json",
		"complete-topologies":   "__complete top topology ",
		"complete-one-topology": "__complete top topology default ",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			printed(t, name, run(t, withTopology(t), "", strings.Split(line, " ")...))
		})
	}
	for _, resource := range []string{"nodes", "pods"} {
		t.Run(resource+" may not be read", func(t *testing.T) {
			t.Parallel()
			c := withTopology(t)
			c.refuse("list", resource, apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New("no")))
			const want = "it requires a ClusterRoleBinding to a role that may list them, such as batch-scheduler-record"
			if got := run(t, c, "", "top", "topology", "default"); !strings.Contains(got, want) {
				t.Errorf("want %q in %q", want, got)
			}
		})
	}
}
