// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package schedtest

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

func TestTranscript(t *testing.T) {
	cases := map[string]struct {
		given []Row
		want  string
		waits string
	}{
		"binds, in the order of numbers": {
			given: Given(Node("n1", "12cpu"), Queue("q", 1), Group("q/a", 1, Pending(11, "1cpu"))),
			want: `bind q/a-0 n1
bind q/a-1 n1
bind q/a-2 n1
bind q/a-3 n1
bind q/a-4 n1
bind q/a-5 n1
bind q/a-6 n1
bind q/a-7 n1
bind q/a-8 n1
bind q/a-9 n1
bind q/a-10 n1`,
		},
		"a gang that waits for resources": {
			given: Given(Nodes(2, "n", "1cpu"), Queue("q", 1),
				Group("q/old", 1, Releasing(1, "1cpu", "n2")), Group("q/new", 2, Pending(2, "1cpu"))),
			want: `hold q/new-0 n1
pipeline q/new-1 n2`,
		},
		"waiting jobs": {
			given: Given(Node("n1", "1cpu"), Queue("q", 1), Group("q/a", 2, Pending(2, "1cpu")), Plain("x", OfQueue("q"), Pending(1, "2cpu"))),
			waits: `waits q/a Unplaced: needs 2
waits x-0 Unplaced: needs 1`,
		},
		"amounts, labels and namespaces": {
			given: Given(Node("n1", "1cpu 2gpu example.com/x=1 1Gi 1pods"), Queue("default", 1),
				Plain("x", In("other"), Pending(1, "1gpu example.com/x=1 512Mi"), Pending(1, ""))),
			want:  `bind x-0 n1`,
			waits: `waits other/x-1 Unplaced: needs 1`,
		},
		"a missing queue and a missing node": {
			given: Given(MissingQueue("lost"), MissingNode("gone"), Queue("default", 1), Node("n1", "1cpu"),
				Group("lost/a", 1, Pending(1, "1cpu")),
				Group("default/b", 1, Running(1, "1cpu", "gone")),
				MissingGroup("default/none", Pending(1, "1cpu"))),
			waits: `waits default/none GroupNotFound: PodGroup "none" does not exist in the namespace of the pod; create it or correct the label scheduling.batch-scheduler.dev/pod-group
waits lost/a QueueNotFound: queue "lost" does not exist; create it or name another queue`,
		},
		"members of all kinds": {
			given: Given(Node("n1", "9cpu"), Queue("q", 1),
				Group("q/a", 7, Pending(1, "1cpu"), BestEffort(1), Bound(1, "1cpu", "n1"), Running(1, "1cpu", "n1"), Succeeded(1, "1cpu", "n1"),
					Gated(1, "1cpu"), Failed(1, "1cpu", "n1"), Releasing(1, "1cpu", "n1"), Pending(2, "1cpu")),
				Foreign("web", Running(2, "1cpu", "n1"), Pending(1, "1cpu")),
				ReplicaSet("set", OfQueue("q"), GangOf("2"), Pending(2, "1cpu"))),
			want: `bind q/a-0 n1
bind q/a-1 n1
bind q/a-8 n1
bind q/a-9 n1
hold set-0 n1
pipeline set-1 n1`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := New(t, registryOf(t, firstFit), tc.given, actAlone)
			if diff := cmp.Diff(tc.want, s.Cycle()); diff != "" {
				t.Errorf("transcript (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.waits, s.Waits()); diff != "" {
				t.Errorf("waits (-want +got):\n%s", diff)
			}
		})
	}
}

