// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/test/cluster"
)

func TestInspection(t *testing.T) {
	gangs := Gangs(2, 2)
	on := func(node string, gang, member int) corev1.Pod {
		p := *gangs[gang].Pod(member)
		p.Spec.NodeName = node
		return p
	}
	rejected := on("a", 0, 0)
	rejected.Status.Phase = corev1.PodFailed
	nodes := []corev1.Node{newNode("a", "2", "10"), newNode("b", "8", "2")}
	for name, test := range map[string]struct {
		given   []corev1.Pod
		want    Findings
		problem string
	}{
		"complete gangs within the capacity": {given: []corev1.Pod{on("a", 0, 0), on("a", 0, 1), on("b", 1, 0), on("b", 1, 1)}},
		"a pending gang is not partial":      {given: []corev1.Pod{on("", 0, 0), on("", 0, 1)}},
		"half a gang":                        {[]corev1.Pod{on("a", 0, 0), on("", 0, 1)}, Findings{PartialGangs: 1}, "1 gangs are bound in part"},
		"more cpu than the capacity": {[]corev1.Pod{on("a", 0, 0), on("a", 0, 1), on("a", 1, 0), on("b", 1, 1)},
			Findings{OvercommittedNodes: 1}, "1 nodes are overcommitted"},
		"more pods than the capacity": {[]corev1.Pod{on("b", 0, 0), on("b", 0, 1), on("b", 1, 0), on("a", 1, 1)},
			Findings{OvercommittedNodes: 1}, "1 nodes are overcommitted"},
		"a pod that its node rejects": {[]corev1.Pod{rejected, on("b", 0, 1)}, Findings{RejectedPods: 1}, "1 pods were rejected by their nodes"},
	} {
		t.Run(name, func(t *testing.T) {
			got := inspect(nodes, test.given, gangs)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.problem, got.Problem()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func newNode(name, cpu, pods string) corev1.Node {
	return corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourcePods: resource.MustParse(pods),
		}},
	}
}

// TestSmall watches two pods on a real API server: one is bound during the watch, one before it.
func TestSmall(t *testing.T) {
	if testing.Short() {
		t.Skip("needs an API server")
	}
	o := Options{Cluster: cluster.Options{Nodes: 1, NoKubelets: true}, Progress: t.Logf}
	err := Use(t.Context(), o, func(b *Bed) error {
		early, late := Gang{Name: "early", Size: 1}, Gang{Name: "late", Size: 2}
		clients, err := b.PlainClients(t.Context())
		if err != nil {
			return err
		}
		if err = b.Submit(t.Context(), early, late); err != nil {
			return err
		}
		if err = clients.Bind(t.Context(), Pods([]Gang{early}), 1); err != nil {
			return err
		}
		binds, err := b.WatchBinds(t.Context())
		if err != nil {
			return err
		}
		if err = clients.Bind(t.Context(), Pods([]Gang{late}), 1); err != nil {
			return err
		}
		if err = binds.Wait(t.Context(), 2, nil); err != nil {
			return err
		}
		if got := binds.Counts().Count; got != 2 {
			t.Errorf("%d pods were bound, want 2", got)
		}
		if err = b.Remove(t.Context(), early, late); err != nil {
			return err
		}
		pods, err := b.Client.CoreV1().Pods(Namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		if len(pods.Items) > 0 {
			t.Errorf("%d pods are left", len(pods.Items))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestRate(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		given BindCounts
		want  float64
	}{
		"nothing":     {BindCounts{}, 0},
		"one pod":     {BindCounts{1, noon, noon}, 0},
		"two seconds": {BindCounts{3000, noon, noon.Add(2 * time.Second)}, 1500},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.given.PerSecond(); got != test.want {
				t.Errorf("got %g, want %g", got, test.want)
			}
		})
	}
}

func TestUsage(t *testing.T) {
	got, err := UsageOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if got.Resident < 1<<20 || got.Peak < got.Resident || got.CPU < 0 || got.CPU > time.Hour {
		t.Errorf("this test takes %+v", got)
	}
}
