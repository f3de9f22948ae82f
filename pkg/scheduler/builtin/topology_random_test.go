// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// topologyLabels are the levels of random clusters, the widest first.
func topologyLabels() []string { return []string{"zone", "block", "rack"} }

// randomTopology is a cluster of at most 12 nodes in at most 3 levels, and a simple model of it: what is free on each node,
// and in which domain the node is.
type randomTopology struct {
	t    *rapid.T
	free map[string]int            // cpus, by node
	in   map[string]map[int]string // by node and level: the path of its domain; missing if it is in none
	rows []Row

	nodes []string
}

func newRandomTopology(t *rapid.T) *randomTopology {
	r := &randomTopology{t: t, free: map[string]int{}, in: map[string]map[int]string{}}
	r.rows = Given(Topology("default", topologyLabels()...), Queue("q", 1))
	for i := range rapid.IntRange(1, 12).Draw(t, "nodes") {
		name, cpus := fmt.Sprintf("n%d", i), rapid.IntRange(1, 3).Draw(t, "cpus")
		r.free[name], r.in[name] = cpus, map[int]string{}
		var options []NodeOption
		path, inside := "", true
		for level, label := range topologyLabels() {
			value := rapid.SampledFrom([]string{"a", "b", "a", "b", ""}).Draw(t, label)
			if value != "" {
				options = append(options, Label(label, value))
			}
			path += "/" + value
			if inside = inside && value != ""; inside {
				r.in[name][level] = path
			}
		}
		r.nodes = append(r.nodes, name)
		r.rows = append(r.rows, Node(name, fmt.Sprintf("%dcpu", cpus), options...))
	}
	return r
}

// run lets pods of 1 cpu run on random nodes.
func (r *randomTopology) run(priority int32) {
	for i := range rapid.IntRange(0, 8).Draw(r.t, "running") {
		if node := rapid.SampledFrom(r.nodes).Draw(r.t, "node"); r.free[node] > 0 {
			r.free[node]--
			r.rows = append(r.rows, Group(fmt.Sprintf("q/old%d", i), 1, Running(1, "1cpu", node, Priority(priority))))
		}
	}
}

// confirm confirms the binds in flight, and returns where pods run, as further lines of the transcript. Pods that are being
// deleted are left out: a gang that was evicted may start elsewhere.
func (r *randomTopology) confirm(s *Scenario) string {
	s.ConfirmBinds(s.InFlight()...)
	evicted := s.EvictionsInFlight()
	runs := ""
	for _, node := range r.nodes {
		for _, pod := range s.PodsOn(node) {
			if slices.Contains(evicted, pod) {
				continue
			}
			runs += "\nrun " + pod + " " + node
		}
	}
	return runs
}

// holds reports whether a gang fits into one domain of a level.
func (r *randomTopology) holds(level, pods, cpus int) bool {
	sums := map[string]int{}
	for node, free := range r.free {
		if path, ok := r.in[node][level]; ok {
			sums[path] += free / cpus
		}
	}
	for _, n := range sums {
		if n >= pods {
			return true
		}
	}
	return false
}

// domainsOf returns the domains of a level where the pods of a group have nodes, from binds, holds and placements in a
// transcript.
func (r *randomTopology) domainsOf(level int, group, transcript string) []string {
	var list []string
	for line := range strings.Lines(transcript) {
		fields := strings.Fields(line)
		if len(fields) == 3 && fields[0] != "evict" && strings.HasPrefix(fields[1], group+"-") {
			path, ok := r.in[fields[2]][level]
			if !ok {
				path = "none"
			}
			if !slices.Contains(list, path) {
				list = append(list, path)
			}
		}
	}
	return list
}

// TestTopologyFindsAPlacement compares with a search of all domains: a gang of equal pods starts if and only if one domain
// of its level holds it, and all of its pods are in one, surplus included.
func TestTopologyFindsAPlacement(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRandomTopology(t)
		r.run(0)
		level, cpus := rapid.IntRange(0, 2).Draw(t, "level"), rapid.IntRange(1, 2).Draw(t, "request")
		pods, surplus := rapid.IntRange(1, 8).Draw(t, "pods"), rapid.IntRange(0, 4).Draw(t, "surplus")
		want := r.holds(level, pods, cpus)
		s := New(t, BuiltIn(t), append(r.rows,
			Group("q/gang", int32(pods), Within(topologyLabels()[level]), Pending(pods+surplus, fmt.Sprintf("%dcpu", cpus)))))
		decisions := s.Cycle()
		if started := CountBinds(decisions)["gang"] >= pods; started != want {
			t.Fatalf("the gang starts: %t, want %t:\n%s\n%s", started, want, decisions, s.Waits())
		}
		if in := r.domainsOf(level, "q/gang", decisions); len(in) > 1 || slices.Contains(in, "none") {
			t.Fatalf("the gang is in the domains %v:\n%s", in, decisions)
		}
	})
}

