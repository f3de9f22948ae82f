// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// queueStatus is what a queue tells about itself, in cores.
type queueStatus struct {
	Allocated, Deserved, Pending string // cpu; empty is 0
	Groups                       v1alpha1.QueueGroups
}

// awaitQueue waits until the status of the queue is as wanted and nothing changes any more.
func (h *harness) awaitQueue(name string, want queueStatus) {
	h.t.Helper()
	err := h.await(func() error {
		q, err := h.view.queues.Get(name)
		if err != nil {
			return err
		}
		got := queueStatus{
			Allocated: cpu(q.Status.Allocated), Deserved: cpu(q.Status.Deserved), Pending: cpu(q.Status.Pending),
			Groups: q.Status.Groups,
		}
		return difference(want, got)
	})
	if err != nil {
		h.t.Fatalf("queue %s: %v", name, err)
	}
}

func cpu(list corev1.ResourceList) string {
	if q := list.Cpu(); !q.IsZero() {
		return q.String()
	}
	return ""
}

// TestQueues is about what queues allow, and what they count.
func TestQueues(t *testing.T) {
	play(t, map[string]scenario{
		"a queue never holds more than its capability": {
			given: rows(threeNodes, queue("q", 1, atMost("6cpu")),
				gang("a", 4, pods(4, "1cpu"), in("q")),
				gang("b", 4, pods(4, "1cpu"), in("q"))),
			step: step{
				want: `
					a: Running Scheduled; 4 running
					b: Pending QueueFull; 4 waiting QueueFull`,
				prints: map[string]string{"b": "queue q is full: capability 6 cpu, allocated 4, needs 4"},
			},
			then: []step{{
				do: rows(noPods("a")),
				want: `
					a: Pending NotEnoughPods
					b: Running Scheduled; 4 running`,
			}},
		},
		"a raised capability counts at once": {
			given: rows(threeNodes, queue("q", 1, atMost("2cpu")), gang("a", 4, pods(4, "1cpu"), in("q"))),
			step:  step{want: `a: Pending ExceedsQueueCapability; 4 waiting ExceedsQueueCapability`},
			then: []step{{
				do:   rows(queue("q", 1, atMost("4cpu"))),
				want: `a: Running Scheduled; 4 running`,
			}},
		},
		"an idle cluster is lent beyond what a queue deserves": {
			given: rows(threeNodes, queue("q1", 1), queue("q9", 9), gang("a", 1, pods(12, "1cpu"), in("q1"))),
			step:  step{want: `a: Running Scheduled; 12 running`},
		},
		"a queue that is not reclaimable does not borrow": {
			given: rows(threeNodes,
				queue("mine", 1, func(q *v1alpha1.Queue) { q.Spec.Reclaimable = ptr.To(false) }),
				queue("theirs", 3),
				singles("mine", 12),
				gang("wide", 12, pods(12, "1cpu"), in("theirs"))), // fits an empty cluster only
			step: step{want: `
				mine: 9 Pending OverShare, 3 Running Scheduled; 3 running, 9 waiting OverShare
				wide: Pending NotEnoughResources; 12 waiting Unschedulable`},
		},
		"a deleted group still counts in its queue (S29)": {
			given: rows(threeNodes, queue("q", 1, atMost("4cpu")), gang("a", 4, pods(4, "1cpu"), in("q"))),
			step:  step{want: `a: Running Scheduled; 4 running`},
			then: []step{{
				do: rows(noGroup("a"), gang("b", 1, pods(1, "1cpu"), in("q"))),
				want: `
					a: 4 running
					b: Pending QueueFull; 1 waiting QueueFull`,
			}, {
				do:   rows(noPods("a")),
				want: `b: Running Scheduled; 1 running`,
			}},
		},
		"a relabelled pod still counts in its queue (S29)": {
			given: rows(threeNodes, queue("q", 1, atMost("4cpu")), gang("a", 4, pods(4, "1cpu"), in("q")),
				group("elsewhere", 1)),
			step: step{want: `
				a: Running Scheduled; 4 running
				elsewhere: Pending NotEnoughPods`},
			then: []step{{
				do: rows(regroup("a", "elsewhere"), gang("b", 1, pods(1, "1cpu"), in("q"))),
				want: `
					a: Running Scheduled; 4 running
					b: Pending QueueFull; 1 waiting QueueFull
					elsewhere: Pending NotEnoughPods`,
			}},
		},
		"while the default queue is missing, what needs it waits and says so": {
			given: rows(threeNodes, noQueue("default"), gang("a", 2, pods(2, "1cpu")), plain("bare", 1, "1cpu")),
			step: step{
				want: `
					a: Pending QueueNotFound; 2 waiting QueueNotFound
					bare: 1 waiting QueueNotFound`,
				prints: map[string]string{"a": `queue "default" does not exist`},
			},
			then: []step{{
				do: rows(queue("default", 1)),
				want: `
					a: Running Scheduled; 2 running
					bare: 1 running`,
			}},
		},
	})
}

// TestQueueStatus is about what a queue tells about itself.
func TestQueueStatus(t *testing.T) {
	h := newHarness(t, noControllers)
	h.do(threeNodes, queue("q", 1), gang("a", 8, pods(8, "1cpu"), in("q")), gang("b", 8, pods(8, "1cpu"), in("q")))
	h.start()
	h.awaitQueue("q", queueStatus{Allocated: "8", Deserved: "12", Pending: "8",
		Groups: v1alpha1.QueueGroups{Running: 1, Pending: 1}})
	h.do(noPods("a"), noGroup("a"))
	h.awaitQueue("q", queueStatus{Allocated: "8", Deserved: "8", Groups: v1alpha1.QueueGroups{Running: 1}})
	h.do(noPods("b"), noGroup("b"))
	h.awaitQueue("q", queueStatus{})
}

func difference[T any](want, got T) error {
	if diff := cmp.Diff(want, got); diff != "" {
		return diffError(diff)
	}
	return nil
}

type diffError string

func (e diffError) Error() string { return "(-want +got):\n" + string(e) }
