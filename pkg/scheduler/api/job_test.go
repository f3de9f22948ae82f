package api

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

func TestJobCountsAndPhase(t *testing.T) {
	member := func(name string, changes ...podChange) *v1.Pod {
		return aPod(name, append(changes, inGroup("g"))...)
	}
	cases := map[string]struct {
		pods []*v1.Pod
		want string
	}{
		"no pods":                    {nil, "Pending: 0 valid, 0 ready, 0 active"},
		"one of two waits":           {[]*v1.Pod{member("a")}, "Pending: 1 valid, 0 ready, 1 active"},
		"gated pods are not valid":   {[]*v1.Pod{member("a"), member("b", gated)}, "Pending: 1 valid, 0 ready, 2 active"},
		"one of two runs":            {[]*v1.Pod{member("a", on("n")), member("b")}, "Unknown: 2 valid, 1 ready, 2 active"},
		"two run":                    {[]*v1.Pod{member("a", on("n")), member("b", on("n"))}, "Running: 2 valid, 2 ready, 2 active"},
		"one ended, one runs":        {[]*v1.Pod{member("a", on("n"), inPhase(v1.PodSucceeded)), member("b", on("n"))}, "Running: 2 valid, 2 ready, 1 active"},
		"one failed, one runs":       {[]*v1.Pod{member("a", on("n"), inPhase(v1.PodFailed)), member("b", on("n"))}, "Unknown: 1 valid, 1 ready, 1 active"},
		"both ended":                 {[]*v1.Pod{member("a", inPhase(v1.PodSucceeded)), member("b", inPhase(v1.PodFailed))}, "Finished: 1 valid, 1 ready, 0 active"},
		"one ended, no other":        {[]*v1.Pod{member("a", inPhase(v1.PodSucceeded))}, "Pending: 1 valid, 1 ready, 0 active"},
		"one on a node that is gone": {[]*v1.Pod{member("a", on("n")), member("b", on("gone"))}, "Unknown: 1 valid, 1 ready, 2 active"},
		"one is being deleted":       {[]*v1.Pod{member("a", on("n")), member("b", on("n"), deleting)}, "Unknown: 1 valid, 1 ready, 2 active"},
		"foreign pods do not count":  {[]*v1.Pod{member("a", on("n")), member("b", on("n"), foreign)}, "Unknown: 1 valid, 1 ready, 1 active"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newTestCluster()
			c.SetNode(aNode("n", "cpu", "4"))
			c.SetPodGroup(aGroup("g", "", 2))
			for _, pod := range tc.pods {
				c.SetPod(pod)
			}
			j := c.Jobs["group/ns/g"]
			got := fmt.Sprintf("%s: %d valid, %d ready, %d active", j.Phase(), j.ValidCount(), j.ReadyCount(), j.Active())
			if got != tc.want {
				t.Errorf("\n got %s\nwant %s", got, tc.want)
			}
		})
	}
}

// A gang whose binds are under way is not a crippled one.
func TestPhaseWhileAGangIsBound(t *testing.T) {
	c := newTestCluster()
	c.SetQueue(aQueue("default"))
	c.SetNode(aNode("n", "cpu", "4"))
	c.SetPodGroup(aGroup("g", "", 2))
	for _, name := range []string{"a", "b"} {
		c.SetPod(aPod(name, inGroup("g")))
	}
	c.Recompute()
	j := c.Jobs["group/ns/g"]
	for _, id := range []TaskID{"uid-a", "uid-b"} {
		c.Place(c.Tasks[id], Allocated, c.Node("n"))
		c.AssumePod(c.Tasks[id])
	}
	got := []v1alpha1.PodGroupPhase{j.Phase()}
	for _, name := range []string{"a", "b"} {
		c.SetPod(aPod(name, inGroup("g"), on("n")))
		got = append(got, j.Phase())
	}
	want := []v1alpha1.PodGroupPhase{v1alpha1.PodGroupPending, v1alpha1.PodGroupPending, v1alpha1.PodGroupRunning}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("phases (-want +got):\n%s", diff)
	}
}