func TestInvalidRows(t *testing.T) {
	some := Rows(Node("n1", "1cpu"), Queue("q", 1), Group("q/a", 1, Pending(1, "1cpu")))
	cases := map[string]struct {
		row  Row
		want string
	}{
		"an unknown queue": {
			Group("p/a", 1, Pending(1, "1cpu")), `Group("p/a"): queue "p" is not declared; declare it above with Queue, or with MissingQueue`,
		},
		"an unknown node": {
			Group("q/b", 1, Running(1, "1cpu", "n2")), `Group("q/b"): node "n2" is not declared; declare it above with Node, or with MissingNode`,
		},
		"an unknown node of a foreign pod": {
			Foreign("x", Running(1, "1cpu", "n2")), `Foreign("x"): node "n2" is not declared; declare it above with Node, or with MissingNode`,
		},
		"no default queue": {
			Plain("x", Pending(1, "1cpu")), `Plain("x"): queue "default" is not declared; declare it above with Queue, or with MissingQueue`,
		},
		"amounts that cannot be parsed": {
			Node("n3", "4cpus"), `Node("n3"): amount "4cpus": quantities must match the regular expression`,
		},
		"an amount given twice": {
			Node("n3", "4cpu 5cpu"), `Node("n3"): amounts "4cpu 5cpu": cpu is given twice`,
		},
		"a group with the name of another group": {
			Rows(Queue("r", 1), Group("r/a", 1)), `Group("r/a"): namespace ns has a group "a" already`,
		},
		"a pod with the name of another pod": {
			Rows(Queue("default", 1), Plain("a", Pending(1, "1cpu"))), `Plain("a"): namespace ns has a pod "a-0" already`,
		},
		"more pods of a group that does not exist": {
			More("q/b", Pending(1, "1cpu")), `More("q/b"): no such group; declare it with Group above`,
		},
		"a capability that cannot be parsed": {
			Queue("r", 1, Capability("much")), `Capability of queue r: amount "much": quantities must match`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := failure(func(t T) { New(t, registryOf(t, firstFit), Given(some, tc.row), actAlone) })
			if !strings.HasPrefix(got, tc.want) {
				t.Errorf("\n got %s\nwant %s", got, tc.want)
			}
		})
	}
}

// evictLast is an action that evicts one running pod, last name first, for each pending pod. The queues deserve the
// given numbers of cpus, in the order of their creation.
func evictLast(deserved ...int64) act {
	return func(ssn *framework.Session) {
		for i, cpus := range deserved {
			ssn.SetDeserved(ssn.Cluster().SortedQueues()[i], api.Resource{cpus * 1000 * api.Parts(api.CPU)})
		}
		var running []*api.TaskInfo
		for _, t := range ssn.Cluster().Tasks() {
			if t.Evictable() {
				running = append(running, t)
			}
		}
		slices.SortFunc(running, func(a, b *api.TaskInfo) int { return -strings.Compare(a.Key, b.Key) })
		stmt := ssn.Statement()
		for _, j := range ssn.Jobs() {
			for i, t := range ssn.WaitingTasks(j) {
				stmt.Evict(running[i], j, api.Preempted)
				stmt.Pipeline(t, running[i].Node)
			}
		}
		stmt.Commit()
	}
}

