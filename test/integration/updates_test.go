// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// TestChanges is about what changes around groups that wait or run.
func TestChanges(t *testing.T) {
	play(t, map[string]scenario{
		"the annotation of kube-batch names a group too": {
			given: rows(threeNodes, group("a", 2),
				plain("a", 2, "1cpu", annotated(v1alpha1.AnnotationGroupName, "a"))),
			step: step{want: `a: Running Scheduled; 2 running`},
		},
		"the pods of a controller start together if they say so": {
			cluster: controllers,
			given: rows(threeNodes,
				batchJob("wide", 13, "1cpu", annotated(v1alpha1.AnnotationGroupMinMember, "13")),
				replicaSet("web", 6, "1cpu", annotated(v1alpha1.AnnotationGroupMinMember, "6"))),
			step: step{want: `
				web: 6 running
				wide: 13 waiting Unschedulable`},
		},
		"a lowered minMember counts at once": {
			given: rows(threeNodes, gang("a", 13, pods(13, "1cpu"))),
			step:  step{want: `a: Pending ExceedsClusterCapacity; 13 waiting Unschedulable`},
			then: []step{{
				do:   rows(group("a", 12)),
				want: `a: Running Scheduled; 12 running, 1 waiting Unschedulable`,
			}},
		},
		"a raised minMember is made up as one": {
			given: rows(threeNodes, gang("a", 10, pods(10, "1cpu"))),
			step:  step{want: `a: Running Scheduled; 10 running`},
			then: []step{{
				do:    rows(group("a", 14), members("a", set("more", 4, "1cpu"))),
				want:  `a: Unknown ExceedsClusterCapacity; 10 running; more 4 waiting Unschedulable`,
				short: "a",
			}, {
				do:   rows(node("n4", "2cpu")),
				want: `a: Running Scheduled; 10 running; more 4 running`,
			}},
		},
		"pods of a deleted queue continue to run": {
			given: rows(threeNodes, queue("q", 1),
				gang("a", 4, pods(4, "1cpu"), in("q")),
				gang("b", 9, pods(9, "1cpu"), in("q"))),
			step: step{want: `
				a: Running Scheduled; 4 running
				b: Pending NotEnoughResources; 9 waiting Unschedulable`},
			then: []step{{
				do: rows(noQueue("q")),
				want: `
					a: Running Scheduled; 4 running
					b: Pending QueueNotFound; 9 waiting QueueNotFound`,
			}},
		},
		"a waiting group may change its queue": {
			given: rows(threeNodes, queue("small", 1, atMost("1cpu")), queue("large", 1),
				gang("a", 4, pods(4, "1cpu"), in("small"))),
			step: step{want: `a: Pending ExceedsQueueCapability; 4 waiting ExceedsQueueCapability`},
			then: []step{{
				do:   rows(group("a", 4, in("large"))),
				want: `a: Running Scheduled; 4 running`,
			}},
		},
		"a cordoned node takes nothing until it is uncordoned": {
			given: rows(nodes("n", 2, "4cpu", func(n *corev1.Node) { n.Spec.Unschedulable = true }),
				gang("a", 2, pods(2, "1cpu"))),
			step: step{
				want:   `a: Pending Unschedulable; 2 waiting Unschedulable`,
				prints: map[string]string{"a": "0/2 nodes are available: 2 node(s) were unschedulable"},
			},
			then: []step{{
				do:   rows(patchNode("n2", `{"spec":{"unschedulable":null}}`)),
				want: `a: Running Scheduled; 2 running (n2 2)`,
				by:   corev1.LabelHostname,
			}},
		},
		"a node that grows is filled": {
			given: rows(nodes("n", 1, "4cpu"), gang("a", 8, pods(8, "1cpu"))),
			step:  step{want: `a: Pending ExceedsClusterCapacity; 8 waiting Unschedulable`},
			then: []step{{
				do:   rows(patchNode("n1", `{"status":{"allocatable":{"cpu":"8"},"capacity":{"cpu":"8"}}}`, "status")),
				want: `a: Running Scheduled; 8 running`,
			}},
		},
		"a cluster without nodes says so": {
			given: rows(gang("a", 2, pods(2, "1cpu"))),
			step: step{
				want:   `a: Pending Unschedulable; 2 waiting Unschedulable`,
				prints: map[string]string{"a": "no nodes available to schedule pods"},
			},
			then: []step{{
				do:   rows(threeNodes),
				want: `a: Running Scheduled; 2 running`,
			}},
		},
		"a member of another scheduler is not waited for": {
			given: rows(threeNodes, gang("a", 3, pods(2, "1cpu"),
				set("foreign", 1, "1cpu", func(p *corev1.Pod) { p.Spec.SchedulerName = "another" }))),
			step: step{want: `a: Pending NotEnoughPods; 2 waiting NotEnoughPods; foreign 1 waiting`},
		},
	})
}

// patchNode changes a node, or a subresource of it.
func patchNode(name, patch string, subresources ...string) row {
	return func(h *harness) {
		_, err := h.client.CoreV1().Nodes().Patch(h.ctx, name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
		h.must(err)
	}
}

// TestTerminatingNamespace: pods of a namespace that is being deleted are not placed.
func TestTerminatingNamespace(t *testing.T) {
	h := newHarness(t, noControllers) // no controller empties the namespace
	h.do(threeNodes, terminating("deleted"))
	h.start()
	h.do(gang("a", 1, pods(1, "1cpu")))
	h.awaitStable(`
		a: Running Scheduled; 1 running
		deleted: Pending NotEnoughPods; 2 waiting NotEnoughPods`, "")
}

// terminating is a namespace that is being deleted, with a gang of its name in it.
func terminating(name string) row {
	return func(h *harness) {
		_, err := h.client.CoreV1().Namespaces().Create(h.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		h.must(err)
		h.do(gang(name, 2, pods(2, "1cpu"), inNamespace(name)))
		h.must(h.client.CoreV1().Namespaces().Delete(h.ctx, name, metav1.DeleteOptions{}))
		h.eventually(func() error {
			ns, err := h.client.CoreV1().Namespaces().Get(h.ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if ns.Status.Phase != corev1.NamespaceTerminating {
				return fmt.Errorf("namespace %s is %s", name, ns.Status.Phase)
			}
			return nil
		})
	}
}