func TestJobPriority(t *testing.T) {
	high := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 100}
	classed := aGroup("g", "", 1)
	classed.Spec.PriorityClassName = "high"
	cases := map[string]struct {
		given func(*Cluster)
		want  int32
	}{
		"no members": {func(c *Cluster) { c.SetPodGroup(aGroup("g", "", 1)) }, 0},
		"the highest of its pods": {func(c *Cluster) {
			c.SetPod(aPod("a", inGroup("g"), prioritized(3)))
			c.SetPod(aPod("b", inGroup("g"), prioritized(7)))
		}, 7},
		"all below zero": {func(c *Cluster) { c.SetPod(aPod("a", inGroup("g"), prioritized(-3))) }, -3},
		"pods that have ended do not count": {func(c *Cluster) {
			c.SetPod(aPod("a", inGroup("g"), prioritized(3)))
			c.SetPod(aPod("b", inGroup("g"), prioritized(7), inPhase(v1.PodSucceeded)))
		}, 3},
		"the class of the group": {func(c *Cluster) {
			c.SetPriorityClass(high)
			c.SetPodGroup(classed)
			c.SetPod(aPod("a", inGroup("g"), prioritized(999)))
		}, 100},
		"the class comes last": {func(c *Cluster) {
			c.SetPodGroup(classed)
			c.SetPod(aPod("a", inGroup("g"), prioritized(999)))
			c.SetPriorityClass(high)
		}, 100},
		"a class that does not exist": {func(c *Cluster) {
			c.SetPodGroup(classed)
			c.SetPod(aPod("a", inGroup("g"), prioritized(999)))
		}, 999},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newTestCluster()
			c.SetPodGroup(aGroup("g", "", 1))
			tc.given(c)
			c.Recompute()
			if got := c.Jobs["group/ns/g"].Priority; got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

func TestCapAllows(t *testing.T) {
	cases := map[string]struct {
		capability, held, releasing, asks Resource
		when                              When
		want                              int
	}{
		"no cap":                              {nil, Resource{9}, nil, Resource{9}, Now, -1},
		"up to the cap":                       {Resource{4}, Resource{3}, nil, Resource{1}, Now, -1},
		"above the cap":                       {Resource{4}, Resource{3}, nil, Resource{2}, Now, CPU},
		"unlimited":                           {Resource{Unlimited, 4}, Resource{9, 3}, nil, Resource{9, 1}, Now, -1},
		"over the cap, but not asked for":     {Resource{4, 4}, Resource{9, 0}, nil, Resource{0, 1}, Now, -1},
		"what is being released counts":       {Resource{4}, Resource{3}, Resource{1}, Resource{1}, Now, CPU},
		"what is being released will be gone": {Resource{4}, Resource{3}, Resource{1}, Resource{1}, Future, -1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			q := &QueueInfo{Capability: tc.capability, Allocated: tc.held, Releasing: tc.releasing}
			if got := q.CapAllows(tc.asks, tc.when); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

func TestJobsWithoutMembersAreForgotten(t *testing.T) {
	c := newTestCluster()
	c.SetQueue(aQueue("default"))
	c.SetPod(aPod("plain", ownedBy("rs")))
	c.SetPod(aPod("lost", inGroup("none")))
	c.SetPod(aPod("former", boundBy("default", "uid-old", "n")))
	c.Recompute()
	if len(c.Jobs) != 3 {
		t.Fatalf("%d jobs, want 3", len(c.Jobs))
	}
	for _, uid := range sortedKeys(c.Tasks) {
		c.DeletePod(c.Tasks[uid].Pod.UID)
	}
	c.Recompute()
	if n := len(c.Jobs) + len(c.Queues["default"].Jobs) + len(c.orphaned) + len(c.nodes) + len(c.signatures); n != 0 {
		t.Errorf("something is left:\n%s", c.Dump())
	}
}
