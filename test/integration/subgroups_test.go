// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// subGroups sets the subgroups of a group. Each consists of the pods of the set with its name.
func subGroups(list ...v1alpha1.SubGroup) part {
	return func(g *gangParts) {
		for _, s := range list {
			s.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{setLabel: s.Name}}
			g.group.Spec.SubGroups = append(g.group.Spec.SubGroups, s)
		}
	}
}

func leafOf(name string, minMember int32) v1alpha1.SubGroup {
	return v1alpha1.SubGroup{Name: name, MinMember: &minMember}
}

// numbered gives the pods of a Job their completion index, as the Job controller does.
func numbered() func(*corev1.Pod) { return numberedFrom(0) }

func numberedFrom(next int) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Labels["batch.kubernetes.io/job-completion-index"] = fmt.Sprint(next)
		next++
	}
}

// TestSubGroups: gangs with subgroups start with the minima of all of them (HF17 to HF20).
func TestSubGroups(t *testing.T) {
	ray := gang("ray", 9, subGroups(leafOf("head", 1), leafOf("cpu", 4), leafOf("gpu", 4)),
		set("head", 1, "1cpu"), set("cpu", 10, "1cpu"), set("gpu", 4, "1cpu 1gpu"))
	two := v1alpha1.SubGroup{Name: "w", SegmentSize: 2, MinSubGroup: ptr.To[int32](2)}
	play(t, map[string]scenario{
		"workers of one kind do not start without those of the other (HF17)": {
			given: rows(nodes("n", 1, "9cpu"), ray),
			step: step{
				want:   "ray: Pending Unschedulable; cpu 6 waiting GangPending, 4 waiting Unschedulable; gpu 4 waiting Unschedulable; head 1 waiting Unschedulable",
				prints: map[string]string{"ray": "subgroup gpu: needs 4 more pods of 1 nvidia.com/gpu + 1 cpu and 5 pods of 1 cpu"},
			},
			then: []step{{
				do:   rows(nodes("g", 1, "4cpu 4gpu")),
				want: "ray: Running Scheduled; cpu 8 running, 2 waiting Unschedulable; gpu 4 running; head 1 running",
			}},
		},
		"two subgroups get their minima before either gets more (HF18)": {
			given: rows(nodes("n", 1, "10cpu"), gang("a", 10, subGroups(leafOf("x", 5), leafOf("y", 5)), set("x", 10, "1cpu"), set("y", 10, "1cpu"))),
			step:  step{want: "a: Running Scheduled; x 5 running, 5 waiting Unschedulable; y 5 running, 5 waiting Unschedulable"},
		},
		"replicas of two hosts start as a whole (HF19)": {
			given: rows(nodes("n", 1, "5cpu"), gang("a", 1, subGroups(two), set("w", 8, "1cpu", numbered()))),
			step:  step{want: "a: Running Scheduled; w 4 running, 4 waiting Unschedulable"},
			then:  []step{{do: rows(nodes("m", 1, "1cpu")), want: "a: Running Scheduled; w 6 running, 2 waiting Unschedulable"}},
		},
		"a subgroup that lacks pods is named": {
			given: rows(nodes("n", 1, "9cpu"), gang("a", 1, subGroups(leafOf("x", 1), leafOf("y", 2)), set("x", 3, "1cpu"), set("y", 1, "1cpu"))),
			step: step{
				want:   "a: Pending NotEnoughPods; x 3 waiting NotEnoughPods; y 1 waiting NotEnoughPods",
				prints: map[string]string{"a": "subgroup y has 1 of 2 pods"},
			},
		},
	})
}

// TestInvalidSubGroups: the API server rejects subgroups that contradict themselves, and the scheduler names what it cannot see.
func TestInvalidSubGroups(t *testing.T) {
	h := newHarness(t, noControllers)
	h.do(nodes("n", 1, "4cpu"))
	h.start()
	for want, list := range map[string][]v1alpha1.SubGroup{
		"minMember is for subgroups of single pods":      {{Name: "a", MinMember: ptr.To[int32](1), SegmentSize: 2}},
		"segmentBy needs a segmentSize":                  {{Name: "a", SegmentBy: "x"}},
		"segmentTopologyConstraint needs a segmentSize":  {{Name: "a", SegmentTopologyConstraint: &v1alpha1.RequiredTopology{RequiredTopologyLevel: "rack"}}},
		"a subgroup cannot be its own parent":            {{Name: "a", Parent: "a"}},
		"the parent of a subgroup must be the name":      {{Name: "a", Parent: "b"}},
		"Duplicate value":                                {{Name: "a"}, {Name: "a"}},
		"should match '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'": {{Name: "A"}},
		"should be greater than or equal to 0":           {{Name: "a", MinMember: ptr.To[int32](-1)}},
	} {
		g := &v1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: "wrong", Namespace: namespace}, Spec: v1alpha1.PodGroupSpec{SubGroups: list}}
		if _, err := h.batch.SchedulingV1alpha1().PodGroups(namespace).Create(h.ctx, g, metav1.CreateOptions{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want %q", err, want)
		}
	}
	h.do(gang("loop", 1, func(g *gangParts) {
		g.group.Spec.SubGroups = []v1alpha1.SubGroup{{Name: "x", Parent: "y"}, {Name: "y", Parent: "x"}}
	}, pods(1, "1cpu")))
	h.eventually(func() error {
		return h.waits(namespace, "loop-0", "InvalidSubGroups", `spec.subGroups: subgroup "x": its parents form a cycle, or more than 4 levels`)
	})
}
