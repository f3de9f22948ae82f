// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/audit"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

func TestJobCountsAndPhase(t *testing.T) {
	member := func(name string, changes ...podChange) *v1.Pod {
		return aPod(name, append(changes, inGroup("g"))...)
	}
	cases := map[string]struct {
		pods []*v1.Pod
		want string
	}{
		"no pods":                  {nil, "Pending: 0 valid, 0 ready, 0 active"},
		"one of two waits":         {[]*v1.Pod{member("a")}, "Pending: 1 valid, 0 ready, 1 active"},
		"gated pods are not valid": {[]*v1.Pod{member("a"), member("b", gated)}, "Pending: 1 valid, 0 ready, 2 active"},
		"one of two runs":          {[]*v1.Pod{member("a", on("n")), member("b")}, "Unknown: 2 valid, 1 ready, 2 active"},
		"two run":                  {[]*v1.Pod{member("a", on("n")), member("b", on("n"))}, "Running: 2 valid, 2 ready, 2 active"},
		"one ended, one runs":      {[]*v1.Pod{member("a", on("n"), inPhase(v1.PodSucceeded)), member("b", on("n"))}, "Running: 2 valid, 2 ready, 1 active"},
		"one failed, one runs":     {[]*v1.Pod{member("a", on("n"), inPhase(v1.PodFailed)), member("b", on("n"))}, "Unknown: 1 valid, 1 ready, 1 active"},
		"both ended":               {[]*v1.Pod{member("a", inPhase(v1.PodSucceeded)), member("b", inPhase(v1.PodFailed))}, "Failed: 1 valid, 1 ready, 0 active"},
		"one ended, no other":      {[]*v1.Pod{member("a", inPhase(v1.PodSucceeded))}, "Finished: 1 valid, 1 ready, 0 active"},
		"both succeeded, another failed before": {[]*v1.Pod{member("a", inPhase(v1.PodSucceeded)), member("b", inPhase(v1.PodSucceeded)), member("c", inPhase(v1.PodFailed))},
			"Finished: 2 valid, 2 ready, 0 active"},
		"one failed, no other":            {[]*v1.Pod{member("a", inPhase(v1.PodFailed))}, "Failed: 0 valid, 0 ready, 0 active"},
		"one failed, another is created":  {[]*v1.Pod{member("a", inPhase(v1.PodFailed)), member("b")}, "Pending: 1 valid, 0 ready, 1 active"},
		"both were evicted":               {[]*v1.Pod{member("a", inPhase(v1.PodFailed), evicted), member("b", inPhase(v1.PodFailed), evicted)}, "Pending: 0 valid, 0 ready, 0 active"},
		"one was evicted, one is deleted": {[]*v1.Pod{member("a", inPhase(v1.PodFailed), evicted), member("b", inPhase(v1.PodFailed), deleting)}, "Pending: 0 valid, 0 ready, 0 active"},
		"one was evicted, one failed":     {[]*v1.Pod{member("a", inPhase(v1.PodFailed), evicted), member("b", inPhase(v1.PodFailed))}, "Failed: 0 valid, 0 ready, 0 active"},
		"one on a node that is gone":      {[]*v1.Pod{member("a", on("n")), member("b", on("gone"))}, "Unknown: 1 valid, 1 ready, 2 active"},
		"one is being deleted":            {[]*v1.Pod{member("a", on("n")), member("b", on("n"), deleting)}, "Unknown: 1 valid, 1 ready, 2 active"},
		"foreign pods do not count":       {[]*v1.Pod{member("a", on("n")), member("b", on("n"), foreign)}, "Unknown: 1 valid, 1 ready, 1 active"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newTestCluster()
			c.Events().SetNode(aNode("n", "cpu", "4"))
			c.Events().SetPodGroup(aGroup("g", "", 2))
			for _, pod := range tc.pods {
				c.Events().SetPod(pod)
			}
			j := c.Jobs()["group/ns/g"]
			got := fmt.Sprintf("%s: %d valid, %d ready, %d active", j.Phase(), j.ValidCount(), j.ReadyCount(), j.Active())
			if got != tc.want {
				t.Errorf("\n got %s\nwant %s", got, tc.want)
			}
		})
	}
}

func evicted(p *v1.Pod) {
	p.Status.Conditions = []v1.PodCondition{{Type: v1.DisruptionTarget, Status: v1.ConditionTrue}}
}

// A PodGroup that has ended remains so when its pods are deleted, and until others are created. Its queue counts it so.
func TestPhaseWithoutPods(t *testing.T) {
	for name, tc := range map[string]struct {
		status, want v1alpha1.PodGroupPhase
		pods         []*v1.Pod
	}{
		"never had pods":          {"", v1alpha1.PodGroupPending, nil},
		"ran":                     {v1alpha1.PodGroupRunning, v1alpha1.PodGroupPending, nil},
		"finished":                {v1alpha1.PodGroupFinished, v1alpha1.PodGroupFinished, nil},
		"failed":                  {v1alpha1.PodGroupFailed, v1alpha1.PodGroupFailed, nil},
		"failed, then a new pod":  {v1alpha1.PodGroupFailed, v1alpha1.PodGroupPending, []*v1.Pod{aPod("a", inGroup("g"))}},
		"finished, one pod stays": {v1alpha1.PodGroupFinished, v1alpha1.PodGroupFinished, []*v1.Pod{aPod("a", inGroup("g"), inPhase(v1.PodSucceeded))}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newTestCluster()
			c.Events().SetQueue(aQueue("default"))
			c.Events().SetPodGroup(aGroup("g", "", 1))
			c.Events().Recompute()
			shown := aGroup("g", "", 1)
			shown.Status.Phase = tc.status
			c.Events().SetPodGroup(shown)
			for _, pod := range tc.pods {
				c.Events().SetPod(pod)
			}
			c.Events().Recompute()
			j := c.Jobs()["group/ns/g"]
			if j.Phase() != tc.want {
				t.Errorf("got phase %q, want %q", j.Phase(), tc.want)
			}
			if ended := len(c.WaitingJobs()) == 0; ended != j.Ended() {
				t.Errorf("the job has ended: %t; it waits: %t", j.Ended(), !ended)
			}
			if err := audit.Model(c); err != nil {
				t.Error(err)
			}
		})
	}
}

