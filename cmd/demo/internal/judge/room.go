package judge

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/cmd/demo/internal/scene"
)

// excess says in which resource the amounts exceed the limits; empty if in none. What the
// limits do not name is not limited.
func excess(amounts, limits corev1.ResourceList) string {
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		amount, limit := amounts[name], limits[name]
		if amount.Cmp(limit) > 0 {
			return fmt.Sprintf("its pods hold %s %s of %s", amount.String(), name, limit.String())
		}
	}
	return ""
}

// queueDifferences says where what queues say of themselves cannot be, or is not what their
// pods hold. Right after a decision such differences are natural.
func (j *Judge) queueDifferences() []string {
	var differences []string
	allocated, deserved, total := corev1.ResourceList{}, corev1.ResourceList{}, corev1.ResourceList{}
	for _, n := range j.last.Nodes {
		add(total, n.Allocatable)
	}
	for _, q := range j.last.Queues {
		add(allocated, q.Allocated)
		add(deserved, q.Deserved)
		differences = append(differences, differs(q)...)
		if text := excess(q.Deserved, q.Capability); text != "" {
			differences = append(differences, fmt.Sprintf("queue %s deserved more than its capability", q.Name))
		}
	}
	if excess(allocated, total) != "" {
		differences = append(differences, "the queues together said that they hold more than the cluster has")
	}
	if excess(deserved, total) != "" {
		differences = append(differences, "the queues together deserved more than the cluster has")
	}
	return differences
}

// differs compares what a queue says that it holds with what its pods hold, in the resources
// that queues share.
func differs(q scene.Queue) []string {
	var differences []string
	names := maps.Clone(q.Held)
	add(names, q.Allocated)
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

func add(sum, amounts corev1.ResourceList) {
	for name, amount := range amounts {
		total := sum[name]
		total.Add(amount)
		sum[name] = total
	}
}
