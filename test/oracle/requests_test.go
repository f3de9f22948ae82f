// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	schedulerframework "k8s.io/kubernetes/pkg/scheduler/framework"
	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

// TestRequestsEqualKubeScheduler compares the requests of pods: init containers, sidecars, overhead, pod-level
// requests, and, for pods with a node, resizes in progress.
func TestRequestsEqualKubeScheduler(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pod := drawPod(t, "p")
		if seldom(t, "asks as a whole") {
			pod.Spec.Resources = &v1.ResourceRequirements{Requests: drawAllocatable(t)}
		}
		if rapid.Bool().Draw(t, "on a node") {
			pod.Spec.NodeName = "n"
			drawResize(t, pod)
		}
		cluster := model.NewCluster(model.Options{SchedulerNames: []string{schedulerName}, DefaultQueue: "default"})
		cluster.Events().SetPod(pod)
		cluster.Events().Recompute()
		info, err := schedulerframework.NewPodInfo(pod)
		if err != nil {
			t.Skip(err)
		}
		got, want := ours(cluster, pod), theirs(info)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("requests of the pod (-kube-scheduler +this scheduler):\n%s%s", diff, asYAML(pod))
		}
	})
}

func drawAllocatable(t *rapid.T) v1.ResourceList {
	list := v1.ResourceList{}
	add(t, list, v1.ResourceCPU, "1m", "2", "20")
	if often(t, "memory") {
		add(t, list, v1.ResourceMemory, "1Gi", "20Gi")
	}
	return list
}

// drawResize changes the requests of containers, and of the pod as a whole, in its status.
func drawResize(t *rapid.T, pod *v1.Pod) {
	status := func(containers []v1.Container) (list []v1.ContainerStatus) {
		for i := range containers {
			if often(t, "started") {
				s := v1.ContainerStatus{Name: containers[i].Name, AllocatedResources: drawAllocatable(t)}
				if often(t, "actuated") {
					s.Resources = &v1.ResourceRequirements{Requests: drawAllocatable(t)}
				}
				list = append(list, s)
			}
		}
		return list
	}
	pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses = status(pod.Spec.Containers), status(pod.Spec.InitContainers)
	if pod.Spec.Resources != nil && seldom(t, "the pod is resized") {
		pod.Status.AllocatedResources, pod.Status.Resources = drawAllocatable(t), &v1.ResourceRequirements{Requests: drawAllocatable(t)}
	}
	if seldom(t, "resize waits") {
		pod.Status.Conditions = []v1.PodCondition{{
			Type: v1.PodResizePending, Status: v1.ConditionTrue, Reason: one(t, "why", v1.PodReasonDeferred, v1.PodReasonInfeasible),
		}}
	}
}

func ours(cluster *model.Cluster, pod *v1.Pod) map[v1.ResourceName]int64 {
	amounts := map[v1.ResourceName]int64{}
	for d, amount := range cluster.Tasks()[api.TaskID(pod.UID)].Request {
		if name := cluster.Dims().Name(d); amount > 0 && name != v1.ResourcePods {
			amounts[name] = amount
		}
	}
	return amounts
}

func theirs(info *schedulerframework.PodInfo) map[v1.ResourceName]int64 {
	asked := info.CalculateResource().Resource
	amounts := map[v1.ResourceName]int64{
		v1.ResourceCPU: asked.GetMilliCPU(), v1.ResourceMemory: asked.GetMemory(), v1.ResourceEphemeralStorage: asked.GetEphemeralStorage(),
	}
	for name, amount := range asked.GetScalarResources() {
		amounts[name] = amount
	}
	for name, amount := range amounts {
		if amount == 0 {
			delete(amounts, name)
		}
	}
	return amounts
}
