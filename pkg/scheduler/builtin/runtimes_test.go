// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// TestLongestRunTimeOfAQueue: a group above it waits, and requests no share, until the queue admits it.
func TestLongestRunTimeOfAQueue(t *testing.T) {
	held := func(c *Scenario) string { return c.Held("q") + " and " + c.Held("r") }
	c := New(t, BuiltIn(t), Given(
		Node("n1", "12cpu"), Queue("q", 1, ExecutionTime(0, time.Hour)), Queue("r", 1),
		Group("q/long", 8, Pending(8, "1cpu"), Limit(2*time.Hour)),
		Group("q/unlimited", 1, Pending(1, "1cpu")),
		Group("r/large", 11, Pending(11, "1cpu")),
	))
	c.Cycle()
	c.ConfirmBinds()
	const want = "waits q/long ExecutionTimeTooLong: its run time is limited to 2h, and queue q admits at most 1h"
	if diff := cmp.Diff(want, c.Waits()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff("1 cpu and 11 cpu", held(c)); diff != "" {
		t.Errorf("shares (-want +got):\n%s", diff)
	}
	c.Delete(c.PodsOn("n1")...)
	c.EditQueue("q", func(q *v1alpha1.Queue) { q.Spec.ExecutionTime = nil })
	c.Cycle()
	c.ConfirmBinds()
	if diff := cmp.Diff("8 cpu and no resources", held(c)); diff != "" {
		t.Errorf("once the queue admits it (-want +got):\n%s", diff)
	}
}

// TestNodesThatBecomeUnavailable: only what is over by then is placed there, also as the time passes.
func TestNodesThatBecomeUnavailable(t *testing.T) {
	c := New(t, BuiltIn(t), Given(
		Node("n1", "8cpu", UnavailableFrom(30*time.Minute)), Queue("q", 1),
		Group("q/short", 1, Pending(1, "1cpu"), Limit(20*time.Minute)),
		Group("q/long", 1, Pending(1, "1cpu"), Limit(40*time.Minute)),
		Group("q/none", 1, Pending(1, "1cpu")),
		Group("q/ignored", 1, Pending(1, "1cpu"), Limit(20*time.Minute), OnOverrun(v1alpha1.OverrunIgnore)),
		Group("q/ends", 1, Pending(1, "1cpu", Deadline(20*time.Minute))),
	))
	if diff := cmp.Diff("bind q/ends-0 n1\nbind q/short-0 n1", c.Cycle()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	const because = "Unschedulable: needs 1 more pod of 1 cpu; 0/1 nodes are available: 1 node(s) were unavailable from 2026-01-01T00:30:00Z on, before the pod is over"
	if diff := cmp.Diff("waits q/ignored "+because+"\nwaits q/long "+because+"\nwaits q/none "+because, c.Waits()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	c.ConfirmBinds()

	c.Add(Group("q/large", 9, Pending(9, "1cpu"), Limit(20*time.Minute)), Group("q/wide", 1, Pending(1, "8cpu"), Limit(20*time.Minute)))
	c.Cycle()
	if got := c.Waits(); !strings.Contains(got, "waits q/wide NotEnoughResources: needs 1 more pod of 8 cpu; 0/1 nodes are available: 1 Insufficient cpu") {
		t.Errorf("a group of the same run time that does not fit yet:\n%s", got)
	}
	for range 20 { // other sessions are due before, for the starvation reservation
		if c.WaitUntilDue(); c.Since() >= 10*time.Minute {
			break
		}
		c.Cycle()
	}
	if got := c.Since(); got < 10*time.Minute || got > 11*time.Minute {
		t.Errorf("the next session is due after %s, want 10m", got)
	}
	c.Delete("q/short-0", "q/ends-0")
	c.Cycle()
	if got := c.Waits(); !strings.Contains(got, "waits q/wide "+strings.Replace(because, "1 cpu", "8 cpu", 1)) {
		t.Errorf("it would not be over in time any more:\n%s", got)
	}
	c.EditNode("n1", func(n *v1.Node) { delete(n.Annotations, v1alpha1.AnnotationUnavailableFrom) })
	if got := c.Cycle(); !strings.Contains(got, "n1") {
		t.Errorf("nothing starts when the node stays: %q\n%s", got, c.Waits())
	}
}

// TestAnInvalidAnnotationIsIgnored: the node stays available.
func TestAnInvalidAnnotationIsIgnored(t *testing.T) {
	c := New(t, BuiltIn(t), Given(Node("n1", "8cpu"), Queue("q", 1)))
	c.EditNode("n1", func(n *v1.Node) {
		n.Annotations = map[string]string{v1alpha1.AnnotationUnavailableFrom: "tomorrow"}
	})
	c.Add(Group("q/a", 1, Pending(1, "1cpu")))
	if diff := cmp.Diff("bind q/a-0 n1", c.Cycle()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestPodsAreOverInTime lets random groups come and go on nodes that become unavailable: what sessions remember about
// refusals and nodes never lets a pod start that could outlast its node. schedtest compares each session with one that
// remembers nothing.
func TestPodsAreOverInTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		minutes := func(what string, values ...int) time.Duration {
			return time.Duration(rapid.SampledFrom(values).Draw(t, what)) * time.Minute
		}
		rows, from, limits := Given(Queue("default", 1)), map[string]time.Duration{}, map[string]time.Duration{}
		for i := range rapid.IntRange(1, 3).Draw(t, "nodes") {
			name := fmt.Sprintf("n%d", i)
			var options []NodeOption
			if at := minutes("unavailable from", 0, 20, 40, 60); at > 0 {
				from[name], options = at, append(options, UnavailableFrom(at))
			}
			rows = append(rows, Node(name, "4cpu", options...))
		}
		c := New(t, BuiltIn(t), rows)
		add := func() {
			name := fmt.Sprintf("g%d", len(limits))
			limits[name] = minutes("limit", 0, 5, 10, 15, 30)
			size := rapid.IntRange(1, 3).Draw(t, "pods")
			request := rapid.SampledFrom([]string{"1cpu", "3cpu"}).Draw(t, "request")
			parts := []Part{Pending(size, request)}
			if limits[name] > 0 {
				parts = append(parts, Limit(limits[name]))
			}
			c.Add(Group("default/"+name, int32(size), parts...))
		}
		for range 3 {
			add()
		}
		for range rapid.IntRange(3, 10).Draw(t, "cycles") {
			switch rapid.IntRange(0, 4).Draw(t, "event") {
			case 0:
				add()
			case 1:
				if pods := c.PodsOn("n0"); len(pods) > 0 {
					c.Delete(pods[0])
				}
			case 2:
				c.WaitUntilDue()
			case 3:
				node := rapid.SampledFrom(c.Nodes()).Draw(t, "node")
				delete(from, node)
				c.EditNode(node, func(n *v1.Node) { delete(n.Annotations, v1alpha1.AnnotationUnavailableFrom) })
			case 4:
				c.Wait(minutes("pause", 1, 4, 9))
			}
			transcript := c.Cycle()
			for line := range strings.Lines(transcript) {
				words := strings.Fields(line)
				if words[0] != "bind" {
					continue
				}
				group := words[1][len("default/"):strings.LastIndex(words[1], "-")]
				if at, ends := from[words[2]]; ends && (limits[group] == 0 || c.Since()+limits[group] > at) {
					t.Fatalf("after %s, %s with the limit %s starts on %s, which is unavailable after %s", c.Since(), words[1], limits[group], words[2], at)
				}
			}
			c.ConfirmBinds()
		}
	})
}
