// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// racksOf returns the domains of nodes with equal numbers modulo so many, inside the domain "b".
func (f *fixture) racksOf(racks int) (list []*Domain) {
	for rack := range racks {
		list = append(list, &Domain{Path: fmt.Sprintf("b/%d", rack), Nodes: modulo{rack, racks, len(f.cluster.Nodes())}})
	}
	return list
}

// inSegments makes segments of so many tasks be in one rack each; inner says that they are parts of a part.
func (f *fixture) inSegments(g Gang, size, racks int, inner bool) Gang {
	list := f.racksOf(racks)
	for tasks := range slices.Chunk(g.Tasks, size) {
		g.Parts = append(g.Parts, &Part{Tasks: tasks, Domains: list})
	}
	if inner {
		g.Parts = []*Part{{Tasks: g.Tasks, Domains: []*Domain{{Path: "b", Nodes: modulo{0, 1, len(f.cluster.Nodes())}}}, Parts: g.Parts}}
	}
	return g
}

// TestStartsInSegments adds gangs of equal segments, each of which must be in one of several racks of nodes of one CPU. No gang
// starts later than when the racks hold its segments while all others keep their nodes, and the first one starts exactly then.
func TestStartsInSegments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, ends := drawFixture(t)
		racks := rapid.IntRange(1, 3).Draw(t, "racks")
		p, planned := f.plan(), map[*Start]int64{}
		for i := range rapid.IntRange(1, 5).Draw(t, "gangs") {
			size := rapid.IntRange(1, 4).Draw(t, "size")
			ones := slices.Repeat([]int{1}, size*rapid.IntRange(1, 4).Draw(t, "segments"))
			g := f.gang(fmt.Sprintf("g%d", i), int64(rapid.SampledFrom([]int{1, 2, 5, 8}).Draw(t, "run")), ones...)
			g = f.inSegments(g, size, racks, rapid.Bool().Draw(t, "inner"))
			want, got := p.firstInSegments(g, ends, size, racks), p.Add(g)
			switch {
			case got == nil && want == NoEnd:
			case got == nil, i == 0 && got.At != want, got.At > want:
				t.Fatalf("gang %d of %d in segments of %d in %d racks starts at %v, want %d", i, len(ones), size, racks, got, want)
			default:
				planned[got] = got.At
			}
			for range 2 {
				p.check(t)
				for s, at := range planned {
					if s.At != at || !s.findDomain() || !inRacks(s, size, racks) && s == got {
						t.Fatalf("a start moved from %d to %d, or to other racks: %v", at, s.At, s.Placements)
					}
				}
				if !p.Choose() {
					t.Fatalf("the nodes cannot be chosen again")
				}
			}
		}
		again := f.plan()
		for _, s := range p.Starts() {
			if _, ok := again.Keep(s.Gang, s.At, s.Placements); !ok {
				t.Fatalf("a start is not kept")
			}
		}
	})
}

func inRacks(s *Start, size, racks int) bool {
	for i, d := range s.Placements {
		if d.Node.Index%racks != s.Placements[i/size*size].Node.Index%racks {
			return false
		}
	}
	return true
}

// firstInSegments is the twin: the first time at which the free nodes of the racks hold enough segments for as long as a gang
// runs.
func (p *Plan) firstInSegments(g Gang, ends []int64, size, racks int) int64 {
	for at := int64(0); at < 100; at++ {
		segments := 0
		for rack := range racks {
			n := 0
			for node := rack; node < len(ends); node += racks {
				if isFree(p, node, ends[node], at, at+g.Run) {
					n++
				}
			}
			segments += n / size
		}
		if segments >= len(g.Tasks)/size {
			return at
		}
	}
	return NoEnd
}

// TestPartsOfDifferentSizes: of two racks with 2 and 3 nodes, which are free from 5 on, the larger part gets the larger one, in
// whatever order the racks are listed; and a part without domains gets what is left.
func TestPartsOfDifferentSizes(t *testing.T) {
	f := newFixture(5, 1)
	for i := range 5 {
		f.run(fmt.Sprintf("old%d", i), 1, fmt.Sprintf("n%d", i), 5)
	}
	g := f.gang("g", NoEnd, 1, 1, 1, 1, 1)
	racks := f.racksOf(2)
	g.Parts = []*Part{{Tasks: g.Tasks[:3], Domains: racks}, {Tasks: g.Tasks[3:4], Domains: racks}, {Tasks: g.Tasks[4:]}}
	p := f.plan()
	s := p.Add(g)
	if s == nil || s.At != 5 {
		t.Fatalf("start %v, want 5", s)
	}
	for i, want := range []int{0, 0, 0, 1, 1} {
		if got := s.Placements[i].Node.Index % 2; got != want {
			t.Errorf("task %d is in rack %d, want %d", i, got, want)
		}
	}
	g.Parts[0].Domains = racks[1:]
	if s := f.plan().Add(g); s != nil {
		t.Errorf("three tasks start in a rack of two nodes at %d", s.At)
	}
}

// TestADomainIsLeftAgain: a part of tasks of 2 and 1 cpus tries the rack with one idle node of 2 cpus first, where only one of
// them fits, and then the other rack. The idle node is left for a task that may be anywhere.
func TestADomainIsLeftAgain(t *testing.T) {
	f := newFixture(4, 2)
	f.run("old", 2, "n2", 0)
	g := f.gang("g", NoEnd, 2, 1, 2)
	g.Parts = []*Part{{Tasks: g.Tasks[:2], Domains: f.racksOf(2)}, {Tasks: g.Tasks[2:]}}
	s := f.plan().Add(g)
	if s == nil || s.At != 0 || len(s.Placements) != 3 {
		t.Fatalf("start %v, want one at 0 of three tasks", s)
	}
	for i, want := range []string{"n1", "n3", "n0"} {
		if got := s.Placements[i].Node.Name; got != want {
			t.Errorf("task %d is on %s, want %s", i, got, want)
		}
	}
}
