// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

func leaf(name string, minMember int32) v1alpha1.SubGroup {
	return v1alpha1.SubGroup{Name: name, MinMember: &minMember}
}

func segments(name string, size, minSubGroup int32) v1alpha1.SubGroup {
	return v1alpha1.SubGroup{Name: name, SegmentSize: size, SegmentBy: "replica", MinSubGroup: &minSubGroup}
}

func role(name string, count int, request string) Part {
	return Pending(count, request, Label("role", name))
}

// replicas are members of a subgroup with segments: so many of each replica.
func replicas(name string, from, to, size int, request string) []Part {
	var parts []Part
	for i := from; i < to; i++ {
		parts = append(parts, Pending(size, request, Label("role", name), Label("replica", fmt.Sprint(i))))
	}
	return parts
}

// ray is a cluster of one head and workers of two kinds, HF17.
var ray = []Part{
	SubGroups(leaf("head", 1), leaf("cpu", 4), leaf("gpu", 4)),
	role("head", 1, "1cpu"), role("cpu", 10, "1cpu"), role("gpu", 4, "1cpu 1gpu"),
}

// TestSubGroups asserts what starts of gangs with subgroups in one cycle: HF17 to HF19 of the design.
func TestSubGroups(t *testing.T) {
	Cases{
		"a gang waits for all its subgroups, whatever resources others have": {
			Given: Given(Node("n", "9cpu"), Queue("q", 1), Group("q/ray", 9, ray...)),
		},
		"all minima start, then surplus": {
			Given: Given(Node("n", "9cpu"), Node("g", "4cpu 4gpu"), Queue("q", 1), Group("q/ray", 9, ray...)),
			Want:  "ray 13",
		},
		"no surplus starts before all minima": {
			Given: Given(Node("n", "10cpu"), Queue("q", 1),
				Group("q/a", 10, SubGroups(leaf("x", 5), leaf("y", 5)), role("x", 10, "1cpu"), role("y", 10, "1cpu"))),
			Want: "a 10",
		},
		"without subgroups ten of one kind start": {
			Given: Given(Node("n", "10cpu"), Queue("q", 1), Group("q/a", 10, role("x", 10, "1cpu"), role("y", 10, "1cpu"))),
			Want:  "a 10",
		},
		"segments start as a whole": {
			Given: Given(Node("n", "5cpu"), Queue("q", 1),
				Group("q/a", 1, append(replicas("w", 0, 4, 2, "1cpu"), SubGroups(segments("w", 2, 2)))...)),
			Want: "a 4",
		},
		"fewer segments than needed do not start": {
			Given: Given(Node("n", "3cpu"), Queue("q", 1),
				Group("q/a", 1, append(replicas("w", 0, 4, 2, "1cpu"), SubGroups(segments("w", 2, 2)))...)),
		},
		"a segment that lacks a pod does not count": {
			Given: Given(Node("n", "5cpu"), Queue("q", 1),
				Group("q/a", 1, append(append(replicas("w", 0, 1, 1, "1cpu"), replicas("w", 1, 3, 2, "1cpu")...), SubGroups(segments("w", 2, 2)))...)),
			Want: "a 4",
		},
		"a further segment of which one pod does not fit does not start": {
			Given: Given(Node("n", "7cpu"), Queue("q", 1),
				Group("q/a", 1, SubGroups(segments("w", 2, 1)),
					Pending(1, "1cpu", Label("role", "w"), Label("replica", "0")), Pending(1, "4cpu", Label("role", "w"), Label("replica", "0")),
					Pending(1, "1cpu", Label("role", "w"), Label("replica", "1")), Pending(1, "4cpu", Label("role", "w"), Label("replica", "1")))),
			Want: "a 2",
		},
		"a further segment of pods without requests that does not fit does not start": {
			Given: Given(Node("n", "7cpu 3pods"), Queue("q", 1),
				Group("q/a", 1, append(replicas("w", 0, 2, 2, ""), SubGroups(segments("w", 2, 1)))...)),
			Want: "a 2",
		},
		"of optional subgroups those start that fit": {
			Given: Given(Node("n", "4cpu"), Node("g", "2cpu 2gpu"), Queue("q", 1),
				Group("q/a", 1, SubGroups(v1alpha1.SubGroup{Name: "any", MinSubGroup: ptr.To[int32](1)},
					v1alpha1.SubGroup{Name: "large", Parent: "any", MinMember: ptr.To[int32](2)},
					v1alpha1.SubGroup{Name: "small", Parent: "any", MinMember: ptr.To[int32](3)}),
					role("large", 2, "2cpu 2gpu"), role("small", 3, "1cpu"))),
			Want: "a 3",
		},
		"a subgroup with minMember 0 is not waited for": {
			Given: Given(Node("n", "2cpu"), Queue("q", 1), Group("q/a", 1, SubGroups(leaf("x", 2), leaf("y", 0)), role("x", 2, "1cpu"), role("y", 3, "1cpu"))),
			Want:  "a 2",
		},
		"the label of the pod takes precedence over selectors": {
			Given: Given(Node("n", "3cpu"), Queue("q", 1), Group("q/a", 1, SubGroups(leaf("x", 1), leaf("y", 2)),
				role("x", 1, "1cpu"), Pending(2, "1cpu", Label("role", "x"), Label(v1alpha1.LabelSubGroup, "y")))),
			Want: "a 3",
		},
	}.TestBinds(t)
}

