// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package schedtest

import (
	"fmt"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

// discard is Effects that discards decisions.
type discard struct{}

func (discard) Commit([]api.Decision) {}

// RandomSession opens a session over a few nodes and jobs with little variety, so that ties are common.
func RandomSession(t *rapid.T, registry *framework.Registry, tiers []conf.Tier) *framework.Session {
	c := model.NewCluster(model.Options{SchedulerNames: []string{"batch-scheduler"}, DefaultQueue: "default"})
	c.Events().SetQueue(&v1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "default"}, Spec: v1alpha1.QueueSpec{Weight: 1}})
	for i := range 3 {
		c.Events().SetNode(&v1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i)},
			Status:     v1.NodeStatus{Allocatable: quantities(t, "node", 1, 50)},
		})
	}
	for j := range rapid.IntRange(2, 7).Draw(t, "jobs") {
		group := fmt.Sprintf("g%d", j)
		created := metav1.Unix(rapid.Int64Range(1, 3).Draw(t, "created"), 0)
		c.Events().SetPodGroup(&v1alpha1.PodGroup{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: group, UID: types.UID(group), CreationTimestamp: created},
			Spec:       v1alpha1.PodGroupSpec{MinMember: rapid.Int32Range(1, 3).Draw(t, "min")},
		})
		for i := range 4 {
			priority := rapid.Int32Range(0, 1).Draw(t, "priority")
			name := fmt.Sprintf("%s-%d", group, i)
			pod := &v1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "ns", Name: name, UID: types.UID(name), CreationTimestamp: created,
					Labels: map[string]string{v1alpha1.LabelPodGroup: group},
				},
				Spec: v1.PodSpec{SchedulerName: schedulerName, Priority: &priority, Containers: []v1.Container{{
					Resources: v1.ResourceRequirements{Requests: quantities(t, "pod", 0, 4)},
				}}},
			}
			if i > 0 && rapid.Bool().Draw(t, "running") {
				pod.Spec.NodeName, pod.Status.Phase = "n0", v1.PodRunning
			}
			c.Events().SetPod(pod)
		}
	}
	c.Events().Recompute()
	profile, err := registry.NewProfile(&conf.Configuration{Tiers: tiers}, framework.Handle{})
	if err != nil {
		t.Fatal(err)
	}
	return profile.Open(c, discard{}, logr.Discard())
}

func quantities(t *rapid.T, label string, least, most int64) v1.ResourceList {
	list := v1.ResourceList{v1.ResourcePods: resource.MustParse("99")}
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, "nvidia.com/gpu"} {
		n := rapid.Int64Range(least, most).Draw(t, label+" "+string(name))
		list[name] = *resource.NewQuantity(n, resource.DecimalSI)
	}
	return list
}
