// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package nodeindex

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model/modeltest"
)

// TestNetChanges makes and releases random reservations, and places and removes pods. Each time that the journal is read, its
// new entries must be the nodes that are not as they were the last time, written down in words.
func TestNetChanges(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const nodes = 3
		c := NewCluster()
		for i := range nodes {
			c.Events().SetNode(Node(fmt.Sprint("n", i), 4))
		}
		for _, job := range []string{"a", "b"} {
			c.Events().SetPodGroup(Group(job, 1))
			c.Events().SetPod(Pod(job, 1, InGroup(job)))
		}
		waiting := []*api.TaskInfo{c.Tasks()["a"], c.Tasks()["b"]}
		x := netChanges{cluster: c}
		position, before := x.read().Position(), make([]string, nodes)
		describe := func(n *api.NodeInfo) string {
			var jobs []string
			for _, j := range n.ReservedFor {
				jobs = append(jobs, j.Key)
			}
			return fmt.Sprint(n.OwnGeneration, n.Reserved.At(0), jobs)
		}
		for i, n := range c.Nodes() {
			before[i] = describe(n)
		}
		var held []*api.Reservation
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			n := c.Nodes()[rapid.IntRange(0, nodes-1).Draw(t, "node")]
			switch rapid.IntRange(0, 7).Draw(t, "step") {
			case 0, 1, 2:
				j := rapid.SampledFrom(waiting).Draw(t, "for").Job
				part := api.ReservedPart{Node: n, Amount: api.Resource{rapid.Int64Range(1, 2).Draw(t, "amount")}}
				held = append(held, c.Ledger().ReserveParts(j, []api.ReservedPart{part}))
			case 3, 4, 5:
				if len(held) > 0 {
					i := rapid.IntRange(0, len(held)-1).Draw(t, "which")
					c.Ledger().Unreserve(held[i])
					held = slices.Delete(held, i, i+1)
				}
			case 6:
				task := rapid.SampledFrom(waiting).Draw(t, "task")
				if task.Waiting() {
					c.Ledger().Place(task, api.Allocated, n)
				}
			default:
				var want []int32
				for i, n := range c.Nodes() {
					if now := describe(n); now != before[i] {
						want, before[i] = append(want, int32(i)), now
					}
				}
				got, known := x.read().Since(position)
				got = slices.Sorted(slices.Values(got))
				if diff := cmp.Diff(want, got); diff != "" || !known {
					t.Fatalf("(-want +got):\n%s", diff)
				}
				position = x.journal.Position()
			}
		}
	})
}
