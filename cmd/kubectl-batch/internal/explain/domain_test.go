// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	k8stesting "k8s.io/client-go/testing"

	"github.com/batch-scheduler/batch-scheduler/cmd/kubectl-batch/internal/explain"
	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// nearRack is a PodGroup that waits for a rack.
func nearRack(g *v1alpha1.PodGroup) {
	pending("NotEnoughResources", "needs 4 more pods in one rack; rack b1/r1 has resources for 2 of 4 pods")(g)
	g.Status.Pending = 4
	g.Status.NearestDomain = &v1alpha1.NearestDomain{Level: "rack", Name: "b1/r1", NodeLabels: map[string]string{"block": "b1", "rack": "r1"}}
}

// rackNodes are so many nodes of a rack, named after it, with 8 cpu and 8 GPUs each.
func rackNodes(rack string, count int, edits ...func(*corev1.Node)) []corev1.Node {
	var list []corev1.Node
	for i := range count {
		n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(rack, "-", i), Labels: map[string]string{"block": "b1", "rack": rack}}}
		n.Status.Allocatable = amounts("cpu", "8", "nvidia.com/gpu", "8", "memory", "64Gi")
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		if i == 0 {
			for _, edit := range edits {
				edit(&n)
			}
		}
		list = append(list, n)
	}
	return list
}

// holder is a running pod of a PodGroup, or of a queue if that is empty.
func holder(namespace, name, group, node string, request corev1.ResourceList, edits ...func(*corev1.Pod)) corev1.Pod {
	p := pod(name, running, func(p *corev1.Pod) {
		p.Namespace, p.Spec.NodeName = namespace, node
		p.Annotations = map[string]string{v1alpha1.AnnotationQueue: "research"}
		if group != "" {
			p.Labels = map[string]string{v1alpha1.LabelPodGroup: group}
		}
	}, requesting(request))
	for _, edit := range edits {
		edit(&p)
	}
	return p
}

func requesting(request corev1.ResourceList) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: request}}}
	}
}

// started is a PodGroup of a namespace that has run for an hour.
func started(namespace, name string, edits ...func(*v1alpha1.PodGroup)) *v1alpha1.PodGroup {
	g := group(name, 1, "research", append(edits, startsIn(-time.Hour, 0))...)
	g.Namespace = namespace
	return g
}

// rackCase is a cluster with PodGroup team/train, which waits for rack b1/r1.
type rackCase struct {
	nodes   []corev1.Node
	pods    []corev1.Pod // besides those of train, which have 4 pods with request
	groups  []*v1alpha1.PodGroup
	request corev1.ResourceList
	edit    func(*v1alpha1.PodGroup)
	refuse  string // a resource that may not be listed in all namespaces

	domain, unread string // as Text has them, in one line
}

