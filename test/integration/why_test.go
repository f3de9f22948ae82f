// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/cmd/localcluster/annotation"
	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// cause is a pending job, under its own name, and the complete messages about why it waits.
type cause struct {
	given []row
	want  string // reason and message
}

// fourNodes are those that TestWhy is about. All have 4 cpu of which 1 is free, but for the one with GPUs, which is
// empty.
var fourNodes = rows(
	node("taken", "4cpu", inZone("zone-a")),
	node("shared", "4cpu", inZone("zone-b")),
	node("gpus", "8cpu 2gpu 72Gi", inZone("zone-b")),
	node("infra", "4cpu", tainted("maintenance"), inZone("zone-a")),
	node("closed", "4cpu", func(n *corev1.Node) { n.Spec.Unschedulable = true }),
	node("silent", "4cpu", func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }),
	plain("foreign", 1, "3cpu", onNode("taken"), byDefaultScheduler),
	gang("runs", 1, pods(1, "3cpu", requireOn("shared"), hostPort(80))),
)

// causes all wait beside each other on fourNodes.
var causes = map[string]cause{
	"wide": {
		given: rows(gang("wide", 1, pods(1, "16cpu"))),
		want: "ExceedsClusterCapacity: needs 1 more pod of 16 cpu; 0/6 nodes are available: 3 Insufficient cpu, 1 node(s) had untolerated taint {maintenance:NoSchedule}, 1 node(s) were not ready, 1 node(s) were unschedulable; would not fit the empty nodes: " +
			"a pod requests 16 cpu, the largest suitable node has 8",
	},
	"large": {
		given: rows(gang("large", 1, pods(1, "1cpu 100Gi"))),
		want: "ExceedsClusterCapacity: needs 1 more pod of 1 cpu + 100Gi memory; 0/6 nodes are available: 3 Insufficient memory, 1 node(s) had untolerated taint {maintenance:NoSchedule}, 1 node(s) were not ready, 1 node(s) were unschedulable; would not fit the empty nodes: " +
			"a pod requests 100Gi memory, the largest suitable node has 72Gi",
	},
	"many-gpus": {
		given: rows(gang("many-gpus", 2, pods(2, "1cpu 3gpu"))),
		want: "ExceedsClusterCapacity: needs 2 more pods of 3 nvidia.com/gpu + 1 cpu; 0/6 nodes are available: 2 without nvidia.com/gpu, 1 Insufficient nvidia.com/gpu, 1 node(s) had untolerated taint {maintenance:NoSchedule}, 1 node(s) were not ready, 1 node(s) were unschedulable; would not fit the empty nodes (at most 0 of 2 pods): " +
			"a pod requests 3 nvidia.com/gpu, the largest suitable node has 2",
	},
	"scattered": {
		given: rows(gang("scattered", 12, pods(12, "1cpu"))),
		want:  "NotEnoughResources: needs 12 more pods of 1 cpu, 10 of them could start now; 3/6 nodes are available: 1 node(s) had untolerated taint {maintenance:NoSchedule}, 1 node(s) were not ready, 1 node(s) were unschedulable",
	},
	"crowded-out": {
		given: rows(gang("crowded-out", 1, pods(1, "4cpu", selecting(corev1.LabelHostname, "taken")))),
		want: "NotEnoughResources: needs 1 more pod of 4 cpu; 0/6 nodes are available: 2 node(s) didn't match Pod's node affinity/selector (node selector kubernetes.io/hostname=taken), 1 Insufficient cpu because of pods of other schedulers, " +
			"1 node(s) had untolerated taint {maintenance:NoSchedule}, 1 node(s) were not ready, 1 node(s) were unschedulable; nearest: node taken lacks 3 cpu",
	},
	"repelled": {
		given: rows(gang("repelled", 1, pods(1, "1cpu", selecting(corev1.LabelHostname, "infra")))),
		want:  "Unschedulable: needs 1 more pod of 1 cpu; 0/6 nodes are available: 3 node(s) didn't match Pod's node affinity/selector (node selector kubernetes.io/hostname=infra), 1 node(s) had untolerated taint {maintenance:NoSchedule}, 1 node(s) were not ready, 1 node(s) were unschedulable",
	},
	"picky": {
		given: rows(gang("picky", 1, pods(1, "1cpu", selecting("disk", "ssd")))),
		want:  "Unschedulable: needs 1 more pod of 1 cpu; 0/6 nodes are available: 3 node(s) didn't match Pod's node affinity/selector (node selector disk=ssd), 1 node(s) had untolerated taint {maintenance:NoSchedule}, 1 node(s) were not ready, 1 node(s) were unschedulable",
	},
	"elsewhere": {
		given: rows(gang("elsewhere", 1, pods(1, "1cpu", requires(corev1.NodeSelectorRequirement{
			Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{"zone-c", "zone-d"}})))),
		want: "Unschedulable: needs 1 more pod of 1 cpu; 0/6 nodes are available: 3 node(s) didn't match Pod's node affinity/selector (node affinity topology.kubernetes.io/zone in (zone-c,zone-d)), 1 node(s) had untolerated taint {maintenance:NoSchedule}, " +
			"1 node(s) were not ready, 1 node(s) were unschedulable",
	},
	"port": {
		given: rows(gang("port", 1, pods(1, "1cpu", hostPort(80), selecting(corev1.LabelHostname, "shared")))),
		want: "NotEnoughResources: needs 1 more pod of 1 cpu; 0/6 nodes are available: 2 node(s) didn't match Pod's node affinity/selector (node selector kubernetes.io/hostname=shared), 1 node(s) didn't have free ports for the requested pod ports, " +
			"1 node(s) had untolerated taint {maintenance:NoSchedule}, 1 node(s) were not ready, 1 node(s) were unschedulable",
	},
	"apart": {
		given: rows(gang("apart", 1, pods(1, "1cpu", avoid("runs"), selecting(corev1.LabelHostname, "shared")))),
		want: "NotEnoughResources: needs 1 more pod of 1 cpu; 0/6 nodes are available: 2 node(s) didn't match Pod's node affinity/selector (node selector kubernetes.io/hostname=shared), 1 node(s) didn't match pod anti-affinity rules, " +
			"1 node(s) had untolerated taint {maintenance:NoSchedule}, 1 node(s) were not ready, 1 node(s) were unschedulable",
	},
	"together": {
		given: rows(gang("together", 1, pods(1, "1cpu", requireWith("absent")))),
		want:  "Unschedulable: needs 1 more pod of 1 cpu; 0/6 nodes are available: 3 node(s) didn't match pod affinity rules, 1 node(s) had untolerated taint {maintenance:NoSchedule}, 1 node(s) were not ready, 1 node(s) were unschedulable",
	},
	"spread": {
		given: rows(gang("spread", 1, pods(1, "1cpu", evenly("no/such-key", "spread")))),
		want:  "Unschedulable: needs 1 more pod of 1 cpu; 0/6 nodes are available: 3 node(s) didn't match pod topology spread constraints (missing required label), 1 node(s) had untolerated taint {maintenance:NoSchedule}, 1 node(s) were not ready, 1 node(s) were unschedulable",
	},
	"claim": {
		given: rows(gang("claim", 1, pods(1, "1cpu", claiming("claim")))),
		want: "Unschedulable: needs 1 more pod of 1 cpu; 0/6 nodes are available: 3 persistentvolumeclaim \"claim-0\" not found, 1 node(s) had untolerated taint {maintenance:NoSchedule}, " +
			"1 node(s) were not ready, 1 node(s) were unschedulable",
	},
	"device": {
		given: rows(gang("device", 1, pods(1, "1cpu", usingClaim("missing")))),
		want: "Unschedulable: needs 1 more pod of 1 cpu; 0/6 nodes are available: 3 could not find ResourceClaim \"default/missing\", 1 node(s) had untolerated taint {maintenance:NoSchedule}, " +
			"1 node(s) were not ready, 1 node(s) were unschedulable",
	},
	"short": {
		given: rows(gang("short", 4, pods(3, "1cpu"))),
		want:  "NotEnoughPods: 3 of 4 pods that must start together exist",
	},
	"gated": {
		given: rows(gang("gated", 2, pods(1, "1cpu"), set("gated", 1, "1cpu", gated))),
		want:  "NotEnoughPods: 1 of 2 pods that must start together exist; 1 gated",
	},
	"empty": {
		given: rows(group("empty", 3)),
		want:  "NotEnoughPods: 0 of 3 pods that must start together exist",
	},
	"no-group": {
		given: rows(members("no-group", pods(2, "1cpu"))),
		want:  `GroupNotFound: PodGroup "no-group" does not exist in the namespace of the pod; create it or correct the label scheduling.batch-scheduler.dev/pod-group`,
	},
	"no-queue": {
		given: rows(gang("no-queue", 1, pods(1, "1cpu"), in("reserch"))),
		want:  `QueueNotFound: queue "reserch" does not exist; create it or name another queue`,
	},
	"capped": {
		given: rows(queue("small", 1, atMost("3cpu")), gang("capped", 4, pods(4, "1cpu"), in("small"))),
		want:  "ExceedsQueueCapability: exceeds the queue's capability: needs 4 cpu, and queue small has a capability of 3",
	},
	"greedy": {
		given: rows(gang("greedy", 1, pods(1, "1cpu"), atLeast("1000cpu"))),
		want:  "ExceedsClusterCapacity: spec.minResources requests 1000 cpu, but the nodes that suit a pending or running pod have 13 cpu in total",
	},
	"misspelt": {
		given: rows(gang("misspelt", 1, pods(1, "16cpu"), ofClass("hihg"))),
		want: "ExceedsClusterCapacity: needs 1 more pod of 16 cpu; 0/6 nodes are available: 3 Insufficient cpu, 1 node(s) had untolerated taint {maintenance:NoSchedule}, 1 node(s) were not ready, 1 node(s) were unschedulable; would not fit the empty nodes: " +
			"a pod requests 16 cpu, the largest suitable node has 8; priority class hihg does not exist, so the highest priority of the pods is used",
	},
	"denied": {
		given: rows(denyBinding("denied-0"), gang("denied", 1, pods(1, ""))),
		want: "BindFailed: binding pod denied-0 to node shared failed: pods \"denied-0\" is forbidden: ValidatingAdmissionPolicy 'bindings' with binding 'bindings' denied request: " +
			"not this one; retrying with exponential backoff",
	},
	"alone": {
		given: rows(plain("alone", 1, "16cpu")),
		want:  "Unschedulable: needs 1 more pod of 16 cpu; 0/6 nodes are available: 3 Insufficient cpu, 1 node(s) had untolerated taint {maintenance:NoSchedule}, 1 node(s) were not ready, 1 node(s) were unschedulable; would not fit the empty nodes: a pod requests 16 cpu, the largest suitable node has 8",
	},
}

