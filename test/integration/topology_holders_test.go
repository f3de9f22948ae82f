// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// TestWhoHoldsADomain asks why a gang waits for a rack: a user of its namespace, before and after the user may list nodes and
// pods. The PodGroup names the rack until the gang starts.
func TestWhoHoldsADomain(t *testing.T) {
	h := newHarness(t, noControllers)
	limit := func(g *gangParts) { g.group.Spec.MaximumExecutionTimeSeconds = ptr.To(int32(7200)) }
	h.do(blocksAndRacks, rackNodes("b", "r1", 3), rackNodes("b", "r2", 1),
		gang("old", 1, pods(1, "1cpu", inRackOf("r1")), limit))
	h.start()
	h.awaitStable(`old: Running Scheduled; 1 running`, "")
	h.do(gang("new", 3, pods(3, "1cpu"), within("rack")))
	h.awaitStable(`
		new: Pending NotEnoughResources; 3 waiting Unschedulable
		old: Running Scheduled; 1 running`, "")
	if got, want := h.nearestDomain("new"), "rack b/r1 map[example.com/block:b example.com/rack:r1]"; got != want {
		t.Errorf("status.nearestDomain is %q, want %q", got, want)
	}
	const reason, domain = "in one rack; rack b/r1 has", "Domain:   rack b/r1 (3 nodes, 2 of 3 cpu free) is held by default/old (1,"
	const hint = "Unread:   who holds rack b/r1: requires a ClusterRoleBinding to a role that may"
	ada := h.newPlugin("--as", "ada", "--as-group", "system:authenticated")
	subject := rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "ada"}
	h.grantTo("system:aggregate-to-view", namespace, subject) // nothing aggregates roles here
	h.grantTo("batch-scheduler-view", "", subject)
	ada.eventuallyPrints("why new", reason, hint)
	ada.prints("why new -o jsonpath={.reason}:{.domain}", "NotEnoughResources:")
	h.grantTo("batch-scheduler-record", "", subject)
	ada.eventuallyPrints("why new", reason, domain, "expected to end in 11")
	ada.prints("why new -o jsonpath={.domain.podGroups[0].podGroup}:{.domain.podGroups[0].held}:{.domain.free}", "default/old:1:2")

	h.must(h.terminate("old-0"))
	h.awaitStable(`
		new: Running Scheduled; 3 running
		old: Pending NotEnoughPods`, "")
	if got := h.nearestDomain("new"); got != "" {
		t.Errorf("status.nearestDomain is %q of a gang that runs", got)
	}
}

// nearestDomain returns what the status of a PodGroup shows; empty for nothing.
func (h *harness) nearestDomain(name string) string {
	h.t.Helper()
	g, err := h.batch.SchedulingV1alpha1().PodGroups(namespace).Get(h.ctx, name, metav1.GetOptions{})
	h.must(err)
	if d := g.Status.NearestDomain; d != nil {
		return fmt.Sprint(d.Level, " ", d.Name, " ", d.NodeLabels)
	}
	return ""
}
