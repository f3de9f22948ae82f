// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"fmt"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model/modeltest"
)

// fixture is a cluster with running pods, each with its end, and pending pods.
type fixture struct {
	cluster *model.Cluster
	ends    map[string]int64
	now     int64

	readings Readings
}

func (f *fixture) plan() *Plan {
	nodes := f.cluster.Nodes()
	return New(Model{
		Now: f.now, Nodes: nodes,
		Readings: &f.readings,
		Ends: func(t *api.TaskInfo) (int64, Certainty) {
			if end, known := f.ends[t.Pod.Name]; known {
				return end, 0
			}
			return NoEnd, 0
		},
		EachFeasible: func(_ *api.TaskInfo, visit func(int)) {
			for i, n := range nodes {
				if n != nil && n.Exists() {
					visit(i)
				}
			}
		},
	})
}

// run adds a pod that runs on a node until its end.
func (f *fixture) run(name string, cpus int, node string, end int64) {
	f.cluster.Events().SetPod(Pod(name, cpus, On(node), func(p *v1.Pod) { p.Status.Phase = v1.PodRunning }))
	if end > 0 {
		f.ends[name] = end
	}
}

// gang adds pending pods and returns them as a gang.
func (f *fixture) gang(name string, run int64, cpus ...int) Gang {
	g := Gang{Run: run}
	for i, n := range cpus {
		pod := Pod(fmt.Sprintf("%s-%d", name, i), n)
		f.cluster.Events().SetPod(pod)
		g.Tasks = append(g.Tasks, f.cluster.Tasks()[api.TaskID(pod.UID)])
	}
	return g
}

func newFixture(nodes, cpus int) *fixture {
	f := &fixture{cluster: NewCluster(), ends: map[string]int64{}}
	for i := range nodes {
		f.cluster.Events().SetNode(Node(fmt.Sprintf("n%d", i), cpus, MaxPods(1000)))
	}
	f.cluster.Events().Recompute()
	return f
}

// TestStartsEqualThoseOfATwin compares starts on nodes of one CPU with those of a plan that knows only the number of free
// nodes at each time. Nodes are equal, so a gang fits if the number does.
func TestStartsEqualThoseOfATwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.IntRange(1, 7).Draw(t, "nodes")
		f := newFixture(nodes, 1)
		var ends []int64
		for i := range rapid.IntRange(0, nodes).Draw(t, "running") {
			end := int64(rapid.IntRange(0, 9).Draw(t, "end")) // 0: not known
			f.run(fmt.Sprintf("old%d", i), 1, fmt.Sprintf("n%d", i), end)
			if end == 0 {
				end = NoEnd
			}
			ends = append(ends, end)
		}
		p, twin := f.plan(), &countPlan{nodes: nodes, ends: ends}
		for i := range rapid.IntRange(1, 8).Draw(t, "gangs") {
			size := rapid.IntRange(1, nodes).Draw(t, "size")
			run := int64(rapid.SampledFrom([]int{1, 2, 3, 5, 8, 0}).Draw(t, "run"))
			if run == 0 {
				run = NoEnd
			}
			ones := make([]int, size)
			for i := range ones {
				ones[i] = 1
			}
			got, want := p.Add(f.gang(fmt.Sprintf("g%d", i), run, ones...)), twin.add(size, run)
			switch {
			case got == nil && want == NoEnd:
			case got == nil || got.At != want:
				t.Fatalf("gang %d of %d with run time %d starts at %v, want %d", i, size, run, got, want)
			}
			p.check(t)
		}
	})
}

// countPlan is the twin.
type countPlan struct {
	nodes  int
	ends   []int64
	starts [][3]int64 // at, end, size
}

func (c *countPlan) free(at int64) int {
	free := c.nodes
	for _, end := range c.ends {
		if end > at {
			free--
		}
	}
	for _, s := range c.starts {
		if s[0] <= at && at < s[1] {
			free -= int(s[2])
		}
	}
	return free
}

func (c *countPlan) add(size int, run int64) int64 {
	for at := int64(0); at < 1000; at++ {
		end := int64(NoEnd)
		if run < NoEnd {
			end = at + run
		}
		fits := true
		for time := at; time < min(end, 1000) && fits; time++ {
			fits = c.free(time) >= size
		}
		if fits {
			c.starts = append(c.starts, [3]int64{at, end, int64(size)})
			return at
		}
	}
	return NoEnd
}

type fataler interface{ Fatalf(string, ...any) }

