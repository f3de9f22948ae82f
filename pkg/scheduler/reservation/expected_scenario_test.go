// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package reservation_test

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// expecting is the built-in policy, which does not evict, and reserves the rest of minResources for a minute.
func expecting() Option { return WithConfig("expect: 60s\n" + conf.DefaultYAML()) }

// cycles returns a function that runs a cycle, compares its decisions, and lets bound pods run.
func cycles(t *testing.T, c *Scenario) func(when, want string) {
	return func(when, want string) {
		t.Helper()
		if got := c.Cycle(); got != want {
			t.Fatalf("%s:\n%s\nwant\n%s\n%s", when, got, want, c.Waits())
		}
		c.ConfirmBinds()
		c.Start()
	}
}

// TestExpectedPods asserts that a driver starts only if its executors would find resources, and that these stay reserved for
// them for a minute: IP3.
func TestExpectedPods(t *testing.T) {
	app := func(name string) Row { return Group(name, 1, MinResources("9cpu"), Pending(1, "1cpu")) }
	c := New(t, BuiltIn(t), Given(Node("n1", "8cpu"), Queue("q", 1), app("q/one"), app("q/two")), expecting())
	want := cycles(t, c)
	want("8 of 9 cpus", "")
	const message = "waits q/one ExceedsClusterCapacity: spec.minResources requests 9 cpu, but the nodes that suit a pending or running pod have 8 cpu in total"
	if !strings.Contains(c.Waits(), message) {
		t.Error(c.Waits())
	}
	c.Add(Node("n2", "1cpu"))
	want("9 cpus", "bind q/one-0 n1")
	c.Add(Group("q/other", 1, Pending(1, "1cpu")))
	want("what is expected is reserved", "")
	for _, part := range []string{"waits q/other NotEnoughResources: needs 1 more pod of 1 cpu; 0/2 nodes are available: 2 reserved for another PodGroup (ns/one)"} {
		if !strings.Contains(c.Waits(), part) {
			t.Errorf("%q is not in\n%s", part, c.Waits())
		}
	}
	c.Add(More("q/one", Pending(2, "2cpu")))
	want("executors", "bind q/one-1 n1\nbind q/one-2 n1")
	c.Wait(50 * time.Second)
	want("the rest is reserved still", "")
	c.Wait(10 * time.Second)
	want("a minute later", "bind q/other-0 n1")
}

// TestExpectedOnce asserts that executors which come late do not reserve anything again, and that a reservation shrinks with
// the pods that have come.
func TestExpectedOnce(t *testing.T) {
	c := New(t, BuiltIn(t), Given(Node("n1", "8cpu"), Queue("q", 1), Group("q/app", 1, MinResources("5cpu"), Pending(1, "1cpu"))), expecting())
	other := func(name string) Row { return Group(name, 1, Pending(1, "1cpu")) }
	want := cycles(t, c)
	want("a driver", "bind q/app-0 n1")
	c.Add(other("q/a"), other("q/b"), other("q/c"), other("q/d"))
	want("three cpus are not reserved", "bind q/a-0 n1\nbind q/b-0 n1\nbind q/c-0 n1")
	c.Add(More("q/app", Pending(1, "2cpu")))
	want("two are left to reserve", "bind q/app-1 n1")
	c.Delete("q/a-0")
	want("one is not reserved", "bind q/d-0 n1")
	c.Wait(time.Minute)
	c.Cycle()
	c.Delete("q/b-0", "q/c-0")
	c.Add(More("q/app", Pending(1, "1cpu")))
	want("after a minute", "bind q/app-2 n1")
	c.Add(Group("q/large", 1, Pending(1, "3cpu")))
	want("the rest is not reserved", "bind q/large-0 n1")
}

