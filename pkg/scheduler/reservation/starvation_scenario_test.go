// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package reservation_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// starvesAfter is the built-in configuration with another time after which gangs starve.
func starvesAfter(text string) Option {
	return WithConfig(conf.DefaultYAML() + "starvationAfter: " + text + "\n")
}

// stream is single pods that keep coming and run for some time, so that three of them always wait.
type stream struct {
	t     schedtest.T
	c     *Scenario
	more  func(count int) Row
	life  func() int // minutes
	ends  map[string]int
	now   int // minutes
	begun map[string]int
}

func newStream(t schedtest.T, c *Scenario, more func(count int) Row, life func() int) *stream {
	return &stream{t: t, c: c, more: more, life: life, ends: map[string]int{}, begun: map[string]int{}}
}

// running says when pods end that run from the beginning.
func (s *stream) running(end func(i int) int, pods ...string) {
	for i, name := range pods {
		s.ends[name] = end(i)
	}
}

// minute lets a minute pass, in which pods end and come, and runs a cycle.
func (s *stream) minute() {
	s.now++
	s.c.Wait(time.Minute)
	waiting := 0
	for _, name := range s.c.Pods() {
		end, runs := s.ends[name]
		switch _, started := s.begun[name]; {
		case runs && end <= s.now:
			s.c.Delete(name)
			delete(s.ends, name)
		case !runs && !started:
			waiting++
		}
	}
	if missing := 11 - waiting; missing > 0 { // eight of the gang, and three
		s.c.Add(s.more(missing))
	}
	for line := range strings.Lines(s.c.Cycle()) {
		words := strings.Fields(line)
		if words[0] != "bind" {
			continue
		}
		s.begun[words[1]] = s.now
		if !strings.Contains(words[1], "gang") {
			s.ends[words[1]] = s.now + s.life()
		}
	}
	s.c.ConfirmBinds()
	s.c.Start()
}

// until returns the minute at which a pod starts, 0 if it does not within 90 minutes.
func (s *stream) until(pod string) int {
	for s.now < 90 {
		if s.minute(); s.begun[pod] > 0 {
			return s.begun[pod]
		}
	}
	return 0
}

// S25: single pods of ten minutes, one of which ends each minute, on a node for ten pods; and a gang of eight. After
// five minutes the next pod's resources that become free are reserved for it, and seven minutes later the rest.
func TestStreamAgainstAGang(t *testing.T) {
	const life = 10
	cases := map[string]struct {
		after string
		given []Row
		queue string // of the stream
		want  int    // minute in which the gang starts, 0: never
	}{
		"of another queue": {
			"5m", Given(Nodes(5, "n", "2cpu"), Queue("g", 4), Queue("s", 1)), "s", 5 + 7,
		},
		"of another queue, the gang's queue deserving less than the gang": {
			"5m", Given(Nodes(5, "n", "2cpu"), Queue("g", 1), Queue("s", 1)), "s", 5 + 7,
		},
		"of the same queue": {
			"5m", Given(Nodes(5, "n", "2cpu"), Queue("g", 1)), "g", 5 + 7,
		},
		"of the same queue, which is full": {
			"5m", Given(Nodes(5, "n", "2cpu"), Node("big", "90cpu"), Queue("g", 1, Capability("10cpu"))), "g", 5 + 7,
		},
		"on one node": {
			"5m", Given(Node("n1", "10cpu"), Queue("g", 1), Queue("s", 1)), "s", 5 + 7,
		},
		"of another queue, and nothing is ever reserved": {
			"0", Given(Nodes(5, "n", "2cpu"), Queue("g", 4), Queue("s", 1)), "s", 0,
		},
		"of the same queue, and nothing is ever reserved": {
			"0", Given(Nodes(5, "n", "2cpu"), Queue("g", 1)), "g", 0,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			given := tc.given
			var first []string
			for i := range 10 {
				node := "n1"
				if !strings.Contains(name, "one node") {
					node = fmt.Sprintf("n%d", 1+i/2)
				}
				single := fmt.Sprintf("%s/first%d", tc.queue, i)
				given = append(given, Group(single, 1, Running(1, "1cpu", node)))
				first = append(first, single+"-0")
			}
			given = append(given, Group("g/gang", 8, Pending(8, "1cpu")))
			c := New(t, BuiltIn(t), given, starvesAfter(tc.after))
			s := newStream(t, c, func(n int) Row { return Plain("single", OfQueue(tc.queue), Pending(n, "1cpu")) }, func() int { return life })
			s.running(func(i int) int { return 1 + i }, first...)
			got := s.until("g/gang-0")
			if got != tc.want {
				t.Errorf("starts in minute %d, want %d", got, tc.want)
			}
		})
	}
}

