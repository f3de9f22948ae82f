// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// TestADefaultRunTimeAppears is TI5: running pods do not declare how long they run, so the start of a gang is not known, and
// jobs with a limit must not use what is reserved for it. When the queue gets a default, the next session plans the start, and
// starts as many of these jobs as fit.
func TestADefaultRunTimeAppears(t *testing.T) {
	t.Parallel()
	c := New(t, BuiltIn(t), Given(Nodes(8, "n", "8cpu"), Queue("q", 1),
		Group("q/old", 8, Pending(8, "4cpu", Label("app", "old"), Away(v1.LabelHostname, "app=old")))), WithConfig(planning))
	c.Cycle()
	c.ConfirmBinds()
	c.Start()
	c.Add(Group("q/gang", 8, Pending(8, "8cpu")))
	for i := range 20 {
		c.Add(Group(fmt.Sprintf("q/short-%d", i), 1, Pending(1, "2cpu"), Limit(30*time.Minute)))
	}
	if got := c.Cycle(); got != "" {
		t.Errorf("something starts on what is reserved:\n%s", got)
	}
	if got := waitsOf(c, "q/gang"); strings.Contains(got, "planned to start") || !strings.Contains(got, "no start time: 8 pods there declare no run time") {
		t.Errorf("the start of the gang is not known: %s", got)
	}
	c.EditQueue("q", func(q *v1alpha1.Queue) { ExecutionTime(time.Hour, 0)(c, q) })
	if got := strings.Count(c.Cycle(), "bind q/short"); got != 16 {
		t.Errorf("%d short pods start, want 16", got)
	}
	if got := waitsOf(c, "q/gang"); !strings.Contains(got, "planned to start at 2026-01-01T01:01:00Z on 8 nodes") {
		t.Errorf("the start of the gang: %s", got)
	}
}