// TestExpectedVerdicts asserts why a gang waits whose pods fit.
func TestExpectedVerdicts(t *testing.T) {
	const detail = "; requested by spec.minResources for pods that are expected"
	app := func(queue string) Row {
		return Group(queue+"/app", 1, MinResources("3cpu 3Gi"), Pending(1, "1cpu 1Gi"))
	}
	busy := Group("q/busy", 1, Running(1, "3cpu", "n1"))
	for name, tc := range map[string]struct {
		given []Row
		want  string
	}{
		"all of it is available": {
			given: Given(Node("n1", "2cpu 8Gi"), Node("n2", "1cpu 8Gi"), Queue("q", 1), app("q")),
		},
		"a node has no memory for its part": {
			given: Given(Node("n1", "2cpu 2Gi"), Node("n2", "1cpu"), Node("n3", "8Gi"), Queue("q", 1), app("q")),
			want: "waits q/app NotEnoughResources: the gang fits, but not the pods that are expected: spec.minResources requests 2 cpu for them, " +
				"of which suitable nodes have 1 available",
		},
		"only pods that end soon hold it": {
			given: Given(Node("n1", "4cpu 8Gi"), Queue("q", 1), busy, app("q")),
			want: "waits q/app NotEnoughResources: the gang fits, but not the pods that are expected: spec.minResources requests 2 cpu for them, " +
				"of which suitable nodes have 0 available",
		},
		"the capability of the queue": {
			given: Given(Node("n1", "8cpu 8Gi"), Queue("q", 1, Capability("4cpu")), Group("q/busy", 1, Running(1, "2cpu", "n1")), app("q")),
			want:  "waits q/app QueueFull: queue q is full: capability 4 cpu, allocated 3, needs 2" + detail,
		},
		"what a queue deserves that cannot borrow": {
			given: Given(Node("n1", "4cpu 8Gi"), Queue("q", 1, NotReclaimable()), Queue("r", 1), Group("r/busy", 1, Running(1, "1cpu", "n1"), Pending(1, "1cpu")), app("q")),
			want:  "waits q/app OverShare: queue q cannot borrow (spec.reclaimable is false)" + detail,
		},
		"pods are not evicted for a part of it": {
			given: Given(Node("n1", "4cpu 8Gi"), Queue("q", 1), Queue("r", 1), Group("r/busy", 1, Running(4, "1cpu", "n1")), app("q")),
			want:  "waits q/app NotEnoughResources: needs 1 more pod of 1 cpu + 1Gi memory; 0/1 nodes are available: 1 Insufficient cpu",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := New(t, BuiltIn(t), tc.given, WithConfig("expect: 60s\n"+AllActions))
			if transcript := c.Cycle(); (tc.want == "") != strings.Contains(transcript, "bind q/app-0") || strings.Contains(transcript, "evict") {
				t.Errorf("decisions: %s", transcript)
			}
			if !strings.Contains(c.Waits(), tc.want) {
				t.Errorf("got\n%s\nwant\n%s", c.Waits(), tc.want)
			}
		})
	}
}

// TestExpectationsEnd asserts when other pods may use what was reserved.
func TestExpectationsEnd(t *testing.T) {
	scheduled := Mutate(func(p *v1.Pod) {
		p.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionTrue, LastTransitionTime: p.CreationTimestamp}}
	})
	driver := Group("q/app", 1, MinResources("4cpu"), Running(1, "1cpu", "n1", scheduled))
	for name, tc := range map[string]struct {
		policy string
		change func(c *Scenario)
		free   bool
	}{
		"a driver that another process has started": {change: func(*Scenario) {}},
		"a minute after its start, by another process": {
			change: func(c *Scenario) { c.Wait(time.Minute) },
			free:   true,
		},
		"all of it is held": {
			change: func(c *Scenario) { c.Add(More("q/app", Running(3, "1cpu", "n2"))) },
			free:   true,
		},
		"a job of higher priority in the same queue": {
			change: func(c *Scenario) { c.Add(Group("q/high", 1, Pending(1, "3cpu", Priority(1)))) },
		},
		"a gang that has lost members": {
			change: func(c *Scenario) {
				c.Delete("q/app-0")
				c.Add(Group("q/two", 2, MinResources("4cpu"), Running(1, "1cpu", "n1"), Pending(1, "9cpu")))
			},
			free: true,
		},
		"the driver has ended": {change: func(c *Scenario) { c.Delete("q/app-0") }, free: true},
		"no policy":            {policy: "expect: 0\n", change: func(*Scenario) {}, free: true},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.policy == "" {
				tc.policy = "expect: 60s\n"
			}
			c := New(t, BuiltIn(t), Given(Node("n1", "4cpu"), Node("n2", "3cpu", Unschedulable()), Queue("q", 1)), WithConfig(tc.policy+conf.DefaultYAML()))
			c.Add(driver)
			tc.change(c)
			c.Add(Group("q/other", 1, Pending(1, "1cpu")))
			transcript := c.Cycle()
			if got := strings.Contains(transcript, "bind q/other-0 n1"); got != tc.free {
				t.Errorf("another pod is bound: %t, want %t\n%s\n%s", got, tc.free, transcript, c.Waits())
			}
			if strings.Contains(name, "priority") && !strings.Contains(transcript, "bind q/high-0 n1") {
				t.Errorf("the job of higher priority waits: %s", c.Waits())
			}
		})
	}
}