// TestTopologyIsNeverBroken runs cycles with all actions and reservations, in which pods end, nodes vanish and others come,
// and asserts that the pods of a gang that have nodes are in one domain.
func TestTopologyIsNeverBroken(t *testing.T) {
	policy := AllActions + "starvationAfter: 0s\n"
	rapid.Check(t, func(t *rapid.T) {
		r := newRandomTopology(t)
		level := rapid.IntRange(0, 2).Draw(t, "level")
		r.run(0)
		for i := range rapid.IntRange(1, 3).Draw(t, "gangs") {
			pods := rapid.IntRange(1, 5).Draw(t, "pods")
			r.rows = append(r.rows, Group(fmt.Sprintf("q/gang%d", i), int32(pods), Within(topologyLabels()[level]), Priority(int32(i)),
				Pending(pods+rapid.IntRange(0, 2).Draw(t, "surplus"), "1cpu")))
		}
		s := New(t, BuiltIn(t), r.rows, WithConfig(policy))
		for range rapid.IntRange(1, 4).Draw(t, "cycles") {
			placed := s.Cycle()
			placed += r.confirm(s)
			for i := range 3 {
				if in := r.domainsOf(level, fmt.Sprintf("q/gang%d", i), placed); len(in) > 1 || slices.Contains(in, "none") {
					t.Fatalf("gang %d is in the domains %v:\n%s", i, in, placed)
				}
			}
			if evicted := s.EvictionsInFlight(); len(evicted) > 0 && rapid.Bool().Draw(t, "end") {
				s.FinishEvictions(evicted...)
				s.CreateAgain(evicted...)
			}
		}
	})
}

// fewest returns in how many domains of a level a gang has to be at least within one domain of a wider level, or -1 for
// anywhere; 0 if none holds it, and -1 if only those hold it that need nodes which are in no domain of the level.
func (r *randomTopology) fewest(wider, level, pods, cpus int) int {
	sums := map[string]map[string]int{}
	for node, free := range r.free {
		around, inside := "everything", true
		if wider >= 0 {
			around, inside = r.in[node][wider], r.in[node][wider] != ""
		}
		if inside {
			if sums[around] == nil {
				sums[around] = map[string]int{}
			}
			sums[around][r.in[node][level]] += free / cpus
		}
	}
	best := 0
	for _, inside := range sums {
		rest := inside[""]
		delete(inside, "")
		count := 0
		left := pods
		for _, n := range slices.SortedFunc(maps.Values(inside), func(a, b int) int { return b - a }) {
			if left > 0 && n > 0 {
				left -= n
				count++
			}
		}
		switch {
		case left > rest:
		case left > 0:
			best = cmp.Or(best, -1)
		case best <= 0 || count < best:
			best = count
		}
	}
	return best
}

// TestTopologyUsesTheFewestDomains compares with a search of all domains: a gang of equal pods uses as few domains of the
// preferred level as possible, within one domain of the required level, or of the narrowest level that holds it.
func TestTopologyUsesTheFewestDomains(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRandomTopology(t)
		r.run(0)
		required, cpus := rapid.IntRange(-1, 2).Draw(t, "required"), rapid.IntRange(1, 2).Draw(t, "request")
		preferred, pods := rapid.IntRange(max(required, 0), 2).Draw(t, "preferred"), rapid.IntRange(1, 10).Draw(t, "pods")
		parts := []Part{Prefer(topologyLabels()[preferred], 0), Pending(pods, fmt.Sprintf("%dcpu", cpus))}
		want := 0
		if required >= 0 {
			parts = append(parts, Within(topologyLabels()[required]))
			want = r.fewest(required, preferred, pods, cpus)
		} else {
			for wider := preferred; wider >= -1 && want == 0; wider-- {
				want = r.fewest(wider, preferred, pods, cpus)
			}
		}
		s := New(t, BuiltIn(t), append(r.rows, Group("q/gang", int32(pods), parts...)))
		decisions := s.Cycle()
		used := len(r.domainsOf(preferred, "q/gang", decisions))
		if want >= 0 && used != want || want < 0 && used == 0 {
			t.Fatalf("the gang is in %d domains, want %d:\n%s\n%s", used, want, decisions, s.Waits())
		}
	})
}

