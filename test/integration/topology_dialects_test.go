// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// TestKueueTopology: a Job with the annotations of Kueue, required block and slices of 4 per rack, starts in the same racks as the
// equal PodGroup; so does one in a cluster without Topology whose levels are node labels (TO16).
func TestKueueTopology(t *testing.T) {
	for name, start := range map[string]row{
		"PodGroup": gang("train", 8, within("block"), set("train", 8, "1cpu", numbered()), subGroups(v1alpha1.SubGroup{
			Name: "train", SegmentSize: 4, MinSubGroup: ptr.To[int32](2),
			SegmentTopologyConstraint: &v1alpha1.RequiredTopology{RequiredTopologyLevel: "rack"},
		})),
		"Job": indexedJob("train", 8, "1cpu", annotated("kueue.x-k8s.io/podset-required-topology", "example.com/block"),
			annotated("kueue.x-k8s.io/podset-slice-required-topology", "example.com/rack"), annotated("kueue.x-k8s.io/podset-slice-size", "4")),
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, controllers)
			h.grantGrouping("job")
			h.do(rackNodes("a", "r1", 7), rackNodes("a", "r2", 3), rackNodes("b", "r1", 6), rackNodes("b", "r2", 5), queue("default", 1))
			_, err := h.batch.SchedulingV1alpha1().Topologies().Create(h.ctx, topology("default"), metav1.CreateOptions{})
			h.must(err)
			h.start(h.groupingPolicy("{kinds: [job], job: indexed}"))
			h.do(start)
			h.eventually(func() error { return h.racksOf("train", "b-r1 b-r1 b-r1 b-r1 b-r2 b-r2 b-r2 b-r2") })
		})
	}
	t.Run("without Topology", func(t *testing.T) {
		h := newHarness(t, controllers)
		h.grantGrouping("job")
		h.do(rackNodes("a", "r1", 3), rackNodes("a", "r2", 4), queue("default", 1))
		h.start(h.groupingPolicy("{kinds: [job], job: indexed}"))
		h.do(indexedJob("train", 4, "1cpu", annotated("kueue.x-k8s.io/podset-required-topology", "example.com/rack")))
		h.eventually(func() error { return h.racksOf("train", "a-r2 a-r2 a-r2 a-r2") })
	})
}

// racksOf compares the racks of the pods whose names begin with that of a job.
func (h *harness) racksOf(job, want string) error {
	list, err := h.client.CoreV1().Pods(namespace).List(h.ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var racks []string
	for _, p := range list.Items {
		if len(p.Name) > len(job) && p.Name[:len(job)] == job && p.Status.Phase != corev1.PodFailed {
			racks = append(racks, p.Spec.NodeName[:min(len(p.Spec.NodeName), len("b-r1"))])
		}
	}
	slices.Sort(racks)
	if got := fmt.Sprint(racks); got != "["+want+"]" {
		return fmt.Errorf("the pods of %s are in %s, want [%s]", job, got, want)
	}
	return nil
}