// TestWhy: the conditions of every pending job state the true cause, and the numbers that a person would count.
func TestWhy(t *testing.T) {
	h := newHarness(t, noControllers)
	h.do(fourNodes...)
	h.start()
	h.awaitStable(`
		foreign: 1 running
		runs: Running Scheduled; 1 running`, "")
	for _, c := range causes {
		h.do(c.given...)
	}
	want, got := map[string]string{}, map[string]string{}
	for name, c := range causes {
		want[name] = c.want
	}
	if err := h.await(func() error {
		for name := range causes {
			got[name] = h.view.why(name)
		}
		return differ(want, got)
	}); err != nil {
		t.Error(err)
	}
}

// TestWhyOthersGoFirst: what depends on who else is there, one cluster for each.
func TestWhyOthersGoFirst(t *testing.T) {
	play(t, map[string]scenario{
		"a gang that has waited for long gets a reservation, and the messages of others state it": {
			config: "starvationAfter: 1s\n" + builtinPolicy,
			given:  rows(nodes("n", 2, "4cpu"), queue("q1", 1), queue("q2", 1), gang("runs", 1, pods(2, "3cpu"), in("q2"))),
			step:   step{want: `runs: Running Scheduled; 2 running`},
			then: []step{{
				do: rows(gang("starving", 2, pods(2, "2cpu"), in("q1"))),
				want: `
					runs: Running Scheduled; 2 running
					starving: Pending NotEnoughResources; 2 waiting Unschedulable`,
				prints: map[string]string{"starving": "; reserved: 2 nodes, because it has been pending for more than 1s; 0 of 2 pods could start there now; waiting for resources of pods there: default/runs-0, default/runs-1; nearest: node n1 lacks 1 cpu"},
			}, {
				do: rows(gang("late", 1, pods(1, "1cpu"), in("q1"))),
				want: `
					late: Pending NotEnoughResources; 1 waiting Unschedulable
					runs: Running Scheduled; 2 running
					starving: Pending NotEnoughResources; 2 waiting Unschedulable`,
				prints: map[string]string{"late": "0/2 nodes are available: 2 reserved for another PodGroup (default/starving)"},
			}},
		},
		"victims are on their way out": {
			evicts: true,
			given:  rows(nodes("n", 1, "4cpu"), priorityClass("high", 100), gang("old", 1, pods(4, "1cpu", annotated(annotation.TerminateAfter, "1h")))),
			step:   step{want: `old: Running Scheduled; 4 running`},
			then: []step{{
				do: rows(gang("new", 3, pods(3, "1cpu", priority("high")))),
				want: `
					new: Pending Preempting; 3 waiting Preempting
					old: Running Scheduled; 3 ending, 1 running`,
				prints: map[string]string{"new": "waiting for 3 evicted pods to terminate, expected by 20"},
			}},
		},
		"a queue that may not borrow has what it deserves": {
			given: rows(threeNodes, queue("mine", 1, func(q *v1alpha1.Queue) { q.Spec.Reclaimable = ptr.To(false) }), queue("theirs", 3),
				gang("some", 3, pods(3, "1cpu"), in("mine"))),
			step: step{want: `some: Running Scheduled; 3 running`},
			then: []step{{
				do: rows(gang("wide", 12, pods(12, "1cpu"), in("theirs"))), // fits an empty cluster only
				want: `
					some: Running Scheduled; 3 running
					wide: Pending NotEnoughResources; 12 waiting Unschedulable`,
			}, {
				do: rows(gang("more", 1, pods(1, "1cpu"), in("mine"))),
				want: `
					more: Pending OverShare; 1 waiting OverShare
					some: Running Scheduled; 3 running
					wide: Pending NotEnoughResources; 12 waiting Unschedulable`,
				prints: map[string]string{"more": "queue mine cannot borrow (spec.reclaimable is false): deserved 3 cpu, allocated 3, needs 1"},
			}},
		},
	})
}

