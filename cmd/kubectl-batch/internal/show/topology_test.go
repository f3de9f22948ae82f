// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package show

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// TestResourceOfTopology: the nodes of one Topology have GPUs, those of the other one have none.
func TestResourceOfTopology(t *testing.T) {
	node := func(name, label string, resource corev1.ResourceName, amount resource.Quantity) corev1.Node {
		return corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{label: "a"}},
			Status:     corev1.NodeStatus{Allocatable: corev1.ResourceList{resource: amount, corev1.ResourcePods: amount}},
		}
	}
	topology := func(label string) v1alpha1.Topology {
		return v1alpha1.Topology{
			ObjectMeta: metav1.ObjectMeta{Name: label}, Spec: v1alpha1.TopologySpec{Levels: []v1alpha1.TopologyLevel{{NodeLabel: label}}},
		}
	}
	nodes := []corev1.Node{node("n1", "hall", "nvidia.com/gpu", resource.MustParse("8")), node("n2", "rack", corev1.ResourceCPU, resource.MustParse("4"))}
	usages := Topologies([]v1alpha1.Topology{topology("rack"), topology("hall")}, nodes, nil)
	for i, want := range []string{"hall nvidia.com/gpu 8", "rack cpu 4"} {
		level := usages[i].Levels[0]
		if got := usages[i].Name + " " + string(level.Resource) + " " + level.Domains[0].Total.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
