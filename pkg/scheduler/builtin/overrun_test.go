// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// planning is a policy with all actions and planned starts.
const planning = AllActions + `
starvationAfter: 0s
reservations: {depth: 1, margin: 0s, preemptionDelay: 5m}
`

// cyclesUntil runs the cycles that are due, for some time, and returns what they decide with the minutes that have passed
// since the first.
func cyclesUntil(c *Scenario, end time.Duration) string {
	var lines strings.Builder
	for begin := c.Since(); ; {
		for line := range strings.Lines(c.Cycle()) {
			fmt.Fprintf(&lines, "%d %s\n", int((c.Since() - begin).Round(time.Minute).Minutes()), strings.TrimSpace(line))
		}
		c.ConfirmBinds()
		before := c.Since()
		if c.WaitUntilDue(); c.Since() > end || c.Since() == before {
			return strings.TrimSpace(lines.String())
		}
	}
}

// TestOverrun: a gang is planned to start when a job ends that does not. It is evicted as its onOverrun says.
func TestOverrun(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		long []Part // of the job
		want string
	}{
		"Yield": {
			[]Part{Limit(10 * time.Minute)},
			"0 bind r/long-0 n1\n0 bind r/long-1 n1\n10 evict r/long-0 for q/gang\n10 evict r/long-1 for q/gang\n10 pipeline q/gang-0 n1",
		},
		"Evict": {
			[]Part{Limit(10 * time.Minute), OnOverrun(v1alpha1.OverrunEvict)},
			"0 bind r/long-0 n1\n0 bind r/long-1 n1\n10 evict r/long-0 for q/gang\n10 evict r/long-1 for q/gang\n10 pipeline q/gang-0 n1",
		},
		"Ignore": {
			[]Part{Limit(10 * time.Minute), OnOverrun(v1alpha1.OverrunIgnore)},
			"0 bind r/long-0 n1\n0 bind r/long-1 n1",
		},
		"no limit": {nil, "0 bind r/long-0 n1\n0 bind r/long-1 n1"},
		"it has a higher priority": {
			[]Part{Limit(10 * time.Minute), Priority(7)},
			"0 bind r/long-0 n1\n0 bind r/long-1 n1\n10 evict r/long-0 for q/gang\n10 evict r/long-1 for q/gang\n10 pipeline q/gang-0 n1",
		},
		"critical pods": {
			[]Part{Limit(10 * time.Minute), SystemCritical()},
			"0 bind r/long-0 n1\n0 bind r/long-1 n1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := New(t, BuiltIn(t), Given(Node("n1", "4cpu"), Queue("q", 1), Queue("r", 1, NotReclaimable()),
				Group("r/long", 2, append(tc.long, Pending(2, "2cpu"))...)), WithConfig(planning))
			first := c.Cycle()
			c.ConfirmBinds()
			c.Add(Group("q/gang", 1, Pending(1, "3cpu")))
			got := "0 " + strings.ReplaceAll(strings.TrimSpace(first), "\n", "\n0 ") + "\n" + cyclesUntil(c, 12*time.Minute)
			CompareTranscripts(t, tc.want, strings.TrimSpace(got))
		})
	}
}

// TestEvictedAtTheLimit: nothing waits, and a job is evicted as a whole when its time is over, but not while a budget or the
// API server refuses it; and again only after it has run for its limit again.
func TestEvictedAtTheLimit(t *testing.T) {
	t.Parallel()
	c := New(t, BuiltIn(t), Given(Node("n1", "4cpu"), Queue("q", 1),
		Group("q/job", 2, Pending(3, "1cpu"), Limit(10*time.Minute), OnOverrun(v1alpha1.OverrunEvict))))
	CompareTranscripts(t, "0 bind q/job-0 n1\n0 bind q/job-1 n1\n0 bind q/job-2 n1\n"+
		"10 evict q/job-0 for q/job\n10 evict q/job-1 for q/job\n10 evict q/job-2 for q/job", cyclesUntil(c, 11*time.Minute))
	c.FailEvictions("q/job-0", "q/job-1", "q/job-2")
	c.BlockEviction("q/job-1")
	if got := c.Cycle(); got != "" {
		t.Errorf("part of it is evicted although one pod must stay:\n%s", got)
	}
	c.AllowEviction("q/job-1")
	CompareTranscripts(t, "evict q/job-0 for q/job\nevict q/job-1 for q/job\nevict q/job-2 for q/job", c.Cycle())
	c.FinishEvictions()
	c.CreateAgain("q/job-0", "q/job-1", "q/job-2")
	CompareTranscripts(t, "0 bind q/job-0 n1\n0 bind q/job-1 n1\n0 bind q/job-2 n1\n"+
		"10 evict q/job-0 for q/job\n10 evict q/job-1 for q/job\n10 evict q/job-2 for q/job", cyclesUntil(c, 25*time.Minute))
}