// builtinPolicy is the policy that the scheduler has by itself.
const builtinPolicy = `
actions: "allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
`

func differ(want, got map[string]string) error {
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Errorf("reasons (-want +got):\n%s", diff)
	}
	return nil
}

// why returns the reason and message of a job, from its PodGroup if it has one, else from its pods; each text once.
func (v *observer) why(job string) string {
	selector := labels.SelectorFromSet(labels.Set{jobLabel: job})
	groups, _ := v.groups.List(selector)
	var texts []string
	for _, g := range groups {
		texts = append(texts, scheduled(g).Reason+": "+scheduled(g).Message)
	}
	if len(groups) == 0 {
		pods, _ := v.pods.List(selector)
		for _, p := range pods {
			texts = append(texts, podScheduled(p).Reason+": "+podScheduled(p).Message)
		}
	}
	slices.Sort(texts)
	return strings.Join(slices.Compact(texts), "\n")
}

// selecting is a node selector.
func selecting(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{key: value} }
}

// atLeast gives a group spec.minResources.
func atLeast(amounts string) part {
	return func(g *gangParts) { g.group.Spec.MinResources = resources(amounts) }
}

// denyBinding has the API server refuse to bind a pod of that name.
func denyBinding(pod string) row {
	return func(h *harness) {
		h.deny("bindings", admissionv1.Create, admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/binding"}},
			fmt.Sprintf("object.metadata.name != %q", pod))
		h.eventually(func() error { // until it is in force
			binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: pod}, Target: corev1.ObjectReference{Kind: "Node", Name: "nowhere"}}
			if err := h.client.CoreV1().Pods(namespace).Bind(h.ctx, binding, metav1.CreateOptions{}); !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
				return fmt.Errorf("pod %s could be bound: %w", pod, err)
			}
			return nil
		})
	}
}