// check checks that at each time the placements of all starts fit on their nodes, that starts are in order, and that each
// task has a node.
func (p *Plan) check(t fataler) {
	for i, s := range p.starts {
		if i > 0 && s.At < p.starts[i-1].At {
			t.Fatalf("start %d is at %d, after one at %d", i, s.At, p.starts[i-1].At)
		}
		if len(s.Placements) != len(s.Tasks) {
			t.Fatalf("start %d has %d placements of %d tasks", i, len(s.Placements), len(s.Tasks))
		}
		for _, d := range s.Placements {
			c := p.available(d.Node.Index)
			for dim, n := range c.at(s.At, nil) {
				if n < 0 && d.Task.Request.At(dim) > 0 {
					t.Fatalf("at %d node %s has %d of dimension %d", s.At, d.Node.Name, n, dim)
				}
			}
		}
	}
}

// TestStartsOfDifferentSizes adds gangs of tasks of two sizes on nodes of several CPUs: starts that were planned stay, and the
// plan is possible.
func TestStartsOfDifferentSizes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.IntRange(1, 5).Draw(t, "nodes")
		f := newFixture(nodes, 8)
		for i := range rapid.IntRange(0, 3*nodes).Draw(t, "running") {
			f.run(fmt.Sprintf("old%d", i), rapid.IntRange(1, 2).Draw(t, "cpus"), fmt.Sprintf("n%d", i%nodes), int64(rapid.IntRange(0, 9).Draw(t, "end")))
		}
		p, planned := f.plan(), map[*Start]int64{}
		for i := range rapid.IntRange(1, 6).Draw(t, "gangs") {
			var cpus []int
			for range rapid.IntRange(0, 3).Draw(t, "large") {
				cpus = append(cpus, 5)
			}
			for range rapid.IntRange(1, 5).Draw(t, "small") {
				cpus = append(cpus, 2)
			}
			if s := p.Add(f.gang(fmt.Sprintf("g%d", i), int64(rapid.IntRange(1, 6).Draw(t, "run")), cpus...)); s != nil {
				planned[s] = s.At
			}
			p.check(t)
			for s, at := range planned {
				if s.At != at {
					t.Fatalf("a start moved from %d to %d", at, s.At)
				}
			}
			if !p.Choose() {
				t.Fatalf("the nodes cannot be chosen again")
			}
			p.check(t)
		}
	})
}

// TestHold has the example of vector B-1: what a gang needs of idle nodes is what does not become free by itself.
func TestHold(t *testing.T) {
	f := newFixture(10, 1)
	for i := range 6 {
		f.run(fmt.Sprintf("long%d", i), 1, fmt.Sprintf("n%d", i), 10)
	}
	for i := range 2 {
		f.run(fmt.Sprintf("short%d", i), 1, fmt.Sprintf("n%d", 6+i), 4)
	}
	p := f.plan()
	start := p.Add(f.gang("j1", 10, 1, 1, 1, 1, 1, 1, 1, 1))
	if start == nil || start.At != 10 {
		t.Fatalf("start %v, want 10", start)
	}
	held := 0
	p.Hold(func(*Start, *api.NodeInfo, api.Resource) { held++ })
	if held != 0 {
		t.Errorf("%d nodes are held, want none: the two idle nodes are not needed", held)
	}
	p.Remove(start)
	if start = p.Add(f.gang("j2", 10, 1, 1, 1, 1, 1, 1, 1, 1, 1)); start == nil || start.At != 10 {
		t.Fatalf("start %v, want 10", start)
	}
	var names []string
	p.Hold(func(_ *Start, n *api.NodeInfo, amount api.Resource) {
		names = append(names, fmt.Sprint(n.Name, " ", amount.At(api.CPU)))
	})
	if len(names) != 1 || names[0] != "n8 1000" {
		t.Errorf("held: %v, want one CPU of n8", names)
	}
}

// in sets the domains of a gang: those of nodes of equal numbers modulo so many.
func (f *fixture) in(g Gang, racks int) Gang {
	for rack := range racks {
		g.Domains = append(g.Domains, &Domain{Path: fmt.Sprint(rack), Nodes: modulo{rack, racks, len(f.cluster.Nodes())}})
	}
	return g
}

// modulo is a NodeSet.
type modulo struct{ rest, of, nodes int }

func (m modulo) Has(index int) bool { return index%m.of == m.rest }

func (m modulo) Each(visit func(int)) {
	for i := m.rest; i < m.nodes; i += m.of {
		visit(i)
	}
}