// TestNothingIsEvictedForWhatEndsAnyway is TI12: what the gang waits for is free in two minutes, and in ten.
func TestNothingIsEvictedForWhatEndsAnyway(t *testing.T) {
	t.Parallel()
	for minutes, evicts := range map[time.Duration]bool{2: false, 10: true} {
		c := New(t, BuiltIn(t), Given(Nodes(4, "n", "1cpu"), Queue("q", 1),
			Group("q/low", 4, Pending(4, "1cpu"), Limit(minutes*time.Minute))), WithConfig(planning))
		c.Cycle()
		c.ConfirmBinds()
		c.Add(Group("q/gang", 4, Pending(4, "1cpu", Priority(9))))
		if got := c.Cycle(); strings.Contains(got, "evict") != evicts {
			t.Errorf("%d minutes before the end:\n%s", minutes, got)
		}
		if evicts {
			continue
		}
		c.Wait(minutes * time.Minute)
		c.Delete("q/low-0", "q/low-1", "q/low-2", "q/low-3")
		CompareTranscripts(t, "bind q/gang-0 n1\nbind q/gang-1 n2\nbind q/gang-2 n3\nbind q/gang-3 n4", c.Cycle())
	}
}

// TestEvictionsForACap: the nodes have resources for a gang, and the cap of its queue has not, so that waiting for a start would
// not help.
func TestEvictionsForACap(t *testing.T) {
	t.Parallel()
	c := New(t, BuiltIn(t), Given(Node("n", "8cpu"), Queue("q", 1, Capability("4cpu")),
		Group("q/low", 1, Pending(4, "1cpu"), Limit(time.Hour))), WithConfig(planning))
	c.Cycle()
	c.ConfirmBinds()
	c.Add(Group("q/gang", 2, Pending(2, "1cpu", Priority(9))))
	if got := c.Cycle(); strings.Count(got, "evict q/low") != 2 {
		t.Errorf("the gang evicts nothing:\n%s\n%s", got, c.Waits())
	}
}

// TestOverrunsEnd lets random jobs with limits never end, and come back whenever they are evicted. Each is evicted at most
// once in the time of its limit, whatever the others do.
func TestOverrunsEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, limits := Given(Nodes(2, "n", "4cpu"), Queue("q", 1), Queue("r", 2)), map[string]time.Duration{}
		for i := range rapid.IntRange(1, 6).Draw(t, "groups") {
			name := fmt.Sprintf("%s/g%d", rapid.SampledFrom([]string{"q", "r"}).Draw(t, "queue"), i)
			limits[name] = time.Duration(rapid.IntRange(1, 10).Draw(t, "limit")) * time.Minute
			size := rapid.IntRange(1, 3).Draw(t, "pods")
			rows = append(rows, Group(name, int32(size), Limit(limits[name]),
				OnOverrun(rapid.SampledFrom([]v1alpha1.OverrunPolicy{v1alpha1.OverrunYield, v1alpha1.OverrunEvict}).Draw(t, "overrun")),
				Pending(size, rapid.SampledFrom([]string{"1cpu", "2cpu", "3cpu"}).Draw(t, "request"),
					Priority(int32(rapid.IntRange(0, 1).Draw(t, "priority"))))))
		}
		// Preempt and reclaim evict for other reasons.
		policy := strings.Replace(planning, "reclaim, allocate, backfill, preempt", "allocate, backfill", 1)
		c := New(t, BuiltIn(t), rows, WithConfig(policy))
		started, evictions := map[string]time.Duration{}, 0
		for range 40 {
			for line := range strings.Lines(c.Cycle()) {
				fields := strings.Fields(line)
				pod := fields[1]
				name := pod[:strings.LastIndex(pod, "-")]
				switch fields[0] {
				case "bind":
					started[pod] = c.Since()
				case "evict":
					evictions++
					if ran := c.Since() - started[pod]; ran < limits[name] {
						t.Fatalf("%s is evicted after %s, before its limit of %s", pod, ran, limits[name])
					}
				}
			}
			c.ConfirmBinds()
			evicted := c.EvictionsInFlight()
			c.FinishEvictions()
			c.CreateAgain(evicted...)
			c.WaitUntilDue()
		}
	})
}
