// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

const (
	kaiRay    = "pg-ray-7d3c0a3e-0000-4000-8000-000000000005"
	kaiJobSet = "pg-train-7d3c0a3e-0000-4000-8000-000000000006"
)

func (h *harness) kai() otherAPI {
	return h.otherAPI("scheduling.run.ai", "v2alpha2", "pod-group-name")
}

// toKAI gives a pod to KAI Scheduler by name, as KubeRay does.
func toKAI(p *corev1.Pod) { p.Spec.SchedulerName = "kai-scheduler" }

// group names the group and the subgroup of a pod as the pod-grouper of KAI Scheduler does.
func inKAIGroup(group, subgroup string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		annotated("pod-group-name", group)(p)
		label("kai.scheduler/subgroup-name", subgroup)(p)
		toKAI(p)
	}
}

// TestSubGroupsOfOtherAPIs: a cluster of one head, ten workers of which four are needed, and four workers with GPUs, is written
// in each API. The same pods start (HF21).
func TestSubGroupsOfOtherAPIs(t *testing.T) {
	t.Parallel()
	policy := func(name string, size int) string {
		return fmt.Sprintf(`{"name":%q,"labelSelector":{"matchLabels":{"role":%q}},"matchLabelKeys":["role"],"subGroupSize":%d,"minSubGroups":1}`, name, name, size)
	}
	volcano := func(spec string) func(*harness) {
		return func(h *harness) {
			h.applyFiles("volcano.crd.yaml")
			h.grantSource("volcano")
			h.volcano().group(namespace, "ray", spec)
		}
	}
	inVolcano := func(string) func(*corev1.Pod) { return annotated(v1alpha1.AnnotationGroupName, "ray") }
	for name, tc := range map[string]struct {
		group  func(*harness)
		member func(role string) func(*corev1.Pod)
	}{
		"own": {
			func(h *harness) {
				h.do(group("ray", 9, func(g *gangParts) {
					for _, s := range []v1alpha1.SubGroup{leafOf("headgroup", 1), leafOf("cpu", 4), leafOf("gpu", 4)} {
						s.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"role": s.Name}}
						g.group.Spec.SubGroups = append(g.group.Spec.SubGroups, s)
					}
				}))
			},
			func(string) func(*corev1.Pod) { return label(v1alpha1.LabelPodGroup, "ray") },
		},
		"minTaskMember of Volcano": {
			volcano(`{"minMember":9,"minTaskMember":{"headgroup":1,"cpu":4,"gpu":4}}`),
			func(role string) func(*corev1.Pod) {
				return func(p *corev1.Pod) {
					inVolcano(role)(p)
					annotated(api.VolcanoTaskSpec, role)(p)
				}
			},
		},
		"subGroupPolicy of Volcano": {
			volcano(`{"minMember":9,"subGroupPolicy":[` + policy("headgroup", 1) + "," + policy("cpu", 4) + "," + policy("gpu", 4) + "]}"), inVolcano,
		},
		"subGroups of KAI Scheduler": {
			func(h *harness) {
				h.applyFiles("kai.crd.yaml", "kai.yaml")
				h.grantSource("kai")
				h.do(queue("research", 1))
			},
			func(role string) func(*corev1.Pod) { return inKAIGroup(kaiRay, role) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, noControllers)
			h.do(nodes("n", 1, "9cpu"))
			tc.group(h)
			h.start("--scheduler-name=batch-scheduler,kai-scheduler", h.sourcePolicy("own", "volcano", "kai"))
			for _, r := range []struct {
				role, request string
				count         int
			}{{"headgroup", "1cpu", 1}, {"cpu", "1cpu", 10}, {"gpu", "1cpu 1gpu", 4}} {
				for i := range r.count {
					pod := newPod(fmt.Sprintf("%s-%d", r.role, i), r.request, label("role", r.role), tc.member(r.role))
					_, err := h.client.CoreV1().Pods(namespace).Create(h.ctx, pod, metav1.CreateOptions{})
					h.must(err)
				}
			}
			h.eventually(func() error {
				return h.waits(namespace, "gpu-3", "Unschedulable", "needs 4 more pods of 1 nvidia.com/gpu")
			})
			h.must(h.bound(namespace))
			h.do(nodes("g", 1, "4cpu 4gpu"))
			h.eventually(func() error {
				return h.bound(namespace, "cpu-0", "cpu-1", "cpu-2", "cpu-3", "cpu-4", "cpu-5", "cpu-6", "cpu-7", "gpu-0", "gpu-1", "gpu-2", "gpu-3", "headgroup-0")
			})
			h.eventually(func() error { return h.waits(namespace, "cpu-8", "Unschedulable", "nodes are available") })
		})
	}
}