// Whatever the nodes, and however long the pods of the stream run: the gang starts when those have ended
// that ran when it had waited for five minutes.
func TestGangsDoNotStarve(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const longest = 9
		upTo := func(n int, what string) int { return rapid.IntRange(0, n).Draw(t, what) }
		oneOf := func(what string, values ...string) string { return rapid.SampledFrom(values).Draw(t, what) }
		life := func() int { return 1 + upTo(longest-1, "life") }
		given := Given(Queue("g", int32(1+upTo(2, "weight"))), Queue("s", 1))
		queue := oneOf("queue", "g", "s")
		var first []string
		size := 2 + upTo(2, "size")
		for i := range 2 + upTo(3, "nodes") {
			node, cpus := fmt.Sprintf("n%d", i), size+upTo(1, "cpus")
			given = append(given, Node(node, fmt.Sprintf("%dcpu", cpus)))
			for j := range cpus {
				given = append(given, Group(fmt.Sprintf("%s/first%d.%d", queue, i, j), 1, Running(1, "1cpu", node)))
				first = append(first, fmt.Sprintf("%s/first%d.%d-0", queue, i, j))
			}
		}
		large := 1 + upTo(1, "large")
		small := upTo(min(3, len(first)-size*large), "small")
		given = append(given, Group("g/gang", int32(large+small), Pending(large, fmt.Sprintf("%dcpu", size)), Pending(small, "1cpu")))
		c := New(t, BuiltIn(t), given, starvesAfter("5m"))
		s := newStream(t, c, func(n int) Row {
			return Plain("single", OfQueue(queue), Pending(n, oneOf("single", "1cpu", "1cpu", "2cpu")))
		}, life)
		s.running(func(int) int { return life() }, first...)
		if at := s.until("g/gang-0"); at == 0 || at > 5+longest {
			t.Fatalf("starts in minute %d\n%s", at, c.Waits())
		}
	})
}

