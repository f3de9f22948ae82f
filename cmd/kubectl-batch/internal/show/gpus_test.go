// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package show

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/devicecounts"
)

const (
	gpuResource = "nvidia.com/gpu"
	modelLabel  = "nvidia.com/gpu.product"
)

func amounts(gpus, cpus int64) corev1.ResourceList {
	list := corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(cpus, resource.DecimalSI)}
	if gpus > 0 {
		list[gpuResource] = *resource.NewQuantity(gpus, resource.DecimalSI)
	}
	return list
}

func gpuNodeOf(name, model string, gpus, cpus int64, edits ...func(*corev1.Node)) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	if model != "" {
		n.Labels[modelLabel] = model
	}
	n.Status.Allocatable = amounts(gpus, cpus)
	n.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("110")
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	for _, edit := range edits {
		edit(&n)
	}
	return n
}

// gpuPod waits if on is empty.
func gpuPod(on string, gpus, cpus int64, edits ...func(*corev1.Pod)) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team"}}
	p.Spec.NodeName = on
	p.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: amounts(gpus, cpus)}}}
	for _, edit := range edits {
		edit(&p)
	}
	return p
}

func cordoned(n *corev1.Node) { n.Spec.Unschedulable = true }
func notReady(n *corev1.Node) { n.Status.Conditions = nil }
func tainted(n *corev1.Node) {
	n.Spec.Taints = []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}
}
func ended(p *corev1.Pod)   { p.Status.Phase = corev1.PodSucceeded }
func deleted(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }
func onH100(p *corev1.Pod)  { p.Spec.NodeSelector = map[string]string{modelLabel: "H100"} }
func tolerant(p *corev1.Pod) {
	p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
}
func claiming(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, corev1.PodResourceClaim{Name: name, ResourceClaimName: &name})
	}
}

