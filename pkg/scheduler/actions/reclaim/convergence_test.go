// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package reclaim_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// TestReclaimEndsAtWhatQueuesDeserve asserts what queues hold in the end if one requests what another has borrowed. After
// each cycle all binds succeed, and victims are deleted and created again. Each line has the numbers of decisions of a cycle
// and what queues hold after it.
func TestReclaimEndsAtWhatQueuesDeserve(t *testing.T) {
	cases := map[string]struct {
		given []Row
		want  []string // cycle by cycle
	}{
		"S21: a node with a taint that no pod tolerates does not count": {
			given: Given(Nodes(3, "n", "10cpu"), Node("tainted", "10cpu", Taint("dedicated=infra:NoSchedule")),
				Queue("g", 1), Queue("t", 1),
				Group("g/a", 1, Running(10, "1cpu", "n1"), Running(10, "1cpu", "n2"), Running(10, "1cpu", "n3")),
				Group("t/b", 1, Pending(30, "1cpu"))),
			want: []string{
				"evict g/a 1, pipeline t/b 1; g 29 cpu, t no resources", // first the gang of one
				"bind t/b 1, evict g/a 14, pipeline t/b 14; g 15 cpu, t 1 cpu",
				"bind t/b 14; g 15 cpu, t 15 cpu",
				"; g 15 cpu, t 15 cpu",
				"; g 15 cpu, t 15 cpu",
			},
		},
		"S22: a gang that can never fit does not reduce what others deserve": {
			given: Given(Node("n1", "10cpu"), Queue("g", 1), Queue("t", 1), Queue("u", 1),
				Group("g/a", 1, Running(10, "1cpu", "n1")),
				Group("t/b", 1, Pending(10, "1cpu")),
				Group("u/never", 20, Pending(20, "1cpu"))),
			want: []string{
				"evict g/a 1, pipeline t/b 1; g 9 cpu, t no resources, u no resources",
				"bind t/b 1, evict g/a 4, pipeline t/b 4; g 5 cpu, t 1 cpu, u no resources",
				"bind t/b 4; g 5 cpu, t 5 cpu, u no resources",
				"; g 5 cpu, t 5 cpu, u no resources",
				"; g 5 cpu, t 5 cpu, u no resources",
			},
		},
		"a queue that is not reclaimable keeps all except the guarantee of the other": {
			given: Given(Node("n1", "10cpu"), Queue("g", 1, NotReclaimable()), Queue("t", 1, Guarantee("3cpu")),
				Group("g/a", 1, Running(10, "1cpu", "n1")),
				Group("t/b", 1, Pending(10, "1cpu"))),
			want: []string{
				"evict g/a 1, pipeline t/b 1; g 9 cpu, t no resources",
				"bind t/b 1, evict g/a 2, pipeline t/b 2; g 7 cpu, t 1 cpu",
				"bind t/b 2; g 7 cpu, t 3 cpu",
				"; g 7 cpu, t 3 cpu",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := New(t, BuiltIn(t), tc.given, WithConfig(AllActions))
			got := make([]string, 0, len(tc.want))
			for range tc.want {
				decided := FormatCounts(CountDecisions(c.Cycle(), false))
				got = append(got, decided+"; "+holdings(c))
				c.ConfirmBinds()
				c.Start()
				FinishEvictionsAndRecreate(c)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("cycles (-want +got):\n%s", diff)
			}
		})
	}
}

func holdings(c *Scenario) string {
	var parts []string
	for _, queue := range c.Queues() {
		parts = append(parts, queue+" "+c.Held(queue))
	}
	return strings.Join(parts, ", ")
}

// TestNoBorrowingInCooldown asserts that a job that was evicted because its queue had borrowed does not borrow the same
// again (S20).
func TestNoBorrowingInCooldown(t *testing.T) {
	c := New(t, BuiltIn(t), Given(
		Node("n1", "10cpu"), Queue("g", 1), Queue("t", 1),
		Group("g/gang", 10, Running(10, "1cpu", "n1")),
		Group("t/single", 1, Pending(4, "1cpu")),
	), WithConfig(AllActions))
	evictions := 0
	for range 10 {
		evictions += strings.Count(c.Cycle(), "evict ")
		c.ConfirmBinds()
		c.Start()
		FinishEvictionsAndRecreate(c)
	}
	got := []string{fmt.Sprint(evictions), c.Held("g"), c.Held("t"), c.Waits()}
	want := []string{"10", "no resources", "4 cpu", "waits g/gang OverShare: evicted because queue g had borrowed resources that other queues deserve; " +
		"starts again only within what the queue deserves: deserved 6 cpu, allocated 0, needs 10"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	// Once the others request less, it borrows again.
	c.Succeed("t/single-0", "t/single-1", "t/single-2", "t/single-3")
	c.Cycle()
	if got := c.Held("g"); got != "10 cpu" {
		t.Errorf("after the others have ended g holds %s", got)
	}
}

// TestNoCooldownIfVotesAreSwitchedOff asserts that proportion records no reclaims that other plugins have permitted: the
// job that was evicted may borrow again.
func TestNoCooldownIfVotesAreSwitchedOff(t *testing.T) {
	for name, tc := range map[string]struct {
		proportion string
		want       string // in the explanation of the job that was evicted
	}{
		"proportion votes":         {"{name: proportion}", "OverShare"},
		"proportion does not vote": {"{name: proportion, enableReclaimable: false}", "NotEnoughResources"},
	} {
		t.Run(name, func(t *testing.T) {
			r := BuiltIn(t)
			if err := r.AddPlugin("permissive", framework.PluginSpec{New: newPermissive}); err != nil {
				t.Fatal(err)
			}
			c := New(t, r, Given(Node("n1", "10cpu"), Queue("g", 1), Queue("t", 1),
				Group("g/gang", 10, Running(10, "1cpu", "n1")),
				Group("t/single", 1, Pending(1, "1cpu")),
			), WithConfig(strings.Replace(AllActions, "{name: proportion}", tc.proportion+", {name: permissive}", 1)), WithoutConvergenceChecks())
			if evicted := strings.Count(c.Cycle(), "evict g/gang"); evicted != 10 {
				t.Fatalf("%d pods are evicted, want 10", evicted)
			}
			c.ConfirmBinds()
			FinishEvictionsAndRecreate(c)
			c.Cycle()
			if got := c.Waits(); !strings.HasPrefix(got, "waits g/gang "+tc.want+":") {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// permissive permits to reclaim from queue g.
type permissive struct{}

func newPermissive(*conf.Decoder, framework.Handle) (framework.Plugin, error) {
	return permissive{}, nil
}

func (permissive) Name() string { return "permissive" }

func (permissive) OnSessionOpen(ssn *framework.Session) {
	ssn.AddReclaimableFn("permissive", func(_ *api.Claim, unit api.Unit) api.Vote {
		if unit.Job.Queue.ID == "g" {
			return api.Permit
		}
		return api.Abstain
	})
}

func (permissive) OnSessionClose(*framework.Session) {}
