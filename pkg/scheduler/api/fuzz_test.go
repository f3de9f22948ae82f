// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"regexp"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// FuzzQuantities: whatever the API server accepts as an amount becomes one that can be added up.
func FuzzQuantities(f *testing.F) {
	for _, text := range []string{"1", "100m", "1.5Gi", "9223372036854775807", "1e30", "-5", "0.1n", "8Ei"} {
		f.Add(text, text)
	}
	// The parser may take minutes for them, before anything of ours sees them.
	minutes := regexp.MustCompile(`[eE][+-]?0*[1-9][0-9]{2}`)
	f.Fuzz(func(t *testing.T, cpu, memory string) {
		if minutes.MatchString(cpu + " " + memory) {
			t.Skip()
		}
		list := v1.ResourceList{}
		for name, text := range map[v1.ResourceName]string{v1.ResourceCPU: cpu, v1.ResourceMemory: memory, "example.com/device": memory} {
			if quantity, err := resource.ParseQuantity(text); err == nil {
				list[name] = quantity
			}
		}
		dims := NewDimensions()
		vector := dims.Vector(list)
		for d, amount := range vector {
			quantity := list[dims.Name(d)]
			if amount < 0 || amount > MaxQuantity || (amount == 0) != (quantity.Sign() <= 0) {
				t.Errorf("%s of %s becomes %d", quantity.String(), dims.Name(d), amount)
			}
			if back := dims.Vector(v1.ResourceList{dims.Name(d): Quantity(d, amount)}).At(d); back != amount {
				t.Errorf("%d of %s comes back as %d", amount, dims.Name(d), back)
			}
		}
		sum, rest := vector.Clone(), vector.Clone()
		for range 80 { // far beyond what an int64 can hold
			sum.Add(sum.Clone())
			rest.Sub(sum)
		}
		for d, amount := range vector {
			if sum.At(d) < amount || rest.At(d) > amount {
				t.Errorf("%d of %s added up is %d, and taken away leaves %d", amount, dims.Name(d), sum.At(d), rest.At(d))
			}
		}
	})
}

// FuzzMembership: with any metadata, a pod is in one job and one queue, and after the scheduler has bound it,
// nothing that its owner can write changes either.
func FuzzMembership(f *testing.F) {
	f.Add("train", "", "", "", "")
	f.Add("", "train", "team", "4", "")
	f.Add("", "", "team", "-1", "c1")
	f.Add("a/b", "", "", "99999999999", "")
	f.Fuzz(func(t *testing.T, label, annotation, queue, minMember, controller string) {
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "p", UID: "uid-p",
			Labels:      map[string]string{v1alpha1.LabelPodGroup: label, v1alpha1.LabelQueue: queue},
			Annotations: map[string]string{v1alpha1.AnnotationGroupName: annotation, v1alpha1.AnnotationGroupMinMember: minMember},
		}}
		if controller != "" {
			owns := true
			pod.OwnerReferences = []metav1.OwnerReference{{UID: types.UID(controller), Controller: &owns}}
		}
		rule := MembershipRule{DefaultQueue: "default", Groups: oneGroup{group: OwnGroup(&v1alpha1.PodGroup{})}}
		m := MembershipOf(pod, nil, rule)
		switch {
		case m.Job == "":
			t.Error("it is in no job")
		case label != "" && m.Group != "ns/"+label, label == "" && annotation != "" && m.Group != "ns/"+annotation:
			t.Errorf("it is in group %q", m.Group)
		case m.Group == "" && (m.Queue == "" || m.MinMember < 1):
			t.Errorf("without a group it is in queue %q, with %d others", m.Queue, m.MinMember)
		case m != MembershipOf(pod.DeepCopy(), nil, rule):
			t.Error("asked again it is somewhere else")
		}
		bound := &Commitment{Queue: "q", GroupUID: "uid-g"}
		before := MembershipOf(pod, bound, rule)
		pod.Labels, pod.Annotations = nil, nil
		if after := MembershipOf(pod, bound, rule); after != before || before.Queue != "q" {
			t.Errorf("it has moved from %+v to %+v", before, after)
		}
	})
}
