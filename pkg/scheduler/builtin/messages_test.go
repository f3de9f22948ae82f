// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// TestMessagesOmitOtherNamespaces asserts that messages mention other jobs by numbers only. schedtest searches all messages
// for names of other namespaces.
func TestMessagesOmitOtherNamespaces(t *testing.T) {
	for name, test := range map[string]struct {
		given []Row
		want  string
	}{
		"a job that waits for victims": {
			given: Given(Node("n1", "2cpu"), Queue("q", 1),
				Group("q/victim", 1, In("secret"), Running(2, "1cpu", "n1", Priority(1))),
				Group("q/preemptor", 1, Pending(1, "1cpu", Priority(9)))),
			want: "waits q/preemptor Preempting: waiting for 1 evicted pod to terminate",
		},
		"a job without available nodes": {
			given: Given(Node("n1", "2cpu"), Queue("q", 1),
				Group("q/holder", 1, In("secret"), Running(2, "1cpu", "n1", Priority(9))),
				Group("q/late", 1, Pending(1, "1cpu", Priority(1)))),
			want: "waits q/late NotEnoughResources: needs 1 more pod of 1 cpu; 0/1 nodes are available: 1 Insufficient cpu",
		},
		"a job whose queue is full": {
			given: Given(Node("n1", "4cpu"), Queue("q", 1, Capability("2cpu")),
				Group("q/holder", 1, In("secret"), Running(2, "1cpu", "n1", Priority(9))),
				Group("q/late", 1, Pending(1, "1cpu", Priority(1)))),
			want: "waits q/late QueueFull: queue q is full: capability 2 cpu, allocated 2, needs 1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := New(t, BuiltIn(t), test.given, WithConfig(AllActions))
			c.Cycle()
			if diff := cmp.Diff(test.want, c.Waits()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