// Each invariant must be able to fail.
func TestInvariantViolations(t *testing.T) {
	each := func(do func(stmt *framework.Statement, task *api.TaskInfo, ssn *framework.Session)) act {
		return func(ssn *framework.Session) {
			stmt := ssn.Statement()
			for _, j := range ssn.Jobs() {
				for _, task := range ssn.WaitingTasks(j) {
					do(stmt, task, ssn)
				}
			}
			stmt.Commit()
		}
	}
	cases := map[string]struct {
		given []Row
		act   act
		want  string
	}{
		"more than a node has available": {
			given: Given(Node("n1", "1cpu"), Group("q/a", 1, Pending(2, "1cpu"))),
			act: each(func(stmt *framework.Statement, task *api.TaskInfo, ssn *framework.Session) {
				stmt.Allocate(task, ssn.Cluster().Node("n1"))
			}),
			want: "is placed on n1, which is overcommitted by 1 cpu",
		},
		"more than a node will have": {
			given: Given(Node("n1", "1cpu"), Group("q/old", 1, Releasing(1, "1cpu", "n1")), Group("q/a", 1, Pending(2, "1cpu"))),
			act: each(func(stmt *framework.Statement, task *api.TaskInfo, ssn *framework.Session) {
				stmt.Pipeline(task, ssn.Cluster().Node("n1"))
			}),
			want: "is placed on n1, which is overcommitted by 1 cpu",
		},
		"resources reserved for a nominated pod": {
			given: Given(Node("n1", "1cpu"), Foreign("web", Nominated("n1"), Pending(1, "1cpu")), Group("q/a", 1, Pending(1, "1cpu"))),
			act: each(func(stmt *framework.Statement, task *api.TaskInfo, ssn *framework.Session) {
				stmt.Allocate(task, ssn.Cluster().Node("n1"))
			}),
			want: "q/a-0 uses resources on n1 that are reserved for a nominated pod",
		},
		"more than the capability of a queue": {
			given: Given(Node("n1", "9cpu"), Queue("r", 1, Capability("1cpu")), Group("r/a", 1, Pending(2, "1cpu"))),
			act: each(func(stmt *framework.Statement, task *api.TaskInfo, ssn *framework.Session) {
				stmt.Allocate(task, ssn.Cluster().Node("n1"))
			}),
			want: "is placed, and queue r then holds 2 cpu of 1 cpu",
		},
		"more than the capability of a queue while it releases": {
			given: Given(Node("n1", "9cpu"), Queue("r", 1, Capability("1cpu")),
				Group("r/old", 1, Releasing(1, "1cpu", "n1")), Group("r/a", 1, Pending(1, "1cpu"))),
			act: each(func(stmt *framework.Statement, task *api.TaskInfo, ssn *framework.Session) {
				stmt.Allocate(task, ssn.Cluster().Node("n1"))
			}),
			want: "is placed, and queue r then holds 2 cpu of 1 cpu",
		},
		"part of a gang": {
			given: Given(Node("n1", "9cpu"), Group("q/a", 2, Pending(2, "1cpu"))),
			act: func(ssn *framework.Session) {
				stmt := ssn.Statement()
				stmt.Allocate(ssn.WaitingTasks(ssn.Jobs()[0])[0], ssn.Cluster().Node("n1"))
				stmt.Commit()
			},
			want: "q/a-0 is bound, and its gang has 1 of 2 members",
		},
		"a task decided twice": {
			given: Given(Node("n1", "9cpu"), Group("q/a", 1, Pending(1, "1cpu"))),
			act: func(ssn *framework.Session) {
				task := ssn.WaitingTasks(ssn.Jobs()[0])[0]
				for range 2 {
					stmt := ssn.Statement()
					stmt.Allocate(task, ssn.Cluster().Node("n1"))
					stmt.Commit()
				}
			},
			want: "q/a-0 is decided twice",
		},
		"a job that is not admissible": {
			given: Given(Node("n1", "9cpu"), Terminating("far"), Group("q/b", 1, In("far"), Pending(1, "1cpu"))),
			act: func(ssn *framework.Session) {
				stmt := ssn.Statement()
				for _, task := range ssn.Cluster().Jobs()["group/far/b"].Tasks {
					stmt.Allocate(task, ssn.Cluster().Node("n1"))
				}
				stmt.Commit()
			},
			want: "q/b-0 is bound although its job cannot be",
		},
		"a statement neither committed nor discarded": {
			given: Given(Node("n1", "9cpu"), Group("q/a", 1, Pending(1, "1cpu"))),
			act: func(ssn *framework.Session) {
				ssn.Statement().Allocate(ssn.WaitingTasks(ssn.Jobs()[0])[0], ssn.Cluster().Node("n1"))
			},
			want: "the session has changed more (+) than its binds (-)",
		},
		"inconsistent accounts": {
			given: Given(Node("n1", "9cpu"), Group("q/a", 1, Pending(1, "1cpu"))),
			act:   func(ssn *framework.Session) { ssn.Cluster().Node("n1").Idle.Add(api.Resource{1}) },
			want:  "after action act, the model with the objects in order: the model contradicts itself",
		},
		"an eviction that does not change the shares": {
			given: Given(Node("n1", "1cpu"), Group("q/old", 1, Running(1, "1cpu", "n1")), Group("q/a", 1, Pending(1, "1cpu"))),
			act:   evictLast(),
			want:  `a plan for ns/a that evicts ["ns/old-0"] takes more than it leaves to jobs of the same priority`,
		},
		"an eviction within a job for a pod of equal priority": {
			given: Given(Node("n1", "2cpu"), Group("q/a", 1, Running(2, "1cpu", "n1"), Pending(1, "1cpu"))),
			act:   evictLast(),
			want:  `is for tasks of the same job that do not rank higher`,
		},
		"an eviction for a queue that holds more": {
			given: Given(Node("n1", "4cpu"), Queue("r", 1), Group("q/old", 1, Running(2, "1cpu", "n1")), Group("r/a", 1, Running(2, "1cpu", "n1"), Pending(1, "1cpu"))),
			act:   evictLast(1, 1),
			want:  "takes more than it leaves to other queues, and more than its own deserves",
		},
		"an eviction of resources that a queue deserves": {
			given: Given(Node("n1", "4cpu"), Queue("r", 1), Group("q/old", 1, Running(2, "1cpu", "n1")), Group("r/a", 1, Running(2, "1cpu", "n1"), Pending(1, "1cpu"))),
			act:   evictLast(2, 3),
			want:  "takes from queue q what that deserves",
		},
		"an order that depends on the order of events": {
			given: Given(Nodes(9, "n", "9cpu"), Group("q/a", 1, Pending(1, "1cpu"))),
			act: func(ssn *framework.Session) {
				stmt := ssn.Statement()
				stmt.Allocate(ssn.WaitingTasks(ssn.Jobs()[0])[0], ssn.Cluster().Nodes()[0])
				stmt.Commit()
			},
			want: "the same objects in another order lead to other decisions",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := failure(func(t T) {
				Run(t, registryOf(t, tc.act), append(Given(Queue("q", 1)), tc.given...), actAlone)
			})
			if !strings.Contains(got, tc.want) {
				t.Errorf("the runner reports %q, want %q", got, tc.want)
			}
		})
	}
}