// TestGroupsOfKAI: pods of which the pod-grouper of KAI Scheduler has not named the group yet wait. Its PodGroups start with the
// minima of their subgroups, have the condition that KAI Scheduler writes, and wait if they ask for what the scheduler cannot honour.
func TestGroupsOfKAI(t *testing.T) {
	h := newHarness(t, noControllers)
	h.applyFiles("kai.crd.yaml", "kai.yaml")
	h.grantSource("kai")
	h.do(nodes("n", 1, "4cpu"))
	h.start("--scheduler-name=batch-scheduler,kai-scheduler", h.sourcePolicy("own", "kai"))
	kai := h.kai()
	h.eventually(func() error {
		return kai.unschedulableOnNodePool(kaiJobSet, "QueueNotFound", `queue "default-queue" does not exist`)
	})
	h.do(queue("default-queue", 1), queue("research", 1))

	names := []string{"leader-replica-0", "worker-replica-0-a", "worker-replica-0-b", "worker-replica-1-a", "worker-replica-1-b"}
	for _, name := range names {
		_, err := h.client.CoreV1().Pods(namespace).Create(h.ctx, newPod(name, "1cpu", toKAI), metav1.CreateOptions{})
		h.must(err)
	}
	for _, name := range names {
		h.eventually(func() error {
			return h.waits(namespace, name, "GroupNotFound", "the pod has no annotation pod-group-name")
		})
	}
	for i, name := range names { // as the pod-grouper does
		subgroup := name[:len("worker-replica-0")]
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"pod-group-name":%q},"labels":{"kai.scheduler/subgroup-name":%q}}}`, kaiJobSet, subgroup)
		_, err := h.client.CoreV1().Pods(namespace).Patch(h.ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
		h.must(err)
		if i == len(names)-2 {
			h.eventually(func() error {
				return h.waits(namespace, names[0], "NotEnoughPods", "4 of 5 pods that must start together exist; subgroup worker-replica-1 has 1 of 2 pods")
			})
		}
	}
	h.eventually(func() error {
		return kai.unschedulableOnNodePool(kaiJobSet, "ExceedsClusterCapacity", "needs 5 more pods of 1 cpu")
	})
	h.must(h.bound(namespace))
	h.do(nodes("m", 1, "1cpu"))
	h.eventually(func() error { return h.bound(namespace, names...) })
	h.eventually(func() error { return kai.status(namespace, kaiJobSet, map[string]string{"schedulingConditions": "[]"}) })
	kai.onlyStatus(namespace, kaiJobSet)

	kai.group(namespace, "racks", `{"minMember":1,"topologyConstraint":{"topology":"t","requiredTopologyLevel":"rack"}}`) // no such Topology exists
	_, err := h.client.CoreV1().Pods(namespace).Create(h.ctx, newPod("racks-0", "0cpu", annotated("pod-group-name", "racks"), toKAI), metav1.CreateOptions{})
	h.must(err)
	h.eventually(func() error {
		return errors.Join(h.waits(namespace, "racks-0", "TopologyNotFound", `no topology "t"`), kai.unschedulableOnNodePool("racks", "TopologyNotFound", "with the name and the levels of that of KAI Scheduler"))
	})
}
