// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

// TestTopGPUs has a node with a device plugin and one with a DRA driver. Pods use their GPUs as extended resources, and by a
// claim.
func TestTopGPUs(t *testing.T) {
	h := newHarness(t, noControllers)
	h.do(node("driver", "8cpu"), node("plugin", "8cpu 8gpu"), gpuClass, devices("driver", 8), claimsFor(2, "own"),
		gang("a", 1, pods(1, "1cpu", usingClaim("own"))), gang("b", 3, pods(3, "1cpu 4gpu")))
	h.start()
	h.awaitStable(`
		a: Running Scheduled; 1 running
		b: Running Scheduled; 3 running`, "")
	ada := h.newPlugin("--as", "ada", "--as-group", "system:authenticated")
	ada.fails("top gpus", "is forbidden", "it requires a ClusterRoleBinding to a role that may list them, such as batch-scheduler-record")
	h.grantTo("batch-scheduler-record", "", rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "ada"})
	const titles = "MODEL  NODES  GPUS  FREE  FIT1  FIT2  FIT4  FIT8  STRANDED  FRAG\n"
	ada.eventuallyPrints("top gpus", titles+"-          2    16     2     2     1     0     0         0   1.5\n")
	ada.prints("top gpus --resource amd.com/gpu", "No nodes with amd.com/gpu found")
}