// drawFixture draws nodes of one CPU, most of which run a pod, and the ends of these pods; 0 is none.
func drawFixture(t *rapid.T) (f *fixture, ends []int64) {
	ends = rapid.SliceOfN(rapid.Int64Range(0, 9), 1, 9).Draw(t, "ends")
	f = newFixture(len(ends), 1)
	for i, end := range ends {
		if end > 0 {
			f.run(fmt.Sprintf("old%d", i), 1, fmt.Sprintf("n%d", i), end)
		}
	}
	return f, ends
}

// TestStartsInDomains adds gangs, most of which must be in one of several racks of nodes of one CPU. No gang starts later than in
// the rack that holds it first while all others keep their nodes, and the first one starts exactly then. Starts that were
// planned stay, also if nodes are chosen again.
func TestStartsInDomains(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, ends := drawFixture(t)
		nodes, racks := len(ends), rapid.IntRange(1, 3).Draw(t, "racks")
		p, planned := f.plan(), map[*Start]int64{}
		for i := range rapid.IntRange(1, 6).Draw(t, "gangs") {
			ones := slices.Repeat([]int{1}, rapid.IntRange(1, nodes).Draw(t, "size"))
			g, in := f.gang(fmt.Sprintf("g%d", i), int64(rapid.SampledFrom([]int{1, 2, 5, 8}).Draw(t, "run")), ones...), 1
			if rapid.IntRange(0, 3).Draw(t, "required") > 0 {
				in, g = racks, f.in(g, racks)
			}
			want := p.firstIn(g, ends, in)
			got := p.Add(g)
			switch {
			case got == nil && want == NoEnd:
			case got == nil, i == 0 && got.At != want, got.At > want:
				t.Fatalf("gang %d of %d in one of %d racks starts at %v, want %d", i, len(ones), in, got, want)
			default:
				planned[got] = got.At
			}
			for range 2 {
				p.check(t)
				for s, at := range planned {
					if s.At != at {
						t.Fatalf("a start moved from %d to %d", at, s.At)
					}
					for _, d := range s.Placements {
						if s.Domain != nil && !s.Domain.Nodes.Has(d.Node.Index) {
							t.Fatalf("node %s is not in rack %s", d.Node.Name, s.Domain.Path)
						}
					}
				}
				if !p.Choose() {
					t.Fatalf("the nodes cannot be chosen again")
				}
			}
		}
	})
}

// TestStartsMoveToAnotherDomain: of two racks, one has an idle node, and all other nodes are free at 5. A gang of two is planned
// there in the first rack. One of which members run in that rack needs the idle node, so the other one starts in the second rack.
func TestStartsMoveToAnotherDomain(t *testing.T) {
	f := newFixture(4, 1)
	for _, node := range []string{"n1", "n2", "n3"} {
		f.run("on-"+node, 1, node, 5)
	}
	p := f.plan()
	waiting := p.Add(f.in(f.gang("waiting", 10, 1, 1), 2))
	if waiting == nil || waiting.At != 5 || waiting.Domain.Path != "0" {
		t.Fatalf("start %v, want 5 in rack 0", waiting)
	}
	pinned := f.in(f.gang("pinned", NoEnd, 1), 2)
	pinned.Domains = pinned.Domains[:1]
	if s := p.Add(pinned); s == nil || s.At != 0 {
		t.Errorf("start %v, want 0", s)
	}
	if waiting.At != 5 || waiting.Domain.Path != "1" {
		t.Errorf("start %v, want 5 in rack 1", waiting)
	}
	p.check(t)
}

// firstIn is the twin: the first time at which enough nodes of one rack are free for as long as a gang runs.
func (p *Plan) firstIn(g Gang, ends []int64, racks int) int64 {
	for at := int64(0); at < 100; at++ {
		for rack := range racks {
			n := 0
			for node := rack; node < len(ends); node += racks {
				if isFree(p, node, ends[node], at, at+g.Run) {
					n++
				}
			}
			if n >= len(g.Tasks) {
				return at
			}
		}
	}
	return NoEnd
}

// isFree reports whether a node whose pod ends at a time is free in a period.
func isFree(p *Plan, node int, end, from, until int64) bool {
	if end > from {
		return false
	}
	return !slices.ContainsFunc(p.starts, func(s *Start) bool {
		return s.At < until && from < s.end() && slices.ContainsFunc(s.Placements, func(d api.Decision) bool { return d.Node.Index == node })
	})
}
