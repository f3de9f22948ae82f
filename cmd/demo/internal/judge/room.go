package judge

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/cmd/demo/internal/scene"
	"github.com/batch-scheduler/batch-scheduler/test/room"
)

// queueDifferences says where what queues say of themselves cannot be, or is not what their
// pods hold. Right after a decision such differences are natural.
func (j *Judge) queueDifferences() []string {
	var differences []string
	allocated, deserved, total := corev1.ResourceList{}, corev1.ResourceList{}, corev1.ResourceList{}
	for _, n := range j.last.Nodes {
		room.Add(total, n.Allocatable)
	}
	for _, q := range j.last.Queues {
		room.Add(allocated, q.Allocated)
		room.Add(deserved, q.Deserved)
		differences = append(differences, differs(q)...)
		if text := room.Excess(q.Deserved, q.Capability); text != "" {
			differences = append(differences, fmt.Sprintf("queue %s deserved more than its capability", q.Name))
		}
	}
	if room.Excess(allocated, total) != "" {
		differences = append(differences, "the queues together said that they hold more than the cluster has")
	}
	if room.Excess(deserved, total) != "" {
		differences = append(differences, "the queues together deserved more than the cluster has")
	}
	return differences
}

// differs compares what a queue says that it holds with what its pods hold, in the resources
// that queues share.
func differs(q scene.Queue) []string {
	var differences []string
	names := maps.Clone(q.Held)
	room.Add(names, q.Allocated)
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