// What one cycle decides about jobs that arrive when a gang has waited for six minutes.
func TestStarvationReservations(t *testing.T) {
	// Four nodes for four pods each, with 0 to 3 cpus free; all pods belong to queue o.
	nodes := Rows(Nodes(4, "n", "4cpu"), Queue("g", 4), Queue("o", 1),
		Group("o/a", 1, Running(4, "1cpu", "n1"), Running(3, "1cpu", "n2"), Running(2, "1cpu", "n3"), Running(1, "1cpu", "n4")))
	six := Group("o/new", 1, Pending(6, "1cpu"))
	cases := map[string]struct {
		given []Row
		then  []Row
		want  string
		waits string // lines that are among the reported ones
	}{
		"the nodes with the smallest shortfall are reserved": {
			given: Given(nodes, Group("g/gang", 2, Pending(2, "4cpu"))),
			then:  Given(six),
			want:  `bind o/new-0 n2`,
			waits: `waits g/gang NotEnoughResources: needs 2 more pods of 4 cpu; 0/4 nodes are available: 4 Insufficient cpu; reserved: 2 nodes, because it has been pending for more than 5m0s; 0 of 2 pods could start there now; waiting for resources of pods there: ns/a-9, ns/a-7, ns/a-8
waits o/new-1 NotEnoughResources: needs 5 more pods of 1 cpu; 0/4 nodes are available: 2 Insufficient cpu, 2 reserved for another PodGroup (ns/gang)`,
		},
		"what the gang does not ask for is left to others": {
			given: Given(Node("n1", "4cpu 4Gi"), Queue("g", 4), Queue("o", 1), Group("o/a", 1, Running(1, "1cpu", "n1")), Group("g/gang", 1, Pending(1, "4cpu"))),
			then:  Given(Group("o/new", 1, Pending(1, "1cpu"), Pending(1, "4Gi"))),
			want:  `bind o/new-1 n1`,
		},
		"with equal available resources, the node with fewer pods": {
			given: Given(Nodes(2, "n", "4cpu"), Queue("g", 4), Queue("o", 1),
				Group("o/a", 1, Running(2, "1cpu", "n1"), Running(1, "2cpu", "n2")), Group("g/gang", 1, Pending(1, "4cpu"))),
			then: Given(Group("o/new", 1, Pending(3, "1cpu"))),
			want: `bind o/new-0 n1
			       bind o/new-1 n1`,
			waits: `waits o/new-2 NotEnoughResources: needs 1 more pod of 1 cpu; 0/2 nodes are available: 1 Insufficient cpu, 1 reserved for another PodGroup (ns/gang)`,
		},
		"nodes that could never hold it are left alone": {
			given: Given(Nodes(2, "n", "4cpu"), Queue("g", 4), Queue("o", 1),
				Foreign("web", Running(1, "1cpu", "n1")), Group("o/a", 1, Running(2, "1cpu", "n2")), Group("g/gang", 1, Pending(1, "4cpu"))),
			then: Given(Group("o/new", 1, Pending(4, "1cpu"))),
			want: `bind o/new-0 n1
			       bind o/new-1 n1
			       bind o/new-2 n1`,
		},
		"nodes that are cordoned or not ready are left alone, even if it tolerates that": {
			given: Given(Node("n1", "4cpu"), Node("n2", "4cpu", Unschedulable()), Node("n3", "4cpu", NotReady()), Queue("g", 4), Queue("o", 1),
				Group("o/a", 1, Running(2, "1cpu", "n1"), Running(1, "1cpu", "n2"), Running(1, "1cpu", "n3")),
				Group("g/gang", 1, Tolerate("node.kubernetes.io/unschedulable:NoSchedule"), Tolerate("node.kubernetes.io/not-ready:NoSchedule"), Pending(1, "4cpu"))),
			then: Given(Group("o/new", 1, Pending(1, "1cpu"))),
			want: ``,
		},
		"a gang that could never fit has no reservation, and the next one of the queue has": {
			given: Given(Nodes(2, "n", "4cpu"), Queue("g", 9), Queue("o", 1), Group("o/a", 1, Running(2, "1cpu", "n1"), Running(3, "1cpu", "n2")),
				Group("g/huge", 3, Pending(3, "4cpu")), Group("g/gang", 1, Pending(1, "4cpu"))),
			then: Given(Group("o/new", 1, Pending(3, "1cpu"))),
			want: `bind o/new-0 n2`,
			waits: `waits g/huge ExceedsClusterCapacity: needs 3 more pods of 4 cpu; 0/2 nodes are available: 2 Insufficient cpu; would not fit the empty nodes (at most 2 of 3 pods)
waits g/gang NotEnoughResources: needs 1 more pod of 4 cpu; 0/2 nodes are available: 2 Insufficient cpu; reserved: 1 node, because it has been pending for more than 5m0s; 0 of 1 pods could start there now; waiting for resources of pods there: ns/a-0, ns/a-1`,
		},
		"a gang whose classes fit one by one, and not together": {
			given: Given(Node("n1", "4cpu"), Queue("g", 9), Queue("o", 1), Group("o/a", 1, Running(2, "1cpu", "n1")),
				Group("g/gang", 3, Pending(1, "4cpu"), Pending(2, "1cpu"))),
			then: Given(Group("o/new", 1, Pending(2, "1cpu"))),
			want: `bind o/new-0 n1
			       bind o/new-1 n1`,
		},
		"a gang that is larger than its queue's cap": {
			given: Given(Node("n1", "4cpu"), Queue("g", 9, Capability("3cpu")), Queue("o", 1), Group("o/a", 1, Running(2, "1cpu", "n1")), Group("g/gang", 1, Pending(1, "4cpu"))),
			then:  Given(Group("o/new", 1, Pending(2, "1cpu"))),
			want: `bind o/new-0 n1
			       bind o/new-1 n1`,
		},
		"the gang of a queue that would hold more than it deserves, while another queue is first in queue order": {
			given: Given(Node("n1", "4cpu"), Queue("g", 1), Queue("o", 1), Group("g/a", 1, Running(2, "1cpu", "n1")), Group("o/b", 1, Running(1, "1cpu", "n1")),
				Group("g/gang", 1, Pending(1, "2cpu"))),
			then: Given(Group("o/new", 1, Pending(1, "1cpu"))),
			want: `bind o/new-0 n1`,
		},
		"the gang of a queue that would hold more than it deserves, and is first in queue order": {
			given: Given(Node("n1", "4cpu"), Queue("g", 1), Queue("o", 1), Group("o/a", 1, Running(3, "1cpu", "n1")), Group("g/gang", 1, Pending(1, "3cpu"))),
			then:  Given(Group("o/new", 1, Pending(1, "1cpu"))),
			want:  ``,
			waits: `waits o/new NotEnoughResources: needs 1 more pod of 1 cpu; 0/1 nodes are available: 1 reserved for another PodGroup (ns/gang)`,
		},
		"equal gangs of two namespaces, of which one may know the gang": {
			given: Given(Node("n1", "4cpu"), Queue("g", 1), Queue("o", 1), Group("o/a", 1, Running(3, "1cpu", "n1")), Group("g/gang", 1, Pending(1, "3cpu"))),
			then:  Given(Group("o/new", 1, Pending(1, "1cpu")), Group("o/alien", 1, In("secret"), Pending(1, "1cpu"))),
			want:  ``,
			waits: `waits o/alien NotEnoughResources: needs 1 more pod of 1 cpu; 0/1 nodes are available: 1 reserved for another PodGroup
			        waits o/new NotEnoughResources: needs 1 more pod of 1 cpu; 0/1 nodes are available: 1 reserved for another PodGroup (ns/gang)`,
		},
		"a gang of another namespace, which messages do not name": {
			given: Given(Node("n1", "4cpu"), Queue("g", 1), Queue("o", 1), Group("o/a", 1, Running(3, "1cpu", "n1")), Group("g/gang", 1, In("secret"), Pending(1, "3cpu"))),
			then:  Given(Group("o/new", 1, Pending(1, "1cpu"))),
			want:  ``,
			waits: `waits o/new NotEnoughResources: needs 1 more pod of 1 cpu; 0/1 nodes are available: 1 reserved for another PodGroup
waits g/gang NotEnoughResources: needs 1 more pod of 3 cpu; 0/1 nodes are available: 1 Insufficient cpu; reserved: 1 node, because it has been pending for more than 5m0s; 0 of 1 pods could start there now`,
		},
		"the gang of a queue that never borrows, and would": {
			given: Given(Node("n1", "4cpu"), Queue("g", 1, NotReclaimable()), Queue("o", 1), Group("o/a", 1, Running(3, "1cpu", "n1")), Group("g/gang", 1, Pending(1, "3cpu"))),
			then:  Given(Group("o/new", 1, Pending(1, "1cpu"))),
			want:  `bind o/new-0 n1`,
		},
		"one gang of each queue, on nodes of its own": {
			given: Given(Nodes(3, "n", "4cpu"), Queue("g", 2), Queue("h", 2), Queue("o", 1),
				Group("o/a", 1, Running(2, "1cpu", "n1"), Running(2, "1cpu", "n2"), Running(2, "1cpu", "n3")),
				Group("g/gang", 1, Pending(1, "4cpu")), Group("h/gang2", 1, Pending(1, "4cpu")), Group("g/gang3", 1, Pending(1, "4cpu"))),
			then: Given(Group("o/new", 1, Pending(6, "1cpu"))),
			want: `bind o/new-0 n3
			       bind o/new-1 n3`,
			waits: `waits g/gang NotEnoughResources: needs 1 more pod of 4 cpu; 0/3 nodes are available: 3 Insufficient cpu; reserved: 1 node, because it has been pending for more than 5m0s; 0 of 1 pods could start there now; waiting for resources of pods there: ns/a-0, ns/a-1
waits g/gang3 NotEnoughResources: needs 1 more pod of 4 cpu; 0/3 nodes are available: 3 Insufficient cpu
waits h/gang2 NotEnoughResources: needs 1 more pod of 4 cpu; 0/3 nodes are available: 3 Insufficient cpu; reserved: 1 node, because it has been pending for more than 5m0s; 0 of 1 pods could start there now; waiting for resources of pods there: ns/a-2, ns/a-3`,
		},
		"jobs of its queue with higher priority use the reservation, others do not": {
			given: Given(Node("n1", "4cpu"), Queue("g", 4), Queue("o", 1), Group("o/a", 1, Running(1, "1cpu", "n1")),
				Group("g/older", 1), Group("g/gang", 1, Pending(1, "4cpu", Priority(5)))),
			then: Given(More("g/older", Pending(1, "1cpu", Priority(5))), Group("g/above", 1, Pending(2, "1cpu", Priority(6))), Group("g/equal", 1, Pending(1, "1cpu", Priority(5))),
				Group("o/new", 1, Pending(1, "1cpu", Priority(6)))),
			want: `bind g/above-0 n1
			       bind g/above-1 n1`,
			waits: `waits g/older NotEnoughResources: needs 1 more pod of 1 cpu; 0/1 nodes are available: 1 reserved for another PodGroup (ns/gang)
waits g/equal NotEnoughResources: needs 1 more pod of 1 cpu; 0/1 nodes are available: 1 reserved for another PodGroup (ns/gang)
waits o/new NotEnoughResources: needs 1 more pod of 1 cpu; 0/1 nodes are available: 1 reserved for another PodGroup (ns/gang)`,
		},
		"a gang that must stay together has a reservation in one zone": {
			given: Given(Nodes(2, "a", "2cpu", Label("zone", "a")), Nodes(2, "b", "2cpu", Label("zone", "b")), Queue("g", 4), Queue("o", 1),
				Group("o/a", 1, Running(1, "1cpu", "a1"), Running(2, "1cpu", "a2"), Running(1, "1cpu", "b1"), Running(1, "1cpu", "b2")),
				Group("g/gang", 3, Label("app", "mpi"), Near("zone", "app=mpi"), Pending(3, "1cpu"))),
			then: Given(Group("o/new", 1, Pending(2, "1cpu"))),
			want: `bind o/new-0 a1`,
		},
		"a gang with spread constraints has no reservation": {
			given: Given(Node("n1", "2cpu", Label("zone", "a")), Node("n2", "2cpu", Label("zone", "b")), Queue("g", 4), Queue("o", 1),
				Group("o/a", 1, Running(1, "1cpu", "n1"), Running(2, "1cpu", "n2")),
				Group("g/gang", 2, Label("app", "x"), Spread(1, "zone", "app=x"), Pending(2, "1cpu"))),
			then: Given(Group("o/new", 1, Pending(1, "1cpu"))),
			want: `bind o/new-0 n1`,
		},
		"a gang that has lost a member, and could not have it where the others are": {
			given: Given(Node("n1", "5cpu"), Node("n2", "4cpu"), Queue("g", 4), Queue("o", 1),
				Group("o/a", 1, Running(1, "1cpu", "n1"), Running(4, "1cpu", "n2")),
				Group("g/gang", 2, Running(1, "3cpu", "n1"), Pending(1, "3cpu"))),
			then:  Given(Group("o/new", 1, Pending(1, "1cpu"))),
			want:  `bind o/new-0 n1`,
			waits: `waits g/gang NotEnoughResources: needs 1 more pod of 3 cpu; 0/2 nodes are available: 2 Insufficient cpu; reserved: 1 node, because it has been pending for more than 5m0s; 0 of 1 pods could start there now; waiting for resources of pods there: ns/a-1, ns/a-2, ns/a-3 and 1 more`,
		},
		"a gang that has lost a member": {
			given: Given(Nodes(2, "n", "4cpu"), Queue("g", 4), Queue("o", 1), Group("o/a", 1, Running(1, "1cpu", "n1"), Running(2, "1cpu", "n2")),
				Group("g/gang", 2, Running(1, "3cpu", "n1"), Pending(1, "3cpu"))),
			then: Given(Group("o/new", 1, Pending(1, "1cpu"))),
			want: ``,
		},
		"a queue whose job could never start does not go first": {
			given: Given(Node("n1", "4cpu"), Queue("g", 1), Queue("o", 1), Queue("z", 1), Group("z/huge", 1, Pending(1, "9cpu")),
				Group("o/a", 1, Running(3, "1cpu", "n1")), Group("g/gang", 1, Pending(1, "3cpu"))),
			then: Given(Group("o/new", 1, Pending(1, "1cpu"))),
			want: ``,
		},
		"a gang that fits in one order only": {
			given: Given(Node("n1", "4cpu"), Node("n2", "1cpu"), Queue("g", 4), Queue("o", 1), Group("o/a", 1, Running(3, "1cpu", "n1"), Running(1, "1cpu", "n2")),
				Group("g/gang", 2, Pending(1, "1cpu"), Pending(1, "4cpu"))),
			then: Given(Group("o/new", 1, Pending(1, "1cpu"))),
			want: ``,
		},
		"a gang that has been complete for six minutes, whatever came later": {
			given: Given(Node("n1", "4cpu"), Queue("g", 4), Queue("o", 1), Group("o/a", 1, Running(1, "1cpu", "n1")), Group("g/gang", 1, Pending(1, "4cpu"))),
			then:  Given(More("g/gang", Pending(1, "4cpu")), Group("o/new", 1, Pending(1, "1cpu"))),
			want:  ``,
		},
		"a gang that is complete only now": {
			given: Given(Node("n1", "4cpu"), Queue("g", 4), Queue("o", 1), Group("o/a", 1, Running(1, "1cpu", "n1")), Group("g/gang", 2, Pending(1, "2cpu"))),
			then:  Given(More("g/gang", Pending(1, "2cpu")), Group("o/new", 1, Pending(1, "1cpu"))),
			want:  `bind o/new-0 n1`,
		},
		"surplus has no reservation": {
			given: Given(Node("n1", "4cpu"), Queue("g", 4), Queue("o", 1), Group("o/a", 1, Running(1, "1cpu", "n1")),
				Group("g/gang", 1, Running(1, "1cpu", "n1"), Pending(1, "3cpu"))),
			then: Given(Group("o/new", 1, Pending(1, "1cpu"))),
			want: `bind o/new-0 n1`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := New(t, BuiltIn(t), tc.given)
			c.Wait(6 * time.Minute)
			c.Add(tc.then...)
			if diff := cmp.Diff(FormatTranscript(tc.want), c.Cycle()); diff != "" {
				t.Errorf("decisions (-want +got):\n%s", diff)
			}
			reported := strings.Split(c.Waits(), "\n")
			for line := range strings.Lines(tc.waits) {
				if !slices.Contains(reported, strings.TrimSpace(line)) {
					t.Errorf("not reported: %s\nbut\n%s", line, c.Waits())
				}
			}
		})
	}
}

