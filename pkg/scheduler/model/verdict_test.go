// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/audit"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

func TestAdmissible(t *testing.T) {
	cases := map[string]struct {
		given func(*model.Cluster)
		want  string // reason, empty if admissible
	}{
		"all is there":      {func(*model.Cluster) {}, ""},
		"no group":          {func(c *model.Cluster) { c.Events().DeletePodGroup("ns/g", "uid-g") }, v1alpha1.ReasonGroupNotFound},
		"no queue":          {func(c *model.Cluster) { c.Events().DeleteQueue("q") }, v1alpha1.ReasonQueueNotFound},
		"no default queue":  {func(c *model.Cluster) { c.Events().DeleteQueue("default") }, ""},
		"namespace unknown": {func(c *model.Cluster) { c.Events().DeleteNamespace("ns") }, ""},
		"namespace terminates": {
			func(c *model.Cluster) {
				c.Events().SetNamespace(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}, Status: v1.NamespaceStatus{Phase: v1.NamespaceTerminating}})
			}, v1alpha1.ReasonNotEnoughPods,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newTestCluster()
			c.Events().SetQueue(aQueue("default"))
			c.Events().SetQueue(aQueue("q"))
			c.Events().SetPodGroup(aGroup("g", "q", 1))
			c.Events().SetPod(aPod("p", inGroup("g")))
			tc.given(c)
			got := ""
			if v := c.Admissible(c.Jobs()["group/ns/g"]); v != nil {
				got = v.Reason
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestGroupNotFoundNamesTheField: a user finds the label or the annotation that the message names on the pods.
func TestGroupNotFoundNamesTheField(t *testing.T) {
	byAnnotation := &api.GroupReference{Field: "annotation scheduling.k8s.io/group-name", Name: "g"}
	cases := map[string]struct {
		given []podChange // of one pod each
		want  *api.GroupReference
	}{
		"label":      {[]podChange{inGroup("g")}, nil},
		"annotation": {[]podChange{annotated(v1alpha1.AnnotationGroupName, "g")}, byAnnotation},
		"both":       {[]podChange{annotated(v1alpha1.AnnotationGroupName, "g"), inGroup("g")}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newTestCluster()
			for i, change := range tc.given {
				c.Events().SetPod(aPod(string(rune('p'+i)), change))
			}
			got := c.Admissible(c.Jobs()["group/ns/g"])
			if diff := cmp.Diff(tc.want, got.Group); diff != "" || got.Reason != v1alpha1.ReasonGroupNotFound || got.Name != "g" {
				t.Errorf("%s of %q (-want +got):\n%s", got.Reason, got.Name, diff)
			}
		})
	}
}

// TestUnsupportedGroups: pods that name a group of another API cannot be placed and are no demand of their queue, until
// they name a PodGroup.
func TestUnsupportedGroups(t *testing.T) {
	const id = "unsupported/ns/label scheduling.x-k8s.io/pod-group/x/default"
	c := newTestCluster()
	c.Events().SetQueue(aQueue("default"))
	other := withLabel("scheduling.x-k8s.io/pod-group", "x")
	c.Events().SetPod(aPod("p1", ownedBy("a"), other))
	c.Events().SetPod(aPod("p2", ownedBy("b"), other))
	c.Events().Recompute()
	job, queue := c.Jobs()[id], c.Queues()["default"]
	if job == nil || len(job.Tasks) != 2 {
		t.Fatalf("jobs %v, want %s with two tasks", sortedKeys(c.Jobs()), id)
	}
	want := &api.GroupReference{API: "scheduler-plugins (scheduling.x-k8s.io)", Field: "label scheduling.x-k8s.io/pod-group", Name: "x"}
	if v := c.Admissible(job); v == nil || v.Reason != v1alpha1.ReasonUnsupportedPodGroupAPI || !cmp.Equal(want, v.Group) {
		t.Errorf("verdict %+v, want one about %+v", v, want)
	}
	if !queue.Requested.IsZero() || !job.Requested.IsZero() {
		t.Errorf("the queue requests %v and the job %v, want nothing", queue.Requested, job.Requested)
	}

	c.Events().SetPodGroup(aGroup("g", "", 2))
	c.Events().SetPod(aPod("p1", other, inGroup("g")))
	c.Events().SetPod(aPod("p2", other, inGroup("g")))
	c.Events().Recompute()
	if verdict := c.Admissible(c.Jobs()["group/ns/g"]); verdict != nil {
		t.Errorf("members of a PodGroup get the verdict %v", verdict)
	}
	if got := queue.Requested.At(api.CPU); got != 2000 {
		t.Errorf("the queue requests %dm cpu, want 2000m", got)
	}
	if c.Jobs()[id] != nil {
		t.Errorf("%s still exists", id)
	}
	if err := audit.Model(c); err != nil {
		t.Error(err)
	}
}

func TestAMissingQueueIsComparedWithThePresentQueues(t *testing.T) {
	c := newTestCluster()
	c.Events().SetQueue(aQueue("default"))
	c.Events().SetPodGroup(aGroup("g", "visoin", 1))
	c.Events().SetPod(aPod("p", inGroup("g")))
	hint := func() string { return c.Admissible(c.Jobs()["group/ns/g"]).Detail }
	for _, step := range []struct {
		do   func()
		want string
	}{
		{func() {}, ""},
		{func() { c.Events().SetQueue(aQueue("vision")) }, `did you mean "vision"?`},
		{func() { c.Events().SetQueue(aQueue("visions")) }, `did you mean "vision"?`},
		{func() { c.Events().DeleteQueue("vision") }, `did you mean "visions"?`},
		{func() { c.Events().DeleteQueue("visions") }, ""},
	} {
		step.do()
		for range 2 { // from the queues, and from memory
			if got := hint(); got != step.want {
				t.Errorf("got %q, want %q", got, step.want)
			}
		}
	}
}
