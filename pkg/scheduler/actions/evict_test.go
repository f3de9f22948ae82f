package actions_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// allFour is the configuration of the cases with evictions.
const allFour = `
actions: "reclaim, allocate, backfill, preempt"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
`

// What one cycle decides that may evict.
func TestEvictions(t *testing.T) {
	cases := map[string]struct {
		given []Row
		want  string
	}{
		"S6: one surplus pod goes for one cpu": {
			given: Given(Node("n1", "3cpu"), Queue("q", 1),
				Group("q/low", 2, Running(3, "1cpu", "n1", Priority(1))),
				Group("q/high", 1, Pending(1, "1cpu", Priority(9)))),
			want: `evict q/low-2 for q/high
			       pipeline q/high-0 n1`,
		},
		"S6: for two cpus the whole gang goes": {
			given: Given(Node("n1", "3cpu"), Queue("q", 1),
				Group("q/low", 2, Running(3, "1cpu", "n1", Priority(1))),
				Group("q/high", 1, Pending(1, "2cpu", Priority(9)))),
			want: `evict q/low-0 for q/high
			       evict q/low-1 for q/high
			       evict q/low-2 for q/high
			       pipeline q/high-0 n1`,
		},
		"S6: for three cpus too": {
			given: Given(Node("n1", "3cpu"), Queue("q", 1),
				Group("q/low", 2, Running(3, "1cpu", "n1", Priority(1))),
				Group("q/high", 3, Pending(3, "1cpu", Priority(9)))),
			want: `evict q/low-0 for q/high
			       evict q/low-1 for q/high
			       evict q/low-2 for q/high
			       pipeline q/high-0 n1
			       pipeline q/high-1 n1
			       pipeline q/high-2 n1`,
		},
		"S7: two idle and two of two that could go, for a task of three": {
			given: Given(Node("n1", "4cpu"), Queue("q", 1),
				Group("q/a", 1, Running(1, "1cpu", "n1", Priority(1))),
				Group("q/b", 1, Running(1, "1cpu", "n1", Priority(1))),
				Group("q/high", 1, Pending(1, "3cpu", Priority(9)))),
			want: `evict q/b-0 for q/high
			       pipeline q/high-0 n1`,
		},
		"S8: idle room elsewhere": {
			given: Given(Node("n1", "1cpu"), Node("n2", "1cpu"), Queue("q", 1),
				Group("q/low", 1, Running(1, "1cpu", "n1", Priority(1))),
				Group("q/high", 1, Pending(1, "1cpu", Priority(9)))),
			want: `bind q/high-0 n2`,
		},
		"S8: victims can never cover one dimension": {
			given: Given(Node("n1", "4cpu 1gpu"), Queue("q", 1),
				Group("q/low", 1, Running(4, "1cpu", "n1", Priority(1))),
				Group("q/high", 1, Pending(1, "1cpu 2gpu", Priority(9)))),
			want: ``,
		},
		"S9: only those above what they deserve lose": {
			given: Given(Node("n1", "12cpu"), Queue("q1", 1), Queue("q2", 1), Queue("q3", 1),
				Group("q1/a", 1, Running(6, "1cpu", "n1")),
				Group("q2/b", 1, Running(4, "1cpu", "n1")),
				Group("q3/c", 1, Running(2, "1cpu", "n1")),
				Group("q3/d", 2, Pending(2, "1cpu"))),
			want: `evict q1/a-4 for q3/d
			       evict q1/a-5 for q3/d
			       pipeline q3/d-0 n1
			       pipeline q3/d-1 n1`,
		},
		"S16: equal gangs that cannot both run": {
			given: Given(Node("n1", "4cpu"), Queue("q", 1),
				Group("q/a", 4, Running(4, "1cpu", "n1")),
				Group("q/b", 4, Pending(4, "1cpu"))),
			want: ``,
		},
		"S20: a gang that borrows gives back what others deserve": {
			given: Given(Node("n1", "10cpu"), Queue("g", 1), Queue("t", 1),
				Group("g/gang", 10, Running(10, "1cpu", "n1")),
				Group("t/one", 1, Pending(1, "1cpu"))),
			want: `evict g/gang-0 for t/one
			       evict g/gang-1 for t/one
			       evict g/gang-2 for t/one
			       evict g/gang-3 for t/one
			       evict g/gang-4 for t/one
			       evict g/gang-5 for t/one
			       evict g/gang-6 for t/one
			       evict g/gang-7 for t/one
			       evict g/gang-8 for t/one
			       evict g/gang-9 for t/one
			       pipeline t/one-0 n1`,
		},
		"who has to go itself does not evict for what is left of its gang": {
			given: Given(Node("n1", "4Gi 2gpu"), Queue("a", 1), Queue("b", 1), Queue("c", 1),
				Group("a/gang", 2, Running(2, "2Gi", "n1"), Pending(1, "1gpu")),
				Group("b/one", 1, Pending(1, "2Gi")),
				Group("c/gpus", 1, Running(1, "2gpu", "n1"))),
			want: `evict a/gang-0 for b/one
			       evict a/gang-1 for b/one
			       pipeline b/one-0 n1`,
		},
		"S19: what fits on idle room evicts nobody, in whatever dimension shares are equal": {
			given: Given(Node("n1", "10cpu 10Gi"), Queue("q", 1),
				Group("q/a", 1, Running(1, "1cpu 5Gi", "n1"), Pending(1, "2cpu")),
				Group("q/b", 1, Running(1, "1cpu 5Gi", "n1"), Pending(1, "2cpu")),
				Group("q/c", 1, Running(6, "1cpu", "n1"))),
			want: `bind q/a-1 n1`,
		},
		"S23: who holds what is short and more than it deserves gives": {
			given: Given(Node("n1", "24cpu 6gpu"), Queue("g", 1), Queue("z", 1), Queue("t", 1),
				Group("g/cpus", 1, Running(17, "1cpu", "n1"), Running(1, "1cpu 1gpu", "n1")),
				Group("z/gpus", 1, Running(4, "0.1cpu 1gpu", "n1")),
				Group("t/one", 1, Running(1, "1cpu 1gpu", "n1"), Pending(1, "1cpu 1gpu"))),
			want: `evict z/gpus-3 for t/one
			       pipeline t/one-1 n1`,
		},
		"nobody gives below its guarantee": {
			given: Given(Node("n1", "4cpu"), Queue("g", 1, Guarantee("4cpu")), Queue("t", 1),
				Group("g/a", 1, Running(4, "1cpu", "n1")),
				Group("t/one", 1, Pending(1, "1cpu"))),
			want: ``,
		},
		"nobody gives who is not reclaimable": {
			given: Given(Node("n1", "4cpu"), Queue("g", 1, NotReclaimable()), Queue("t", 1),
				Group("g/a", 1, Running(4, "1cpu", "n1")),
				Group("t/one", 1, Pending(1, "1cpu"))),
			want: ``,
		},
		"pods without a group do not push each other out": {
			given: Given(Node("n1", "2cpu"), Queue("default", 1),
				ReplicaSet("a", Running(2, "1cpu", "n1")),
				Group("default/b", 1, Pending(1, "1cpu"))),
			want: ``,
		},
		"preemptionPolicy Never": {
			given: Given(Node("n1", "2cpu"), Queue("q", 1),
				Group("q/low", 1, Running(2, "1cpu", "n1", Priority(1))),
				Group("q/high", 1, Pending(1, "1cpu", Priority(9), Mutate(func(p *v1.Pod) {
					never := v1.PreemptNever
					p.Spec.PreemptionPolicy = &never
				})))),
			want: ``,
		},
		"a gang that is on its way is left alone": {
			given: Given(Node("n1", "2cpu"), Node("n2", "0.5cpu"), Queue("q", 1),
				Group("q/low", 1, Running(1, "1cpu", "n1", Priority(1)), Pending(1, "0.5cpu", Priority(1))),
				Group("q/high", 1, Pending(1, "2cpu", Priority(9)))),
			want: `bind q/low-1 n1`,
		},
		"a pod with a host port that a victim holds": {
			given: Given(Node("n1", "2cpu"), Queue("q", 1),
				Group("q/low", 1, Running(1, "2cpu", "n1", Priority(1), HostPort(80))),
				Group("q/high", 1, Pending(1, "1cpu", Priority(9), HostPort(80)))),
			want: `evict q/low-0 for q/high
			       pipeline q/high-0 n1`,
		},
		"a disruption budget lets one go, and another pod instead of the second": {
			given: Given(Node("n1", "4cpu"), Queue("q", 1), Budget("b", 1, "app", "x"),
				Group("q/a", 1, Running(3, "1cpu", "n1", Priority(1), Label("app", "x"))),
				Group("q/b", 1, Running(1, "1cpu", "n1", Priority(1))),
				Group("q/high", 2, Pending(2, "1cpu", Priority(9)))),
			want: `evict q/a-2 for q/high
			       evict q/b-0 for q/high
			       pipeline q/high-0 n1
			       pipeline q/high-1 n1`,
		},
		"a gang under a disruption budget for one stays whole": {
			given: Given(Node("n1", "2cpu"), Queue("q", 1), Budget("b", 1, "app", "x"),
				Group("q/a", 2, Running(2, "1cpu", "n1", Priority(1), Label("app", "x"))),
				Group("q/high", 1, Pending(1, "1cpu", Priority(9)))),
			want: ``,
		},
		"pods under two budgets never go": {
			given: Given(Node("n1", "1cpu"), Queue("q", 1), Budget("b", 9, "app", "x"), Budget("c", 9, "app", "x"),
				Group("q/a", 1, Running(1, "1cpu", "n1", Priority(1), Label("app", "x"))),
				Group("q/high", 1, Pending(1, "1cpu", Priority(9)))),
			want: ``,
		},
		"a host port is in the way, and nothing else": {
			given: Given(Node("n1", "4cpu"), Queue("q", 1),
				Group("q/a", 1, Running(1, "1cpu", "n1", Priority(1))),
				Group("q/b", 1, Running(1, "1cpu", "n1", Priority(1), HostPort(80))),
				Group("q/high", 1, Pending(1, "1cpu", Priority(9), HostPort(80)))),
			want: `evict q/b-0 for q/high
			       pipeline q/high-0 n1`,
		},
		"a pod that repels the taker is in the way, and nothing else": {
			given: Given(Node("n1", "4cpu", Label("kubernetes.io/hostname", "n1")), Queue("q", 1),
				Group("q/a", 1, Running(1, "1cpu", "n1", Priority(1))),
				Group("q/b", 1, Running(1, "1cpu", "n1", Priority(1), Away("kubernetes.io/hostname", "app=x"))),
				Group("q/high", 1, Pending(1, "1cpu", Priority(9), Label("app", "x")))),
			want: `evict q/b-0 for q/high
			       pipeline q/high-0 n1`,
		},
		"the queue's capability is in the way, and not the nodes": {
			given: Given(Node("n1", "2cpu"), Node("n2", "2cpu"), Queue("q", 1, Capability("2cpu")),
				Group("q/low", 1, Running(2, "1cpu", "n1", Priority(1))),
				Group("q/high", 1, Pending(1, "1cpu", Priority(9)))),
			want: `evict q/low-1 for q/high
			       pipeline q/high-0 n2`,
		},
		"a gang that must stay together takes the domain where most is free": {
			given: Given(Node("n1", "2cpu", Label("rack", "a")), Node("n2", "2cpu", Label("rack", "a")),
				Node("n3", "2cpu", Label("rack", "b")), Node("n4", "2cpu", Label("rack", "b")), Queue("q", 1),
				Group("q/a", 1, Running(2, "1cpu", "n1", Priority(1)), Running(2, "1cpu", "n2", Priority(1))),
				Group("q/b", 1, Running(2, "1cpu", "n3", Priority(1)), Running(1, "1cpu", "n4", Priority(1))),
				Group("q/high", 3, Pending(3, "1cpu", Priority(9), Label("app", "x"), Near("rack", "app=x")))),
			want: `evict q/b-1 for q/high
			       evict q/b-2 for q/high
			       hold q/high-0 n4
			       pipeline q/high-1 n4
			       pipeline q/high-2 n3`,
		},
		"surplus of the same priority goes before a gang is broken": {
			given: Given(Node("n1", "1cpu"), Node("n2", "2cpu"), Queue("q", 1),
				Group("q/young", 1, Running(1, "1cpu", "n1", Priority(1))),
				Group("q/old", 1, Running(2, "1cpu", "n2", Priority(1))),
				Group("q/high", 1, Pending(1, "1cpu", Priority(9)))),
			want: `evict q/old-1 for q/high
			       pipeline q/high-0 n2`,
		},
		"a gang of low priority goes before surplus of higher": {
			given: Given(Node("n1", "1cpu"), Node("n2", "2cpu"), Queue("q", 1),
				Group("q/low", 1, Running(1, "1cpu", "n1", Priority(1))),
				Group("q/mid", 1, Running(2, "1cpu", "n2", Priority(2))),
				Group("q/high", 1, Pending(1, "1cpu", Priority(9)))),
			want: `evict q/low-0 for q/high
			       pipeline q/high-0 n1`,
		},
		"once surplus of higher priority must go, no gang of low priority has to": {
			given: Given(Node("n1", "1cpu"), Node("n2", "3cpu"), Queue("q", 1),
				Group("q/low", 1, Running(1, "1cpu", "n1", Priority(1))),
				Group("q/mid", 1, Running(3, "1cpu", "n2", Priority(2))),
				Group("q/high", 2, Pending(2, "1cpu", Priority(9)))),
			want: `evict q/mid-1 for q/high
			       evict q/mid-2 for q/high
			       pipeline q/high-0 n2
			       pipeline q/high-1 n2`,
		},
		"a job's own surplus of low priority goes before other jobs of higher priority than that": {
			given: Given(Node("n1", "4cpu"), Queue("q", 1),
				Group("q/job", 1, Running(2, "1cpu", "n1", Priority(1)), Pending(1, "1cpu", Priority(9))),
				Group("q/other", 1, Running(2, "1cpu", "n1", Priority(5)))),
			want: `evict q/job-1 for q/job
			       pipeline q/job-2 n1`,
		},
		"a job's own surplus of low priority goes for its master": {
			given: Given(Node("n1", "2cpu"), Queue("q", 1),
				Group("q/job", 1, Running(2, "1cpu", "n1", Priority(1)), Pending(1, "1cpu", Priority(9)))),
			want: `evict q/job-1 for q/job
			       pipeline q/job-2 n1`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Run(t, builtIn(t), tc.given, WithConfig(allFour))
			if diff := cmp.Diff(tidy(tc.want), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Debts stand as long as nothing changes for good; that nobody borrows meanwhile is asserted unasked.
func TestDebtsStand(t *testing.T) {
	cases := map[string][]Row{
		"from the eviction on, for pods that wait in the same session too": {
			Node("n1", "6cpu"), Queue("g", 1), Queue("t", 1),
			Group("g/big", 1, Running(1, "6cpu", "n1"), Pending(1, "4cpu")),
			Group("t/one", 1, Pending(1, "1cpu")),
			Group("t/huge", 1, Pending(1, "6cpu")),
		},
		"while pods of the queue that took are being evicted, which will ask again": {
			Node("n1", "6cpu 6Gi"), Queue("t", 1), Queue("g", 1),
			Group("g/gang", 4, Running(1, "3Gi", "n1", Priority(2)), Running(1, "3Gi", "n1"), Pending(4, "1cpu")),
			Group("t/one", 1, Pending(1, "1cpu 1Gi", Priority(2))),
			Group("t/two", 1, Pending(2, "3cpu", Priority(1))),
		},
		"while pods of that queue have lost their room to others of it": {
			Node("n1", "4cpu 4Gi"), Queue("g", 1), Queue("t", 1),
			Group("g/memory", 1, Running(1, "3Gi", "n1")),
			Group("t/three", 1, Running(1, "2cpu 1Gi", "n1"), Pending(2, "2cpu 1Gi")),
			Group("t/high", 1, Pending(1, "3cpu", Priority(1))),
		},
	}
	for name, given := range cases {
		t.Run(name, func(t *testing.T) {
			if err := (course{grace: 1, back: true}).run(New(t, builtIn(t), given, WithConfig(allFour))); err != nil {
				t.Error(err)
			}
		})
	}
}

// S20: who had to give back what it had borrowed does not borrow the same again.
func TestDebtorsDoNotBorrowAgain(t *testing.T) {
	c := New(t, builtIn(t), Given(
		Node("n1", "10cpu"), Queue("g", 1), Queue("t", 1),
		Group("g/gang", 10, Running(10, "1cpu", "n1")),
		Group("t/single", 1, Pending(4, "1cpu")),
	), WithConfig(allFour))
	evictions := 0
	for range 10 {
		evictions += strings.Count(c.Cycle(), "evict ")
		c.ConfirmBinds()
		c.Start()
		for _, name := range c.EvictionsInFlight() {
			c.FinishEvictions(name)
			c.CreateAgain(name)
		}
	}
	got := []string{fmt.Sprint(evictions), c.Held("g"), c.Held("t"), c.Waits()}
	want := []string{"10", "no resources", "4 cpu", "waits g/gang OverShare: evicted because queue g had borrowed resources that other queues deserve; " +
		"starts again only within the deserved resources of its queue"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	// Once the others ask for less, it borrows again.
	c.Succeed("t/single-0", "t/single-1", "t/single-2", "t/single-3")
	c.Cycle()
	if got := c.Held("g"); got != "10 cpu" {
		t.Errorf("after the others have ended g holds %s", got)
	}
}