// waitsOf returns why a job waits.
func waitsOf(c *Scenario, name string) string {
	for line := range strings.Lines(c.Waits()) {
		if strings.HasPrefix(line, "waits "+name+" ") {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// TestANodeOfAPlannedStartIsLost is TI10: the gang gets other nodes and a later start, and its message says why. Other nodes
// make no difference.
func TestANodeOfAPlannedStartIsLost(t *testing.T) {
	t.Parallel()
	const early, late = "planned to start at 2026-01-01T00:21:00Z on 3 nodes", "planned to start at 2026-01-01T01:01:00Z on 3 nodes"
	for name, tc := range map[string]struct {
		lose func(*Scenario)
		want string
	}{
		"nothing is lost":         {func(*Scenario) {}, early},
		"it is deleted":           {func(c *Scenario) { c.DeleteNode("n3") }, late + "; later than before: node n3 is gone"},
		"it is not ready":         {func(c *Scenario) { c.EditNode("n3", notReady) }, late + "; later than before: node n3 is not ready"},
		"it is cordoned":          {func(c *Scenario) { c.EditNode("n3", cordon) }, late + "; later than before: node n3 is cordoned"},
		"it becomes unavailable":  {func(c *Scenario) { c.EditNode("n3", unavailableFrom(25*time.Minute)) }, late + "; later than before: node n3 becomes unavailable before its pods are over"},
		"it is tainted":           {func(c *Scenario) { c.EditNode("n3", tainted) }, late + "; later than before: node n3 does not suit its pods any more"},
		"another node is deleted": {func(c *Scenario) { c.DeleteNode("n4") }, early},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := New(t, BuiltIn(t), Given(Nodes(4, "n", "4cpu"), Queue("q", 1)), WithConfig(planning))
			for i, minutes := range []time.Duration{10, 10, 20, 60} {
				node := []string{"n1", "n2", "n3", "n4"}[i]
				c.Add(Group("q/old"+node, 1, Pending(1, "4cpu", RequireNode(node)), Limit(minutes*time.Minute)))
			}
			c.Cycle()
			c.ConfirmBinds()
			c.Start()
			c.Add(Group("q/gang", 3, Pending(3, "4cpu"), Limit(10*time.Minute)))
			c.Cycle()
			if got := waitsOf(c, "q/gang"); !strings.Contains(got, early) {
				t.Fatalf("before: %s", got)
			}
			tc.lose(c)
			for range 2 {
				c.Cycle()
				got := strings.Replace(waitsOf(c, "q/gang"), ", by the run times that running jobs declare", "", 1)
				if !strings.HasSuffix(got, "; "+tc.want) {
					t.Errorf("got %q, want %q", got, tc.want)
				}
			}
		})
	}
}

// TestStartsAfterTheWindow: nothing is reserved for a gang whose start is further ahead than the window, also if it waits for
// long. Once the start is within the window, it is planned.
func TestStartsAfterTheWindow(t *testing.T) {
	t.Parallel()
	for _, starvationAfter := range []string{"0s", "5m"} {
		t.Run("starvationAfter "+starvationAfter, func(t *testing.T) {
			t.Parallel()
			policy := strings.NewReplacer("depth: 1", "depth: 1, window: 1h", "starvationAfter: 0s", "starvationAfter: "+starvationAfter).Replace(planning)
			c := New(t, BuiltIn(t), Given(Node("n1", "4cpu"), Queue("q", 1),
				Group("q/old", 1, Pending(1, "2cpu"), Limit(3*time.Hour))), WithConfig(policy))
			c.Cycle()
			c.ConfirmBinds()
			c.Start()
			c.Add(Group("q/gang", 2, Pending(2, "2cpu"), Limit(time.Hour)))
			c.Cycle()
			const far = "; no start time: it would be more than 1h0m0s ahead (reservations.window), so no resources are reserved"
			for _, at := range []time.Duration{time.Minute, 10 * time.Minute} {
				c.Wait(at - c.Since())
				name := fmt.Sprintf("q/at-%d", int(at.Minutes()))
				c.Add(Group(name, 1, Pending(1, "1cpu"))) // its end is not known
				CompareTranscripts(t, "bind "+name+"-0 n1", c.Cycle())
				c.ConfirmBinds()
				if got := waitsOf(c, "q/gang"); !strings.HasSuffix(got, far) {
					t.Errorf("after %s: %s", c.Since(), got)
				}
				c.Delete(name + "-0")
			}
			for range 3 {
				c.Cycle()
			}
			for range 10 {
				if c.WaitUntilDue(); c.Since() >= 2*time.Hour {
					break
				}
				c.Cycle()
			}
			if got := c.Since(); got < 2*time.Hour || got > 2*time.Hour+time.Minute {
				t.Errorf("the next session is due after %s, want 2h", got)
			}
			c.Cycle()
			c.Add(Group("q/late", 1, Pending(1, "1cpu")))
			CompareTranscripts(t, "", c.Cycle())
			if got := waitsOf(c, "q/gang"); !strings.Contains(got, "; planned to start at 2026-01-01T03:01:00Z on 1 node") {
				t.Errorf("after %s: %s", c.Since(), got)
			}
		})
	}
}

// TestOnlyTheFirstQueueReserves: a gang of a queue that is next has a planned start. So nothing is reserved for a gang of a
// queue above its share, however long it waits.
func TestOnlyTheFirstQueueReserves(t *testing.T) {
	t.Parallel()
	c := New(t, BuiltIn(t), Given(Nodes(2, "n", "4cpu"), Queue("next", 3), Queue("above", 1),
		Group("next/old", 1, Pending(1, "3cpu", RequireNode("n1")), Limit(time.Hour)),
		Group("above/endless", 1, Pending(1, "3cpu", RequireNode("n2")))),
		WithConfig(strings.Replace(planning, "starvationAfter: 0s", "starvationAfter: 1m", 1)))
	c.Cycle()
	c.ConfirmBinds()
	c.Start()
	c.Add(Group("next/gang", 1, Pending(1, "4cpu", RequireNode("n1"))), Group("above/starving", 1, Pending(1, "4cpu", RequireNode("n2"))))
	for range 3 {
		c.Cycle()
		if got := waitsOf(c, "next/gang"); !strings.Contains(got, "planned to start") {
			t.Errorf("after %s: %s", c.Since(), got)
		}
		if got := waitsOf(c, "above/starving"); got == "" || strings.Contains(got, "reserved") {
			t.Errorf("after %s: %q", c.Since(), got)
		}
		c.Wait(time.Minute)
	}
}

func notReady(n *v1.Node) {
	n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionFalse}}
}

func cordon(n *v1.Node) { n.Spec.Unschedulable = true }

func tainted(n *v1.Node) {
	n.Spec.Taints = []v1.Taint{{Key: "some", Value: "taint", Effect: v1.TaintEffectNoSchedule}}
}

// unavailableFrom announces when a node becomes unavailable, after the creation of the first object.
func unavailableFrom(d time.Duration) func(*v1.Node) {
	return func(n *v1.Node) {
		n.Annotations = map[string]string{v1alpha1.AnnotationUnavailableFrom: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(d).Format(time.RFC3339)}
	}
}