// A gang whose binds are under way is not a crippled one.
func TestPhaseWhileAGangIsBound(t *testing.T) {
	c := newTestCluster()
	c.Events().SetQueue(aQueue("default"))
	c.Events().SetNode(aNode("n", "cpu", "4"))
	c.Events().SetPodGroup(aGroup("g", "", 2))
	for _, name := range []string{"a", "b"} {
		c.Events().SetPod(aPod(name, inGroup("g")))
	}
	c.Events().Recompute()
	j := c.Jobs()["group/ns/g"]
	for _, id := range []api.TaskID{"uid-a", "uid-b"} {
		c.Ledger().Place(c.Tasks()[id], api.Allocated, c.Node("n"))
		c.Ledger().AssumePod(c.Tasks()[id], dawn)
	}
	got := []v1alpha1.PodGroupPhase{j.Phase()}
	for _, name := range []string{"a", "b"} {
		c.Events().SetPod(aPod(name, inGroup("g"), on("n")))
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
		given func(*model.Cluster)
		want  int32
	}{
		"no members": {func(c *model.Cluster) { c.Events().SetPodGroup(aGroup("g", "", 1)) }, 0},
		"the highest of its pods": {func(c *model.Cluster) {
			c.Events().SetPod(aPod("a", inGroup("g"), prioritized(3)))
			c.Events().SetPod(aPod("b", inGroup("g"), prioritized(7)))
		}, 7},
		"all below zero": {func(c *model.Cluster) { c.Events().SetPod(aPod("a", inGroup("g"), prioritized(-3))) }, -3},
		"pods that have ended do not count": {func(c *model.Cluster) {
			c.Events().SetPod(aPod("a", inGroup("g"), prioritized(3)))
			c.Events().SetPod(aPod("b", inGroup("g"), prioritized(7), inPhase(v1.PodSucceeded)))
		}, 3},
		"the class of the group": {func(c *model.Cluster) {
			c.Events().SetPriorityClass(high)
			c.Events().SetPodGroup(classed)
			c.Events().SetPod(aPod("a", inGroup("g"), prioritized(999)))
		}, 100},
		"the class comes last": {func(c *model.Cluster) {
			c.Events().SetPodGroup(classed)
			c.Events().SetPod(aPod("a", inGroup("g"), prioritized(999)))
			c.Events().SetPriorityClass(high)
		}, 100},
		"a class that does not exist": {func(c *model.Cluster) {
			c.Events().SetPodGroup(classed)
			c.Events().SetPod(aPod("a", inGroup("g"), prioritized(999)))
		}, 999},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newTestCluster()
			c.Events().SetPodGroup(aGroup("g", "", 1))
			tc.given(c)
			c.Events().Recompute()
			if got := c.Jobs()["group/ns/g"].Priority; got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

func TestCapAllows(t *testing.T) {
	cases := map[string]struct {
		capability, held, releasing, asks api.Resource
		when                              api.When
		want                              int
	}{
		"no cap":                              {nil, api.Resource{9}, nil, api.Resource{9}, api.Now, -1},
		"up to the cap":                       {api.Resource{4}, api.Resource{3}, nil, api.Resource{1}, api.Now, -1},
		"above the cap":                       {api.Resource{4}, api.Resource{3}, nil, api.Resource{2}, api.Now, api.CPU},
		"unlimited":                           {api.Resource{api.Unlimited, 4}, api.Resource{9, 3}, nil, api.Resource{9, 1}, api.Now, -1},
		"over the cap, but not asked for":     {api.Resource{4, 4}, api.Resource{9, 0}, nil, api.Resource{0, 1}, api.Now, -1},
		"what is being released counts":       {api.Resource{4}, api.Resource{3}, api.Resource{1}, api.Resource{1}, api.Now, api.CPU},
		"what is being released will be gone": {api.Resource{4}, api.Resource{3}, api.Resource{1}, api.Resource{1}, api.Future, -1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			q := &api.QueueInfo{Capability: tc.capability, Allocated: tc.held, Releasing: tc.releasing}
			if got := q.CapAllows(tc.asks, tc.when); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

func TestJobsWithoutMembersAreForgotten(t *testing.T) {
	c := newTestCluster()
	c.Events().SetQueue(aQueue("default"))
	c.Events().SetPod(aPod("plain", ownedBy("rs")))
	c.Events().SetPod(aPod("lost", inGroup("none")))
	c.Events().SetPod(aPod("former", boundBy("default", "uid-old", "n")))
	c.Events().Recompute()
	if len(c.Jobs()) != 3 {
		t.Fatalf("%d jobs, want 3", len(c.Jobs()))
	}
	for _, uid := range sortedKeys(c.Tasks()) {
		c.Events().DeletePod(c.Tasks()[uid].Pod.UID)
	}
	c.Events().Recompute()
	i := model.Inspect(c)
	if n := len(c.Jobs()) + len(c.Queues()["default"].Jobs) + len(i.OrphanedJobs) + len(i.Nodes) + len(i.Signatures); n != 0 {
		t.Errorf("something is left:\n%s", audit.Dump(c))
	}
}