// segmentsIn returns how many segments of equal pods fit in the domains of a level, at most within one domain of a wider
// level; -1 is the level of all nodes.
func (r *randomTopology) segmentsIn(wider, level, size, cpus int) int {
	free, around := map[string]int{}, map[string]string{}
	for node, n := range r.free {
		path, inside := r.in[node][level]
		if outer, ok := r.in[node][wider]; inside && (ok || wider < 0) {
			free[path] += n / cpus
			around[path] = outer
		}
	}
	sums, most := map[string]int{}, 0
	for path, n := range free {
		sums[around[path]] += n / size
		most = max(most, sums[around[path]])
	}
	return most
}

// TestTopologyOfSegments compares with a search of all domains: a gang of equal segments, each in one domain of a level, starts
// if and only if they fit, if required within one domain of a wider level; and each segment stays in one domain when pods are
// evicted, end and come again.
func TestTopologyOfSegments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRandomTopology(t)
		r.run(0)
		required, cpus := rapid.IntRange(-1, 2).Draw(t, "required"), rapid.IntRange(1, 2).Draw(t, "request")
		level, size := rapid.IntRange(max(required, 0), 2).Draw(t, "level"), rapid.IntRange(1, 4).Draw(t, "size")
		needed := rapid.IntRange(1, 4).Draw(t, "needed")
		all := needed + rapid.IntRange(0, 2).Draw(t, "more")
		parts := append(replicas("w", 0, all, size, fmt.Sprintf("%dcpu", cpus)),
			SubGroups(eachInOne(topologyLabels()[level], segments("w", int32(size), int32(needed)))), Priority(1))
		if required >= 0 {
			parts = append(parts, Within(topologyLabels()[required]))
		}
		options := rapid.SampledFrom([][]Option{nil, {WithConfig(AllActions + "starvationAfter: 0s\n")}}).Draw(t, "policy")
		s := New(t, BuiltIn(t), append(r.rows, Group("q/gang", 1, parts...)), options...)
		want := r.segmentsIn(required, level, size, cpus) >= needed
		for cycle := range rapid.IntRange(1, 3).Draw(t, "cycles") {
			placed := s.Cycle()
			if started := CountBinds(placed)["gang"] >= needed*size; cycle == 0 && started != want {
				t.Fatalf("the gang starts: %t, want %t:\n%s\n%s", started, want, placed, s.Waits())
			}
			placed += r.confirm(s)
			r.assertSegments(t, placed, size, all, level, required)
			if evicted := s.EvictionsInFlight(); len(evicted) > 0 {
				s.FinishEvictions(evicted...)
				s.CreateAgain(evicted...)
			}
		}
	})
}

// assertSegments asserts that the pods of each segment are in one domain, and all of them in one of the required level.
func (r *randomTopology) assertSegments(t *rapid.T, placed string, size, segments, level, required int) {
	for segment := range segments {
		in := map[string]bool{}
		for pod := segment * size; pod < (segment+1)*size; pod++ {
			for line := range strings.Lines(placed) {
				fields := strings.Fields(line)
				if len(fields) == 3 && fields[0] != "evict" && fields[1] == fmt.Sprintf("q/gang-%d", pod) {
					path, ok := r.in[fields[2]][level]
					in[path] = true
					if !ok {
						t.Fatalf("pod %d is in no domain:\n%s", pod, placed)
					}
				}
			}
		}
		if len(in) > 1 {
			t.Fatalf("segment %d is in several domains:\n%s", segment, placed)
		}
	}
	if required >= 0 {
		if in := r.domainsOf(required, "q/gang", placed); len(in) > 1 || slices.Contains(in, "none") {
			t.Fatalf("the gang is in the domains %v:\n%s", in, placed)
		}
	}
}