// TestPlannedStartsBecomeEarlier: the start of a gang of three is planned for the time at which the third of four nodes
// becomes free. It becomes earlier in the session after something that frees resources, and with nothing else, also if it was
// after the window.
func TestPlannedStartsBecomeEarlier(t *testing.T) {
	t.Parallel()
	const early, late = "2026-01-01T00:11:00Z", "2026-01-01T01:01:00Z"
	for name, tc := range map[string]struct {
		frees func(*Scenario)
		want  string
	}{
		"nothing":                           {func(*Scenario) {}, late},
		"a pod ends that is not in the way": {func(c *Scenario) { c.Delete("q/other-0") }, late},
		"a pod ends before its limit":       {func(c *Scenario) { c.Delete("q/old3-0") }, early},
		"a node is added":                   {func(c *Scenario) { c.Add(Node("n7", "4cpu")) }, early},
		"a node is uncordoned":              {func(c *Scenario) { c.EditNode("n5", func(n *v1.Node) { n.Spec.Unschedulable = false }) }, early},
		"a node remains available":          {func(c *Scenario) { c.EditNode("n6", func(n *v1.Node) { n.Annotations = nil }) }, early},
		"a gang before it is gone":          {func(c *Scenario) { c.Delete("q/first-0") }, early},
	} {
		for window, before := range map[string]string{
			"2h":  "planned to start at " + late,
			"30m": "no start time: it would be more than 30m0s ahead",
		} {
			want := "planned to start at " + tc.want
			if tc.want == late {
				want = before
			}
			t.Run(name+", window "+window, func(t *testing.T) {
				t.Parallel()
				c := gangBehindThree(t, window)
				if got := waitsOf(c, "q/gang"); !strings.Contains(got, before) {
					t.Fatalf("before: %s", got)
				}
				tc.frees(c)
				for range 2 {
					c.Cycle()
					if got := waitsOf(c, "q/gang"); !strings.Contains(got, want) {
						t.Errorf("got %q, want %s", got, want)
					}
				}
			})
		}
	}
}

// gangBehindThree returns the cluster of TestPlannedStartsBecomeEarlier.
func gangBehindThree(t *testing.T, window string) *Scenario {
	t.Helper()
	c := New(t, BuiltIn(t), Given(Nodes(6, "n", "4cpu"), Node("small", "1cpu"), Queue("q", 1)),
		WithConfig(strings.Replace(planning, "depth: 1", "depth: 2, window: "+window, 1)))
	c.EditNode("n5", cordon)
	c.EditNode("n6", unavailableFrom(15*time.Minute))
	c.Add(Group("q/other", 1, Pending(1, "1cpu", RequireNode("small")), Limit(2*time.Hour)))
	for i, minutes := range []time.Duration{10, 10, 60, 10} {
		c.Add(Group(fmt.Sprintf("q/old%d", i+1), 1, Pending(1, "4cpu", RequireNode(fmt.Sprintf("n%d", i+1))), Limit(minutes*time.Minute)))
	}
	c.Cycle()
	c.ConfirmBinds()
	c.Start()
	c.Add(Group("q/first", 1, Pending(1, "4cpu", RequireNode("n4")), Limit(50*time.Minute)))
	c.Cycle()
	c.Add(Group("q/gang", 3, Pending(3, "4cpu"), Limit(10*time.Minute)))
	c.Cycle()
	for range 3 { // it looks for an earlier start once
		c.Wait(time.Second)
		c.Cycle()
	}
	return c
}

// TestStartsBecomeLaterInOrder: the end of a gang becomes later, because it has lost a member. The gang that waits for it starts
// later, but not behind another one whose start is planned after it.
func TestStartsBecomeLaterInOrder(t *testing.T) {
	t.Parallel()
	c := New(t, BuiltIn(t), Given(Nodes(4, "n", "1cpu"), Queue("q", 1),
		Group("q/old", 3, Pending(3, "1cpu"), Limit(10*time.Minute))), WithConfig(strings.Replace(planning, "depth: 1", "depth: -1", 1)))
	c.Cycle()
	c.ConfirmBinds()
	c.Start()
	c.Add(Group("q/second", 4, Pending(4, "1cpu"), Limit(10*time.Minute)))
	c.Cycle()
	c.Add(Group("q/third", 1, Pending(1, "1cpu"), Limit(40*time.Minute)))
	c.Cycle()
	before := waitsOf(c, "q/second")
	c.Delete("q/old-0")
	for range 3 {
		CompareTranscripts(t, "", c.Cycle())
		if got := waitsOf(c, "q/second"); !strings.Contains(got, "planned to start at 2026-01-01T00:1") {
			t.Errorf("before: %s\nand now: %s", before, got)
		}
	}
}