func (c *rackCase) facts(t *testing.T) *explain.Facts {
	t.Helper()
	train := group("train", 4, "research", nearRack)
	if c.edit != nil {
		c.edit(train)
	}
	core, batch := given(train, append(pods("train", 4, labelled("train"), requesting(c.request)), c.pods...))
	for i := range c.nodes {
		add(t, core.Tracker(), &c.nodes[i])
	}
	for _, g := range c.groups {
		add(t, batch.Tracker(), g)
	}
	core.PrependReactor("list", "*", func(action k8stesting.Action) (bool, runtime.Object, error) {
		list := action.(k8stesting.ListAction)
		if c.refuse == list.GetResource().Resource && list.GetNamespace() == "" {
			return true, nil, apierrors.NewForbidden(list.GetResource().GroupResource(), "", errors.New("no"))
		}
		node, one := list.GetListRestrictions().Fields.RequiresExactMatch("spec.nodeName") // the tracker knows no field selectors
		if !one {
			return false, nil, nil
		}
		var on corev1.PodList
		for _, p := range c.pods {
			if p.Spec.NodeName == node {
				on.Items = append(on.Items, p)
			}
		}
		return true, &on, nil
	})
	f, err := explain.Reader{Core: core, Batch: batch, Namespace: "team", Now: noon, AllEvents: true}.Group(t.Context(), "train")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func add(t *testing.T, tracker k8stesting.ObjectTracker, object runtime.Object) {
	t.Helper()
	if err := tracker.Add(object); err != nil {
		t.Fatal(err)
	}
}

// lineOf returns the paragraph with a label in one line, without the label; empty if there is none.
func lineOf(text, label string) string {
	_, after, _ := strings.Cut("\n"+text, "\n"+label+":")
	var words []string
	for i, line := range strings.Split(after, "\n") {
		if i > 0 && !strings.HasPrefix(line, "   ") {
			break
		}
		words = append(words, strings.Fields(line)...)
	}
	return strings.Join(words, " ")
}

func rackCases() map[string]*rackCase {
	gpus := func(n string) corev1.ResourceList { return amounts("nvidia.com/gpu", n) }
	cordoned := func(n *corev1.Node) { n.Spec.Unschedulable = true }
	notReady := func(n *corev1.Node) { n.Status.Conditions = nil }
	return map[string]*rackCase{
		"those that hold the most come first, and end as they declare": {
			nodes: append(rackNodes("r1", 2), rackNodes("r2", 1)...),
			pods: []corev1.Pod{
				holder("a", "one-0", "one", "r1-0", gpus("1")), holder("a", "one-1", "one", "r1-1", gpus("1")),
				holder("b", "two-0", "two", "r1-0", gpus("4")), holder("a", "elsewhere-0", "elsewhere", "r2-0", gpus("8")),
				holder("c", "three-0", "three", "r1-1", gpus("3")),
			},
			groups:  []*v1alpha1.PodGroup{started("b", "two", limited(7200, 5400)), started("c", "three", limited(3*3600, 0)), started("a", "one")},
			request: gpus("4"),
			domain: "rack b1/r1 (2 nodes, 7 of 16 nvidia.com/gpu free) is held by b/two (4, expected to end in 30m), " +
				"c/three (3, expected to end in 120m), a/one (2)",
		},
		"many PodGroups, and pods without one": {
			nodes: rackNodes("r1", 2, cordoned),
			pods: []corev1.Pod{
				holder("a", "p0", "d", "r1-1", gpus("1")), holder("a", "p1", "a", "r1-1", gpus("1")), holder("a", "p2", "b", "r1-1", gpus("1")),
				holder("a", "p3", "c", "r1-1", gpus("1")), holder("a", "p4", "e", "r1-1", gpus("1")), holder("a", "p5", "idle", "r1-1", nil),
				holder("a", "p6", "", "r1-1", gpus("1")), holder("a", "p7", "", "r1-0", gpus("2"), func(p *corev1.Pod) { p.Annotations = nil }),
			},
			request: gpus("4"),
			domain:  "rack b1/r1 (2 nodes, 2 of 16 nvidia.com/gpu free) is held by a/a (1), a/b (1), a/c (1), 2 more (2), other pods (3); 1 node is cordoned",
		},
		"the resource is that of which the least is free": {
			nodes:   rackNodes("r1", 1),
			pods:    []corev1.Pod{holder("a", "p0", "gpus", "r1-0", gpus("2")), holder("a", "p1", "cpus", "r1-0", amounts("cpu", "7", "memory", "2Gi"))},
			request: amounts("nvidia.com/gpu", "1", "cpu", "1", "memory", "1Gi"),
			domain:  "rack b1/r1 (1 node, 1 of 8 cpu free) is held by a/cpus (7)",
		},
		"GPUs come before cpu, and pods that run want nothing": {
			nodes:   rackNodes("r1", 1),
			pods:    []corev1.Pod{holder("team", "train-r", "train", "r1-0", amounts("cpu", "2", "nvidia.com/gpu", "2", "memory", "63Gi"))},
			request: amounts("nvidia.com/gpu", "2", "cpu", "2"),
			domain:  "rack b1/r1 (1 node, 6 of 8 nvidia.com/gpu free) is held by team/train (2)",
		},
		"memory": {
			nodes:   rackNodes("r1", 1, notReady),
			request: amounts("memory", "1Gi"),
			domain:  "rack b1/r1 (1 node, 0 of 64Gi memory free) is held by no pods; 1 node is not ready",
		},
		"pods that have ended hold nothing, and those that are deleted end soon": {
			nodes: rackNodes("r1", 1),
			pods: []corev1.Pod{
				holder("a", "p0", "one", "r1-0", gpus("2"), succeeded, func(p *corev1.Pod) { p.Spec.NodeName = "r1-0" }),
				holder("a", "p1", "two", "r1-0", gpus("2"), func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: noon().Add(20 * time.Second)} }),
			},
			request: gpus("8"),
			domain:  "rack b1/r1 (1 node, 6 of 8 nvidia.com/gpu free) is held by a/two (2, expected to end in 20s)",
		},
		"a pod with a deadline of a PodGroup that may not be read": {
			nodes: rackNodes("r1", 1),
			pods: []corev1.Pod{holder("a", "p0", "one", "r1-0", gpus("2"), activeFor(3600), func(p *corev1.Pod) {
				at := ago(11)
				p.Status.StartTime = &at
			})},
			request: gpus("8"),
			domain:  "rack b1/r1 (1 node, 6 of 8 nvidia.com/gpu free) is held by a/one (2, expected to end in 49m)",
		},
		"a PodGroup that was created again says nothing about the pods": {
			nodes: rackNodes("r1", 1),
			pods: []corev1.Pod{holder("a", "p0", "one", "r1-0", gpus("2"), func(p *corev1.Pod) {
				p.Annotations[v1alpha1.AnnotationPodGroupUID] = "uid-before"
			})},
			groups:  []*v1alpha1.PodGroup{started("a", "one", limited(7200, 0))},
			request: gpus("8"),
			domain:  "rack b1/r1 (1 node, 6 of 8 nvidia.com/gpu free) is held by a/one (2)",
		},
		"nodes may not be listed": {
			nodes: rackNodes("r1", 1), request: gpus("8"), refuse: "nodes",
			unread: "who holds rack b1/r1: requires a ClusterRoleBinding to a role that may list nodes and pods, such as batch-scheduler-record",
		},
		"pods may not be listed": {
			nodes: rackNodes("r1", 1), request: gpus("8"), refuse: "pods",
			unread: "who holds rack b1/r1: requires a ClusterRoleBinding to a role that may list nodes and pods, such as batch-scheduler-record",
		},
		"no node has the labels any more": {nodes: rackNodes("r2", 1), request: gpus("8")},
		"the PodGroup waits for no domain": {
			nodes: rackNodes("r1", 1), request: gpus("8"), refuse: "nodes", edit: func(g *v1alpha1.PodGroup) { g.Status.NearestDomain = nil },
		},
		"more nodes than are asked one by one": {
			nodes:   rackNodes("r1", 65),
			pods:    []corev1.Pod{holder("a", "p0", "one", "r1-64", gpus("2")), holder("a", "p1", "two", "r2-0", gpus("2"))},
			request: gpus("8"),
			domain:  "rack b1/r1 (65 nodes, 518 of 520 nvidia.com/gpu free) is held by a/one (2)",
		},
	}
}

// TestWhoHoldsADomain asserts what Text says about the domain that a PodGroup waits for.
func TestWhoHoldsADomain(t *testing.T) {
	t.Parallel()
	for name, tc := range rackCases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := tc.facts(t).Text()
			if diff := cmp.Diff([]string{tc.domain, tc.unread}, []string{lineOf(text, "Domain"), lineOf(text, "Unread")}); diff != "" {
				t.Errorf("domain, and what is unread (-want +got):\n%s\n%s", diff, text)
			}
		})
	}
}

// TestHeldDomainForPrograms asserts all fields of the domain in the answer.
func TestHeldDomainForPrograms(t *testing.T) {
	t.Parallel()
	f := rackCases()["those that hold the most come first, and end as they declare"].facts(t)
	got, err := json.MarshalIndent(explain.NewAnswer(f).Domain, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	printed(t, "domain-json", string(got)+"\n")
	printed(t, "domain", f.Text())
}