// A gang keeps its reservation, although another queue is first in queue order now.
func TestReservationsPersist(t *testing.T) {
	c := New(t, BuiltIn(t), Given(Node("n1", "6cpu"), Queue("g", 1), Queue("o", 1), Queue("p", 1),
		Group("g/a", 1, Running(1, "1cpu", "n1")), Group("o/b", 1, Running(3, "1cpu", "n1")), Group("g/gang", 1, Pending(1, "4cpu"))))
	c.Wait(6 * time.Minute)
	c.Cycle()
	c.Add(Group("p/new", 1, Pending(1, "1cpu")))
	if got := c.Cycle(); got != "" {
		t.Errorf("other jobs use the reservation:\n%s", got)
	}
	c.Delete("p/new-0")
	c.Succeed("o/b-0", "o/b-1", "o/b-2")
	c.Add(Group("g/later", 1, Pending(1, "1cpu")))
	CompareTranscripts(t, `bind g/gang-0 n1
	         bind g/later-0 n1`, c.Cycle()) // the gang needs no reservation any more
}

// Large and small members keep to the nodes that each has chosen, although another one is emptier now.
func TestReservationsKeepTheirNodes(t *testing.T) {
	c := New(t, BuiltIn(t), Given(Nodes(2, "n", "4cpu"), Queue("g", 4), Queue("o", 1),
		Group("o/a", 1, Running(4, "1cpu", "n1"), Running(2, "1cpu", "n2")),
		Group("g/gang", 2, Pending(1, "1cpu"), Pending(1, "4cpu"))))
	c.Wait(6 * time.Minute)
	c.Cycle()
	c.Succeed("o/a-0", "o/a-1", "o/a-2")
	c.Add(Group("o/new", 1, Pending(4, "1cpu")))
	CompareTranscripts(t, `bind o/new-0 n1
	         bind o/new-1 n1`, c.Cycle())
}

// A gang that must run in one zone keeps its reservation there, although another zone has more free resources for a while.
func TestReservationsKeepTheirZone(t *testing.T) {
	c := New(t, BuiltIn(t), Given(Node("a", "4cpu", Label("zone", "a")), Node("b", "4cpu", Label("zone", "b")), Queue("g", 4), Queue("o", 1),
		Group("o/a", 1, Running(3, "1cpu", "a"), Running(4, "1cpu", "b")),
		Group("g/gang", 4, Label("app", "mpi"), Near("zone", "app=mpi"), Pending(4, "1cpu"))))
	c.Wait(6 * time.Minute)
	c.Cycle()
	c.Succeed("o/a-3", "o/a-4")
	c.Add(Group("o/new", 1, Pending(3, "1cpu")))
	CompareTranscripts(t, `bind o/new-0 b
	         bind o/new-1 b`, c.Cycle())
}