// TestSubGroupPods asserts which pods start.
func TestSubGroupPods(t *testing.T) {
	Cases{
		"the minima of both subgroups": {
			Given: Given(Node("n", "4cpu"), Queue("q", 1),
				Group("q/a", 4, SubGroups(leaf("x", 2), leaf("y", 2)), role("x", 4, "1cpu"), role("y", 4, "1cpu"))),
			Want: `bind q/a-0 n
			       bind q/a-1 n
			       bind q/a-4 n
			       bind q/a-5 n`,
		},
		"surplus with a higher priority comes first": {
			Given: Given(Node("n", "3cpu"), Queue("q", 1),
				Group("q/a", 2, SubGroups(leaf("x", 1), leaf("y", 1)), Pending(4, "1cpu", Label("role", "x")),
					Pending(2, "1cpu", Label("role", "y"), Priority(1)))),
			Want: `bind q/a-0 n
			       bind q/a-4 n
			       bind q/a-5 n`,
		},
		"surplus goes to the subgroup with the smallest ratio": {
			Given: Given(Node("n", "6cpu"), Queue("q", 1),
				Group("q/a", 4, SubGroups(leaf("x", 3), leaf("y", 1)), role("x", 4, "1cpu"), role("y", 4, "1cpu"))),
			Want: `bind q/a-0 n
			       bind q/a-1 n
			       bind q/a-2 n
			       bind q/a-4 n
			       bind q/a-5 n
			       bind q/a-6 n`,
		},
	}.TestTranscripts(t)
}

