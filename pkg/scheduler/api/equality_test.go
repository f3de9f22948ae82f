// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestSamePod(t *testing.T) {
	cpu := func(amount string) v1.ResourceList {
		return v1.ResourceList{v1.ResourceCPU: resource.MustParse(amount)}
	}
	controller := true
	tests := map[string]struct {
		change func(*v1.Pod)
		want   bool
	}{
		"nothing":                           {func(*v1.Pod) {}, true},
		"a condition":                       {func(p *v1.Pod) { p.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady}} }, true},
		"an address":                        {func(p *v1.Pod) { p.Status.PodIP = "10.0.0.1" }, true},
		"the state of a container":          {func(p *v1.Pod) { p.Status.ContainerStatuses[0].Ready = true }, true},
		"a node":                            {func(p *v1.Pod) { p.Spec.NodeName = "n1" }, false},
		"a phase":                           {func(p *v1.Pod) { p.Status.Phase = v1.PodRunning }, false},
		"a nominated node":                  {func(p *v1.Pod) { p.Status.NominatedNodeName = "n1" }, false},
		"a deletion":                        {func(p *v1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }, false},
		"a label":                           {func(p *v1.Pod) { p.Labels = map[string]string{"a": "b"} }, false},
		"an annotation":                     {func(p *v1.Pod) { p.Annotations = map[string]string{"a": "b"} }, false},
		"a controller":                      {func(p *v1.Pod) { p.OwnerReferences = []metav1.OwnerReference{{UID: "u", Controller: &controller}} }, false},
		"an owner that is no controller":    {func(p *v1.Pod) { p.OwnerReferences = []metav1.OwnerReference{{UID: "u"}} }, true},
		"a gate":                            {func(p *v1.Pod) { p.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "g"}} }, false},
		"a spec of another generation":      {func(p *v1.Pod) { p.Generation, p.Spec.Priority = 2, new(int32) }, false},
		"a spec, not counted by the server": {func(p *v1.Pod) { p.Generation, p.Spec.Priority = 0, new(int32) }, false},
		"what a container has been given":   {func(p *v1.Pod) { p.Status.ContainerStatuses[0].AllocatedResources = cpu("2") }, false},
		"what a container uses": {func(p *v1.Pod) {
			p.Status.ContainerStatuses[0].Resources = &v1.ResourceRequirements{Requests: cpu("2")}
		}, false},
		"a resize that must wait": {func(p *v1.Pod) {
			p.Status.Conditions = []v1.PodCondition{{Type: v1.PodResizePending, Status: v1.ConditionTrue, Reason: v1.PodReasonDeferred}}
		}, false},
		"a claim that was made for it": {func(p *v1.Pod) { p.Status.ResourceClaimStatuses = []v1.PodResourceClaimStatus{{Name: "gpu"}} }, false},
		"another pod of the name":      {func(p *v1.Pod) { p.UID = "second" }, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			a := &v1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "first", Generation: 1},
				Status:     v1.PodStatus{Phase: v1.PodPending, ContainerStatuses: []v1.ContainerStatus{{Name: "c"}}},
			}
			b := a.DeepCopy()
			test.change(b)
			if got := EqualPods(a, b); got != test.want {
				t.Errorf("SamePod says %v, want %v", got, test.want)
			}
		})
	}
}
