// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
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
