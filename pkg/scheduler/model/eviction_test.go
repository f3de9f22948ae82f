// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/audit"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

// victimPod runs on node n.
func victimPod(name string, changes ...podChange) *v1.Pod {
	return aPod(name, append([]podChange{withLabel("app", "x"), on("n"), inPhase(v1.PodRunning)}, changes...)...)
}

// What the model makes of a pod that it has decided to evict.
func TestEvictionInFlight(t *testing.T) {
	for name, tc := range map[string]struct {
		given func(*model.Cluster, api.TaskID)
		want  string // status, and whether the eviction is still open
	}{
		"decided":                     {func(*model.Cluster, api.TaskID) {}, "Releasing, leaving"},
		"an older version of the pod": {func(c *model.Cluster, _ api.TaskID) { c.Events().SetPod(victimPod("p", withLabel("app", "y"))) }, "Releasing, leaving"},
		"the watch shows it":          {func(c *model.Cluster, _ api.TaskID) { c.Events().SetPod(victimPod("p", deleting)) }, "Releasing"},
		"refused":                     {func(c *model.Cluster, id api.TaskID) { c.Ledger().EvictionFailed(id) }, "Running"},
		"refused after the watch has it": {func(c *model.Cluster, id api.TaskID) {
			c.Events().SetPod(victimPod("p", deleting))
			c.Ledger().EvictionFailed(id)
		}, "Releasing"},
		"it has ended meanwhile": {func(c *model.Cluster, _ api.TaskID) {
			c.Events().SetPod(victimPod("p", inPhase(v1.PodSucceeded)))
		}, "Succeeded"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newTestCluster()
			c.Events().SetNode(aNode("n", "cpu", "4"))
			c.Events().SetPod(victimPod("p"))
			task := c.Tasks()[api.TaskID(victimPod("p").UID)]
			c.Ledger().MarkEvicting(task)
			tc.given(c, task.ID)
			c.Events().Recompute()
			got := task.Status.String()
			if task.Evicting() {
				got += ", leaving"
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if err := audit.Model(c); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestEvictable(t *testing.T) {
	for name, tc := range map[string]struct {
		given podChange
		want  bool
	}{
		"a member that runs":               {given: withLabel("app", "x"), want: true},
		"one that waits":                   {given: on("")},
		"one that is being deleted":        {given: deleting},
		"one that has ended":               {given: inPhase(v1.PodFailed)},
		"one on a node that is gone":       {given: on("gone")},
		"a pod of another scheduler":       {given: foreign},
		"a pod of a ReplicaSet":            {given: ownedByKind("ReplicaSet"), want: true},
		"a pod of a DaemonSet":             {given: ownedByKind("DaemonSet")},
		"what the kubelet shows of itself": {given: annotated(v1.MirrorPodAnnotationKey, "x")},
	} {
		t.Run(name, func(t *testing.T) {
			c := newTestCluster()
			c.Events().SetNode(aNode("n", "cpu", "4"))
			c.Events().SetPod(victimPod("p", tc.given))
			if got := c.Tasks()["uid-p"].Evictable(); got != tc.want {
				t.Errorf("evictable: %t, want %t", got, tc.want)
			}
		})
	}
}

func ownedByKind(kind string) podChange {
	return func(p *v1.Pod) {
		ownedBy("owner")(p)
		p.OwnerReferences[0].Kind = kind
	}
}

func TestBudgetsAllow(t *testing.T) {
	for name, tc := range map[string]struct {
		given []*policyv1.PodDisruptionBudget
		gone  func(*model.Cluster, *api.TaskInfo) // before p and q are asked about
		want  bool
	}{
		"none":              {want: true},
		"of other pods":     {given: []*policyv1.PodDisruptionBudget{aBudget("a", 0, "z")}, want: true},
		"as many as needed": {given: []*policyv1.PodDisruptionBudget{aBudget("a", 2, "x")}, want: true},
		"one less":          {given: []*policyv1.PodDisruptionBudget{aBudget("a", 1, "x")}},
		"two budgets":       {given: []*policyv1.PodDisruptionBudget{aBudget("a", 9, "x"), aBudget("b", 9, "x")}},
		"one of them is gone": {
			given: []*policyv1.PodDisruptionBudget{aBudget("a", 9, "x"), aBudget("b", 9, "x")},
			gone:  func(c *model.Cluster, _ *api.TaskInfo) { c.Events().DeleteBudget("ns", "b") },
			want:  true,
		},
		"an eviction that is not shown yet counts": {
			given: []*policyv1.PodDisruptionBudget{aBudget("a", 2, "x")},
			gone:  func(c *model.Cluster, r *api.TaskInfo) { c.Ledger().MarkEvicting(r) },
		},
		"one that is shown is in the budget's status": {
			given: []*policyv1.PodDisruptionBudget{aBudget("a", 2, "x")},
			gone: func(c *model.Cluster, r *api.TaskInfo) {
				c.Ledger().MarkEvicting(r)
				c.Events().SetPod(victimPod("r", deleting))
			},
			want: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newTestCluster()
			c.Events().SetNode(aNode("n", "cpu", "4"))
			task := func(name string) *api.TaskInfo {
				p := victimPod(name)
				c.Events().SetPod(p)
				return c.Tasks()[api.TaskID(p.UID)]
			}
			p, q, r := task("p"), task("q"), task("r")
			for _, b := range tc.given {
				c.Events().SetBudget(b)
			}
			if tc.gone != nil {
				tc.gone(c, r)
			}
			if got := c.BudgetsAllow(api.NewUnit(p.Job, []*api.TaskInfo{p, q})); got != tc.want {
				t.Errorf("allowed: %t, want %t", got, tc.want)
			}
		})
	}
}

// Who was refused stays alone until a budget that protects it changes.
func TestProtection(t *testing.T) {
	for name, tc := range map[string]struct {
		happens func(*model.Cluster)
		want    bool // may be evicted again
	}{
		"nothing happens":                       {func(*model.Cluster) {}, false},
		"its budget allows more":                {func(c *model.Cluster) { c.Events().SetBudget(aBudget("mine", 1, "v")) }, true},
		"its budget is gone":                    {func(c *model.Cluster) { c.Events().DeleteBudget("ns", "mine") }, true},
		"another's budget changes":              {func(c *model.Cluster) { c.Events().SetBudget(aBudget("other", 1, "w")) }, false},
		"a budget does not protect it any more": {func(c *model.Cluster) { c.Events().SetBudget(aBudget("mine", 0, "w")) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newTestCluster()
			c.Events().SetNode(aNode("n", "cpu", "4"))
			pod := victimPod("v")
			pod.Labels = map[string]string{"app": "v"}
			c.Events().SetPod(pod)
			c.Events().SetBudget(aBudget("mine", 0, "v"))
			c.Ledger().SetEvictionBlocked(api.TaskID(pod.UID), true)
			tc.happens(c)
			if got := c.Tasks()[api.TaskID(pod.UID)].Evictable(); got != tc.want {
				t.Errorf("evictable: %t, want %t", got, tc.want)
			}
		})
	}
}

// TestBudgetOf: the evictor sends the evictions under one budget one after the other.
func TestBudgetOf(t *testing.T) {
	for name, tc := range map[string]struct {
		given []*policyv1.PodDisruptionBudget
		want  string
	}{
		"none":                             {},
		"of other pods":                    {given: []*policyv1.PodDisruptionBudget{aBudget("a", 1, "z")}},
		"one":                              {given: []*policyv1.PodDisruptionBudget{aBudget("a", 0, "z"), aBudget("b", 0, "x")}, want: "b"},
		"several: it is the first by name": {given: []*policyv1.PodDisruptionBudget{aBudget("b", 1, "x"), aBudget("a", 1, "x"), aBudget("c", 1, "x")}, want: "a"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newTestCluster()
			c.Events().SetNode(aNode("n", "cpu", "4"))
			p := victimPod("p")
			c.Events().SetPod(p)
			for _, b := range tc.given {
				c.Events().SetBudget(b)
			}
			if got := model.BudgetOf(c, c.Tasks()[api.TaskID(p.UID)]); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func aBudget(name string, allowed int32, app string) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
		Status:     policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed},
	}
}
