// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/batch-scheduler/batch-scheduler/cmd/localcluster/annotation"
)

// TestPositionInTheQueue: the plugin shows where a PodGroup is in the order of its queue, and the job before it. A PodGroup
// of higher priority is the first. When that has pods evicted, its message names the pods that it waits for.
func TestPositionInTheQueue(t *testing.T) {
	h := newHarness(t, noControllers)
	h.do(nodes("n", 1, "4cpu"), queue("team", 1), priorityClass("high", 100),
		gang("runs", 1, pods(4, "1cpu", annotated(annotation.TerminateAfter, "1h")), in("team")))
	h.start()
	h.awaitStable(`runs: Running Scheduled; 4 running`, "")
	waits := []string{"a", "b", "c"}
	for _, name := range waits { // one after the other, because the order is by age
		h.do(gang(name, 3, pods(3, "1cpu"), in("team")))
		h.eventually(func() error { return h.podGroupEvent(name, "needs 3 more pods") })
	}
	h.do(group("empty", 2, in("team")))
	ada := h.newPlugin()
	ada.eventuallySays("why a", "Position: 1 of 3 in the order of queue team")
	ada.eventuallySays("why c", "Position: 3 of 3 in the order of queue team, after default/b")
	ada.eventuallySays("get podgroups b -o wide", "; position 2 of 3 in the order of queue team, after default/a")
	for _, name := range []string{"runs", "empty"} { // neither of them waits for its turn
		if err := ada.omits("why "+name, true, []string{"Position:"}); err == nil {
			t.Errorf("PodGroup %s has a position", name)
		}
	}

	h.do(gang("urgent", 3, pods(3, "1cpu", priority("high")), in("team")))
	ada.eventuallySays("why urgent", "Position: 1 of 4 in the order of queue team")
	ada.eventuallySays("why a", "Position: 2 of 4 in the order of queue team, after default/urgent")

	h.grantTo("batch-scheduler-view", namespace, rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "ben"})
	ben := h.newPlugin("--as", "ben", "--as-group", "system:authenticated")
	ben.eventuallySays("get podgroups b -o wide", "NotEnoughResources") // although the role does not allow to read queues

	h.stop()
	h.start("--scheduler-conf=" + h.file("policy.yaml", evictingPolicy))
	ada.eventuallySays("why urgent", "Reason: Preempting", "waiting for 3 evicted pods to terminate, expected by", "default/runs-")
}
