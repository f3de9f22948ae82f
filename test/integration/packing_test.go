// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestNodesStayWhole: small pods leave whole nodes of GPUs to large ones, and pods without GPUs leave them all.
func TestNodesStayWhole(t *testing.T) {
	play(t, map[string]scenario{
		"four pods of one GPU take one of four nodes": {
			given: rows(nodes("gpu", 4, "64cpu 8gpu"), node("cpu", "4cpu"),
				plain("single", 4, "4cpu 1gpu"), plain("web", 4, "1cpu")),
			step: step{
				want: `
					single: 4 running (gpu1 4)
					web: 4 running (cpu 4)`,
				by: corev1.LabelHostname,
			},
			then: []step{{
				do: rows(gang("train", 3, pods(4, "4cpu 8gpu"))),
				want: `
					single: 4 running (gpu1 4)
					train: Running Scheduled; 3 running, 1 waiting Unschedulable (gpu2 1, gpu3 1, gpu4 1)
					web: 4 running (cpu 4)`,
				by: corev1.LabelHostname,
			}},
		},
	})
}