// TestWhySubGroupsWait asserts that messages name the subgroup.
func TestWhySubGroupsWait(t *testing.T) {
	for name, tc := range map[string]struct {
		given []Row
		want  string
	}{
		"pods of a leaf": {
			given: []Row{Node("n", "9cpu"), Queue("q", 1), Group("q/a", 9, SubGroups(leaf("head", 1), leaf("gpu", 4)), role("head", 9, "1cpu"), role("gpu", 3, "1cpu"))},
			want:  "subgroup gpu has 3 of 4 pods",
		},
		"segments": {
			given: []Row{Node("n", "9cpu"), Queue("q", 1), Group("q/a", 1, append(replicas("w", 0, 1, 2, "1cpu"), SubGroups(segments("w", 2, 2)))...)},
			want:  "2 of 4 pods that must start together exist; subgroup w has 1 of 2 complete segments of 2 pods",
		},
		"resources": {
			given: []Row{Node("n", "9cpu"), Queue("q", 1), Group("q/ray", 9, ray...)},
			want:  "subgroup gpu: needs 4 more pods of 1 nvidia.com/gpu + 1 cpu and 5 pods of 1 cpu",
		},
		"a cycle": {
			given: []Row{Node("n", "9cpu"), Queue("q", 1), Group("q/a", 1,
				SubGroups(v1alpha1.SubGroup{Name: "x", Parent: "y"}, v1alpha1.SubGroup{Name: "y", Parent: "x"}), role("x", 1, "1cpu"))},
			want: `spec.subGroups: subgroup "x": its parents form a cycle, or more than 4 levels`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := New(t, BuiltIn(t), tc.given)
			c.Cycle()
			if got := c.Waits(); !strings.Contains(got, tc.want) {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

// TestEvictSubGroups asserts which members of a gang with subgroups are evicted for one pod of high priority: HF20.
func TestEvictSubGroups(t *testing.T) {
	run := func(name string, count int) Part { return Running(count, "1cpu", "n", Label("role", name)) }
	runReplica := func(i int) Part {
		return Running(2, "1cpu", "n", Label("role", "w"), Label("replica", fmt.Sprint(i)))
	}
	preemptor := Group("q/high", 1, Pending(1, "1cpu", Priority(5)))
	Cases{
		"surplus of a subgroup": {
			Given: Given(Node("n", "5cpu"), Queue("q", 1), Group("q/a", 4, SubGroups(leaf("x", 2), leaf("y", 2)), run("x", 2), run("y", 3)), preemptor),
			Want: `evict q/a-4 for q/high
			       pipeline q/high-0 n`,
		},
		"a minimum only with the whole gang": {
			Given: Given(Node("n", "4cpu"), Queue("q", 1), Group("q/a", 1, SubGroups(leaf("x", 2), leaf("y", 2)), run("x", 2), run("y", 2)), preemptor),
			Want: `evict q/a-0 for q/high
			       evict q/a-1 for q/high
			       evict q/a-2 for q/high
			       evict q/a-3 for q/high
			       pipeline q/high-0 n`,
		},
		"an optional subgroup with its surplus": {
			Given: Given(Node("n", "3cpu"), Node("m", "1cpu"), Queue("q", 1),
				Group("q/a", 1, SubGroups(v1alpha1.SubGroup{Name: "any", MinSubGroup: ptr.To[int32](1)},
					v1alpha1.SubGroup{Name: "x", Parent: "any", MinMember: ptr.To[int32](2)}, v1alpha1.SubGroup{Name: "y", Parent: "any", MinMember: ptr.To[int32](2)}),
					run("x", 3), Running(2, "0.5cpu", "m", Label("role", "y"))),
				Group("q/high", 1, Pending(1, "2cpu", Priority(5)))),
			Want: `evict q/a-0 for q/high
			       evict q/a-1 for q/high
			       evict q/a-2 for q/high
			       pipeline q/high-0 n`,
		},
		"a segment as a whole": {
			Given: Given(Node("n", "6cpu"), Queue("q", 1), Group("q/a", 1, SubGroups(segments("w", 2, 2)), runReplica(0), runReplica(1), runReplica(2)), preemptor),
			Want: `evict q/a-4 for q/high
			       evict q/a-5 for q/high
			       pipeline q/high-0 n`,
		},
	}.TestTranscripts(t, WithConfig(AllActions))
}

// TestPreemptionWithinASubGroup asserts that a surplus pod does not evict the whole of its own subgroup, without which it
// could not start, although the gang needs only the other one.
func TestPreemptionWithinASubGroup(t *testing.T) {
	any := v1alpha1.SubGroup{Name: "any", MinSubGroup: ptr.To[int32](1)}
	x, y := v1alpha1.SubGroup{Name: "x", Parent: "any", MinMember: ptr.To[int32](2)}, v1alpha1.SubGroup{Name: "y", Parent: "any", MinMember: ptr.To[int32](1)}
	for waiting, want := range map[string]string{
		"2Gi": "",
		"1Gi": "evict q/a-2 for q/a\npipeline q/a-4 n",
	} {
		c := New(t, BuiltIn(t), Given(Node("n", "4Gi"), Queue("q", 1), Group("q/a", 1, SubGroups(any, x, y),
			Running(3, "1Gi", "n", Label("role", "x")), Running(1, "1Gi", "n", Label("role", "y"), Priority(5)),
			Pending(1, waiting, Label("role", "x"), Priority(5)))), WithConfig(AllActions))
		if got := c.Cycle(); got != want {
			t.Errorf("a pod of %s: got\n%s\nwant\n%s", waiting, got, want)
		}
	}
}

// TestBlockedSegments asserts that a segment of which a pod must not be evicted is no surplus: another one is evicted.
func TestBlockedSegments(t *testing.T) {
	running := func(i int) Part {
		return Running(2, "1cpu", "n", Label("role", "w"), Label("replica", fmt.Sprint(i)))
	}
	c := New(t, BuiltIn(t), Given(Node("n", "6cpu"), Queue("q", 1), Group("q/a", 1, SubGroups(segments("w", 2, 2)), running(0), running(1), running(2))),
		WithConfig(AllActions))
	c.Cycle()
	c.BlockEviction("q/a-4")
	c.Add(Group("q/high", 1, Pending(1, "1cpu", Priority(5))))
	if got, want := c.Cycle(), "evict q/a-2 for q/high\nevict q/a-3 for q/high\npipeline q/high-0 n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestPlannedSurplus asserts that surplus for which pods were evicted keeps its place, although a pod of another subgroup,
// which has a smaller part of its pods, is created before they have ended.
func TestPlannedSurplus(t *testing.T) {
	c := New(t, BuiltIn(t), Given(
		Node("n", "5cpu"), Queue("q", 1), PriorityClass("high", 1),
		Group("q/a", 1, Class("high"), SubGroups(leaf("x", 1), leaf("y", 1)),
			Running(2, "1cpu", "n", Label("role", "x")), Running(1, "1cpu", "n", Label("role", "y")), role("x", 1, "1cpu")),
		Group("q/low", 1, Running(2, "1cpu", "n")),
	), WithConfig(AllActions))
	if got, want := c.Cycle(), "evict q/low-1 for q/a\npipeline q/a-3 n"; got != want {
		t.Fatalf("got\n%s\nwant\n%s", got, want)
	}
	c.Add(More("q/a", role("y", 1, "1cpu")))
	if got, want := c.Cycle(), "pipeline q/a-3 n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