// TestGPUs compares rows, without the titles: model, nodes, GPUs, free ones, pods of 1, 2, 4 and 8, stranded GPUs, fragmentation.
func TestGPUs(t *testing.T) {
	for name, tc := range map[string]struct {
		nodes   []corev1.Node
		pods    []corev1.Pod
		devices devicecounts.Counts
		want    []string
	}{
		"no GPUs": {nodes: []corev1.Node{gpuNodeOf("n", "H100", 0, 8)}},
		"free GPUs, and pods that fit on one node each": {
			nodes: []corev1.Node{gpuNodeOf("a", "H100", 8, 96), gpuNodeOf("b", "H100", 8, 96)},
			pods:  []corev1.Pod{gpuPod("a", 1, 8), gpuPod("b", 5, 40)},
			want:  []string{"H100 2 16 10 10 4 1 0 0 1.5"}, // the half of 3 that a pod of 5 GPUs cannot use
		},
		"models apart, by name": {
			nodes: []corev1.Node{gpuNodeOf("a", "H100", 8, 96), gpuNodeOf("b", "A100", 4, 96), gpuNodeOf("c", "", 2, 96)},
			want:  []string{"- 1 2 2 2 1 0 0 - -", "A100 1 4 4 4 2 1 0 - -", "H100 1 8 8 8 4 2 1 - -"},
		},
		"nothing is free on nodes that take no pods": {
			nodes: []corev1.Node{gpuNodeOf("a", "H100", 8, 96, cordoned), gpuNodeOf("b", "H100", 8, 96, notReady), gpuNodeOf("c", "H100", 8, 96)},
			pods:  []corev1.Pod{gpuPod("", 1, 8)},
			want:  []string{"H100 3 24 8 8 4 2 1 0 0"},
		},
		"no cpu left for any pod": {
			nodes: []corev1.Node{gpuNodeOf("a", "H100", 8, 96), gpuNodeOf("b", "H100", 8, 96)},
			pods:  []corev1.Pod{gpuPod("a", 0, 90), gpuPod("", 1, 8)},
			want:  []string{"H100 2 16 16 16 8 4 2 8 8"},
		},
		"some cpu left for the smaller pods": {
			nodes: []corev1.Node{gpuNodeOf("a", "H100", 8, 96)},
			pods:  []corev1.Pod{gpuPod("a", 0, 90), gpuPod("", 1, 4), gpuPod("", 8, 32)},
			want:  []string{"H100 1 8 8 8 4 2 1 0 4"},
		},
		"pods that have ended hold nothing, and those that are being deleted do": {
			nodes: []corev1.Node{gpuNodeOf("a", "H100", 8, 96)},
			pods:  []corev1.Pod{gpuPod("a", 4, 8, ended), gpuPod("a", 1, 8, deleted)},
			want:  []string{"H100 1 8 7 7 3 1 0 - -"},
		},
		"pods that may not run on nodes of a model do not count for it": {
			nodes: []corev1.Node{gpuNodeOf("a", "H100", 8, 96), gpuNodeOf("b", "A100", 8, 96)},
			pods:  []corev1.Pod{gpuPod("b", 1, 90), gpuPod("", 1, 1, onH100)},
			want:  []string{"A100 1 8 7 7 3 1 0 7 7", "H100 1 8 8 8 4 2 1 0 0"},
		},
		"nor those that do not tolerate its taint": {
			nodes: []corev1.Node{gpuNodeOf("a", "H100", 8, 96, tainted), gpuNodeOf("b", "H100", 8, 96)},
			pods:  []corev1.Pod{gpuPod("", 1, 8), gpuPod("", 1, 8, tolerant)},
			want:  []string{"H100 2 16 16 16 8 4 2 0 4"},
		},
		"more requested than there is": {
			nodes: []corev1.Node{gpuNodeOf("a", "H100", 2, 96)},
			pods:  []corev1.Pod{gpuPod("a", 4, 8)},
			want:  []string{"H100 1 2 0 0 0 0 0 0 0"},
		},
		"devices of DRA drivers, which extended resources and claims use": {
			nodes: []corev1.Node{gpuNodeOf("dra", "H100", 0, 96), gpuNodeOf("plugin", "H100", 8, 96)},
			pods: []corev1.Pod{
				gpuPod("dra", 2, 8), gpuPod("dra", 0, 8, claiming("own")),
				gpuPod("", 0, 8, claiming("shared")), gpuPod("dra", 0, 8, claiming("shared")), gpuPod("dra", 0, 8, claiming("shared")),
			},
			devices: devicecounts.Counts{
				Nodes:  map[string]corev1.ResourceList{"dra": amounts(8, 0), "plugin": amounts(4, 0)},
				Claims: map[string]*api.DeviceClaim{"team/own": {Required: amounts(1, 0)}, "team/shared": {Required: amounts(1, 0)}},
			},
			want: []string{"H100 2 16 12 12 6 3 1 0 0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			list := GPUs(gpuResource, ModelLabels(), tc.nodes, tc.pods, &tc.devices)
			var got []string
			for _, line := range TopGPUs(&list)[1:] {
				got = append(got, strings.Join(strings.Fields(line), " "))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestGPUsByDefinition compares with a count of each pod on each node. There are so few types that all of them count.
func TestGPUsByDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		small := rapid.Int64Range(0, 8)
		var nodes []corev1.Node
		for i := range rapid.IntRange(1, 4).Draw(t, "nodes") {
			nodes = append(nodes, gpuNodeOf(fmt.Sprint("n", i), "H100", 8, 16+small.Draw(t, "cpus")))
		}
		var pods []corev1.Pod
		requests := [][2]int64{{1, 2}, {4, 8}} // GPUs and cpu
		count := []int64{16, 16}
		for i, r := range requests { // waiting ones, so that their weights are 1/2 each
			for range count[i] {
				pods = append(pods, gpuPod("", r[0], r[1]))
			}
		}
		free := map[string][2]int64{}
		for i := range nodes {
			gpus, cpus := small.Draw(t, "used GPUs"), 2*small.Draw(t, "used cpus")
			left := free[nodes[i].Name]
			pods = append(pods, gpuPod(nodes[i].Name, gpus, cpus, deleted)) // which is no type
			left[0], left[1] = 8-gpus, nodes[i].Status.Allocatable.Cpu().Value()-cpus
			free[nodes[i].Name] = left
		}
		var stranded, milli int64
		for _, left := range free {
			useless := int64(0)
			for _, r := range requests {
				if left[0] < r[0] || left[1] < r[1] {
					useless++
				}
			}
			milli += left[0] * 1000 * useless / 2
			if useless == 2 {
				stranded += left[0]
			}
		}
		u := GPUs(gpuResource, ModelLabels(), nodes, pods, &devicecounts.Counts{}).Items[0]
		if *u.Stranded != stranded || u.Fragmentation.MilliValue() != milli {
			t.Errorf("stranded %d, fragmentation %v; by definition %d and %d/1000", *u.Stranded, u.Fragmentation, stranded, milli)
		}
	})
}

func TestModelLabels(t *testing.T) {
	n := gpuNodeOf("n", "H100", 8, 96, func(n *corev1.Node) { n.Labels["example.com/model"] = "mine" })
	for name, tc := range map[string]struct {
		labels []string
		want   string
	}{
		"the usual labels":    {ModelLabels(), "H100"},
		"another label":       {[]string{"example.com/model"}, "mine"},
		"a label of no node":  {[]string{"example.com/other"}, ""},
		"the first one there": {[]string{"example.com/other", "example.com/model", modelLabel}, "mine"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := GPUs(gpuResource, tc.labels, []corev1.Node{n}, nil, &devicecounts.Counts{}).Items[0].Model; got != tc.want {
				t.Errorf("model %q, want %q", got, tc.want)
			}
		})
	}
}