func TestBindResults(t *testing.T) {
	s := New(t, registryOf(t, firstFit), Given(Node("n1", "2cpu"), Queue("q", 1), Group("q/a", 1, Pending(2, "1cpu"))), actAlone)
	expect := func(when, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: got %q, want %q", when, got, want)
		}
	}
	expect("first", s.Cycle(), "bind q/a-0 n1\nbind q/a-1 n1")
	expect("unanswered", s.Cycle(), "")
	expect("in flight", strings.Join(s.InFlight(), " "), "q/a-0 q/a-1")
	s.ConfirmBinds("q/a-0")
	s.FailBinds("q/a-1")
	expect("refused", s.Cycle(), "bind q/a-1 n1")
	expect("phase", s.Phase("q/a"), "Running")
	s.ConfirmBinds()
	s.Start()
	s.Succeed("q/a-0")
	s.Add(More("q/a", Pending(1, "1cpu")))
	expect("arrival", s.Cycle(), "bind q/a-2 n1")
	expect("held", s.Held("q"), "2 cpu")
	s.EditNode("n1", func(n *v1.Node) { n.Spec.Unschedulable = true })
	s.Recreate("q/a-2")
	expect("recreated in flight", strings.Join(s.InFlight(), " "), "")
	expect("recreated", s.Cycle(), "bind q/a-2 n1")
	if got := failure(func(ft T) { s.t = ft; s.ConfirmBinds("q/a-0") }); !strings.Contains(got, "not all of these binds are in flight") {
		t.Errorf("confirming a bind that is not in flight: %q", got)
	}
}

func TestScriptIsRewritten(t *testing.T) {
	const script = `# a comment stays
node n1 2cpu

queue q 1
group q/a 2
pods q/a 2 1cpu
cycle
    bind something old
confirm
start
phase q/a
foreign web 1 1cpu on=n1 label=a=b priority=3
node n1 3cpu unschedulable
queue q 2 capability=2cpu
group q/b 1
pods q/b 1 1cpu gated
ungate q/b-0
cycle
waits
`
	const want = `# a comment stays
node n1 2cpu

queue q 1
group q/a 2
pods q/a 2 1cpu
cycle
    bind q/a-0 n1
    bind q/a-1 n1
confirm
start
phase q/a
    Pending
foreign web 1 1cpu on=n1 label=a=b priority=3
node n1 3cpu unschedulable
queue q 2 capability=2cpu
group q/b 1
pods q/b 1 1cpu gated
ungate q/b-0
cycle
waits
    waits q/b Unplaced: needs 1
`
	got := play(New(t, registryOf(t, firstFit), nil, actAlone), "test.txt", script)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestScriptErrors(t *testing.T) {
	cases := map[string]struct{ script, want string }{
		"no such command":     {"nod n1 1cpu", `s.txt:1: there is no command "nod"`},
		"too few words":       {"\nqueue q", `s.txt:2: queue: takes a name and a weight`},
		"not a number":        {"queue q many", `s.txt:1: queue: strconv.ParseInt`},
		"too many words":      {"cycle twice", `s.txt:1: cycle: takes no words`},
		"no such pod":         {"delete x-0", `there is no pod "x-0"`},
		"waits before cycles": {"waits", `Waits: there was no cycle yet`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := failure(func(t T) { play(New(t, registryOf(t, firstFit), nil, actAlone), "s.txt", tc.script) })
			if !strings.HasPrefix(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
