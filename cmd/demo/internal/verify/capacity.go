// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/cmd/demo/internal/snapshot"
	"github.com/batch-scheduler/batch-scheduler/test/capacity"
)

// queueDifferences says where what queues say of themselves cannot be, or is not what their
// pods hold. Right after a decision such differences are natural.
func (j *Verifier) queueDifferences() []string {
	var differences []string
	allocated, deserved, total := corev1.ResourceList{}, corev1.ResourceList{}, corev1.ResourceList{}
	for _, n := range j.last.Nodes {
		capacity.Add(total, n.Allocatable)
	}
	for _, q := range j.last.Queues {
		capacity.Add(allocated, q.Allocated)
		capacity.Add(deserved, q.Deserved)
		differences = append(differences, differs(q)...)
		if text := capacity.Excess(q.Deserved, q.Capability); text != "" {
			differences = append(differences, fmt.Sprintf("queue %s deserved more than its capability", q.Name))
		}
	}
	if capacity.Excess(allocated, total) != "" {
		differences = append(differences, "the queues together said that they hold more than the cluster has")
	}
	if capacity.Excess(deserved, total) != "" {
		differences = append(differences, "the queues together deserved more than the cluster has")
	}
	return differences
}

// differs compares what a queue says that it holds with what its pods hold, in the resources
// that queues share.
func differs(q snapshot.Queue) []string {
	var differences []string
	names := maps.Clone(q.Held)
	capacity.Add(names, q.Allocated)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if name == corev1.ResourcePods || name == corev1.ResourceEphemeralStorage {
			continue
		}
		says, holds := q.Allocated[name], q.Held[name]
		if says.Cmp(holds) != 0 {
			differences = append(differences, fmt.Sprintf("queue %s said that it holds %s %s while its pods held %s", q.Name, says.String(), name, holds.String()))
		}
	}
	return differences
}
