// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// clusterOf declares a queue, a topology of blocks, racks and hosts, and the nodes of racks by their cpus: "b1/r1 1 2, b1/r2 4"
// has the nodes b1r1n1 of 1 cpu, b1r1n2 of 2 cpu and b1r2n1 of 4 cpu. With gpus, each node has as many of them as cpus.
func clusterOf(text string) []Row {
	rows := Given(Topology("default", "block", "rack", "host"), Queue("q", 1))
	for _, rack := range strings.Split(text, ", ") {
		words := strings.Fields(rack)
		block, name, _ := strings.Cut(words[0], "/")
		for i, cpus := range words[1:] {
			host := fmt.Sprintf("%s%sn%d", block, name, i+1)
			rows = append(rows, Node(host, fmt.Sprintf("%scpu %sgpu", cpus, cpus), Label("block", block), Label("rack", name), Label("host", host)))
		}
	}
	return rows
}

// Clusters of Kueue's tests.
const (
	sixHosts    = "b1/r1 1, b1/r2 1 1 1, b2/r1 1, b2/r2 2"
	scattered   = "b1/r1 4 1 1, b2/r1 2 1"
	binaryTrees = "b1/r1 1 1, b1/r2 1 1, b2/r1 1 1, b2/r2 1 1"
)

// gangOf is a gang of one kind of pods.
func gangOf(pods int, request string, parts ...Part) Row {
	return Group("q/gang", int32(pods), append(parts, Pending(pods, request))...)
}

// inSegments is a gang of equal pods in segments.
func inSegments(count, size int, level string, parts ...Part) Row {
	all := append(replicas("w", 0, count, size, "1cpu"), SubGroups(eachInOne(level, segments("w", int32(size), int32(count)))))
	return Group("q/gang", 1, append(all, parts...)...)
}

// withLeader is a gang of a pod of another kind and of workers.
func withLeader(leader string, workers int, request string, parts ...Part) Row {
	return Group("q/gang", int32(workers+1), append(parts, Pending(1, leader), Pending(workers, request))...)
}

// child puts a subgroup into another one.
func child(parent string, s v1alpha1.SubGroup) v1alpha1.SubGroup {
	s.Parent = parent
	return s
}

var bindOnHost = regexp.MustCompile(`(?m)^bind q/gang-(\d+) (\w+?)(n\d+)$`)

// placedOn returns how many pods of the gang start in each rack, or on each host if the wanted text names hosts.
func placedOn(transcript, want string) string {
	counts := map[string]int{}
	for _, bind := range bindOnHost.FindAllStringSubmatch(transcript, -1) {
		where := bind[2]
		if strings.Contains(want, "n") {
			where += bind[3]
		}
		counts[where]++
	}
	var list []string
	for _, where := range slices.Sorted(maps.Keys(counts)) {
		list = append(list, fmt.Sprintf("%s %d", where, counts[where]))
	}
	return strings.Join(list, ", ")
}

// placement is where one gang starts, or why it waits.
type placement struct {
	nodes string // see clusterOf
	given []Row  // the gang, and what else there is
	want  string // how many pods start in each rack, or on each host
	waits string // a part of the message
}

// testPlacements compares where gangs start.
func testPlacements(t *testing.T, cases map[string]placement, options ...Option) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := New(t, BuiltIn(t), append(clusterOf(tc.nodes), tc.given...), options...)
			transcript := s.Cycle()
			if got := placedOn(transcript, tc.want); got != tc.want {
				t.Errorf("got  %s\nwant %s\n%s\n%s", got, tc.want, transcript, s.Waits())
			}
			if !strings.Contains(s.Waits(), tc.waits) {
				t.Errorf("waits because of\n%s\nwant %s", s.Waits(), tc.waits)
			}
		})
	}
}

// TestKueueRequires has the scenarios of Kueue's unit tests for a required level.
func TestKueueRequires(t *testing.T) {
	testPlacements(t, map[string]placement{
		"one pod in a rack starts where the fewest whole nodes are lost, which is the smaller block": {
			nodes: sixHosts, given: Given(gangOf(1, "1cpu", Within("rack"))), want: "b2r1 1",
		},
		"three pods start in the only rack that holds them": {
			nodes: sixHosts, given: Given(gangOf(3, "1cpu", Within("rack"))), want: "b1r2 3",
		},
		"of two racks that hold the pods, the smaller one": {
			nodes: sixHosts, given: Given(gangOf(2, "1cpu", Within("rack"))), want: "b2r2 2",
		},
		"a gang larger than any rack waits": {
			nodes: sixHosts, given: Given(gangOf(4, "1cpu", Within("rack"))), waits: "rack b1/r2 has resources for 3 of 4 pods",
		},
		"one pod in a block starts in the smaller block, in the smallest rack": {
			nodes: sixHosts, given: Given(gangOf(1, "1cpu", Within("block"), Prefer("rack", 0))), want: "b2r1 1",
		},
		"a gang that no rack of a block holds starts in two": {
			nodes: sixHosts, given: Given(gangOf(4, "1cpu", Within("block"), Prefer("rack", 0))), want: "b1r1 1, b1r2 3",
		},
		"a gang larger than any block waits": {
			nodes: sixHosts, given: Given(gangOf(5, "1cpu", Within("block"))), waits: "block b1 has resources for 4 of 5 pods",
		},
		"a pod larger than any node waits, however large the block is": {
			nodes: sixHosts, given: Given(gangOf(1, "4cpu", Within("block"))), waits: "0/6 nodes are available: 6 Insufficient cpu",
		},
		"a block of two racks is filled": {
			nodes: binaryTrees, given: Given(gangOf(4, "1cpu", Within("block"), Prefer("rack", 0))), want: "b1r1 2, b1r2 2",
		},
		"the fewest racks come before the fewest hosts": {
			nodes: "b1/r1 2, b1/r2 2, b1/r3 1 1 1 1", given: Given(gangOf(4, "1cpu", Within("block"), Prefer("rack", 0))), want: "b1r3 4",
		},
		"the host that holds all pods comes before two": {
			nodes: "b1/r1 2 1 1", given: Given(gangOf(2, "1cpu", Within("block"), Prefer("host", 0))), want: "b1r1n1 2",
		},
		"a gang in one host starts on the smallest that holds it": {
			nodes: sixHosts, given: Given(gangOf(2, "1cpu", Within("host"))), want: "b2r2n1 2",
		},
		"several pods share a node of the rack": {
			nodes: sixHosts, given: Given(gangOf(4, "0.25cpu", Within("rack"))), want: "b2r1 4",
		},
		"a gang without constraint does not look at racks": {
			nodes: scattered, given: Given(gangOf(6, "1cpu")), want: "b1r1 5, b2r1 1",
		},
	})
}

// TestKueuePrefers has the scenarios of Kueue's unit tests for a preferred level.
func TestKueuePrefers(t *testing.T) {
	testPlacements(t, map[string]placement{
		"of three blocks, the largest one and the smallest that holds the rest": {
			nodes: "b1/r 2, b2/r 1, b3/r 4", given: Given(gangOf(5, "1cpu", Prefer("block", 0))), want: "b2r 1, b3r 4",
		},
		"a gang that no rack holds starts in one block": {
			nodes: sixHosts, given: Given(gangOf(4, "1cpu", Prefer("rack", 0))), want: "b1r1 1, b1r2 3",
		},
		"a gang that no block holds starts in the fewest racks": {
			nodes: sixHosts, given: Given(gangOf(6, "1cpu", Prefer("rack", 0))), want: "b1r2 3, b2r1 1, b2r2 2",
		},
		"a gang that no block holds starts in two, whatever the racks there": {
			nodes: sixHosts, given: Given(gangOf(6, "1cpu", Prefer("block", 0))), want: "b1r1 1, b1r2 3, b2r1 1, b2r2 1",
		},
		"a gang larger than the cluster waits": {
			nodes: sixHosts, given: Given(gangOf(10, "1cpu", Prefer("block", 0))), waits: "ExceedsClusterCapacity",
		},
		"two kinds of pods of one gang share blocks": {
			nodes: "b1/r 2, b2/r 2, b3/r 2", given: Given(Group("q/gang", 6, Prefer("block", 0), Pending(3, "1cpu"), Pending(3, "1cpu 1gpu"))), want: "b1r 2, b2r 2, b3r 2",
		},
		"more pods stay on the host that is in use": {
			nodes: "b/r 2 2 2", want: "brn1 1, brn2 1",
			given: Given(Group("q/gang", 2, Prefer("host", 0), Running(1, "1cpu", "brn1"), Running(1, "1cpu", "brn2"), Pending(2, "1cpu"))),
		},
		"more pods start on one host if those in use are full": {
			nodes: "b/r 2 2 2", want: "brn2 2",
			given: Given(Group("q/gang", 2, Prefer("host", 0), Running(2, "1cpu", "brn1"), Pending(2, "1cpu"))),
		},
		"balanced placement: racks are filled one after the other": {
			nodes: "b1/r1 15, b1/r2 15", given: Given(gangOf(25, "1cpu", Prefer("rack", 0))), want: "b1r1 15, b1r2 10",
		},
		"balanced placement: the block that needs fewer racks": {
			nodes: "b1/r1 15, b1/r2 15, b1/r3 15 15", given: Given(gangOf(25, "1cpu", Prefer("rack", 0))), want: "b1r3 25",
		},
		"balanced placement: not in two blocks": {
			nodes: "b1/r1 14 11, b2/r2 15 10", given: Given(gangOf(25, "1cpu", Prefer("rack", 0))), want: "b1r1 25",
		},
		"the order of equal nodes does not matter": {
			nodes: "b1/r2 1, b1/r1 1", given: Given(gangOf(1, "1cpu", Within("rack"))), want: "b1r1 1",
		},
	})
}

// TestKueueFilters has the scenarios of Kueue's unit tests for nodes that cannot be used, and for what uses nodes.
func TestKueueFilters(t *testing.T) {
	one := gangOf(1, "0.6cpu", Within("rack"))
	testPlacements(t, map[string]placement{
		"pods that wait use nothing":              {nodes: "b/r 1", given: Given(one, Foreign("other", Pending(1, "0.6cpu"))), want: "br 1"},
		"pods that have ended use nothing":        {nodes: "b/r 1", given: Given(one, Foreign("other", Failed(1, "0.6cpu", "brn1"), Succeeded(1, "0.6cpu", "brn1"))), want: "br 1"},
		"pods of other schedulers use their node": {nodes: "b/r 1", given: Given(one, Foreign("other", Running(1, "0.6cpu", "brn1"))), waits: "rack b/r has resources for 0 of 1 pods"},
		"bound pods use their node":               {nodes: "b/r 1", given: Given(one, Foreign("other", Bound(1, "0.6cpu", "brn1"))), waits: "1 Insufficient cpu"},
		"another rack is free":                    {nodes: "b/r1 1, b/r2 1", given: Given(one, Foreign("other", Running(1, "0.6cpu", "br1n1"))), want: "br2 1"},
		"nodes that are not ready are left out":   {nodes: "b/r1 1", given: Given(Node("br1n1", "1cpu", NotReady(), Label("block", "b"), Label("rack", "r1")), one), waits: "0/1 nodes are available"},
		"cordoned nodes are left out":             {nodes: "b/r1 1", given: Given(Node("br1n1", "1cpu", Unschedulable(), Label("block", "b"), Label("rack", "r1")), one), waits: "0/1 nodes are available"},
		"nodes with a taint are left out":         {nodes: "b/r1 1", given: Given(Node("br1n1", "1cpu", Taint("gpu=yes:NoSchedule"), Label("block", "b"), Label("rack", "r1")), one), waits: "untolerated taint"},
		"a taint is tolerated": {
			nodes: "b/r1 1", given: Given(Node("br1n1", "1cpu", Taint("gpu=yes:NoSchedule"), Label("block", "b"), Label("rack", "r1")),
				Group("q/gang", 1, Within("rack"), Pending(1, "1cpu", Tolerate("gpu=yes:NoSchedule")))), want: "br1 1",
		},
		"a node allows one pod": {
			nodes: "b/r1 1", given: Given(Node("br1n1", "1cpu 1pods", Label("block", "b"), Label("rack", "r1")), one, Foreign("other", Running(1, "0.3cpu", "br1n1"))),
			waits: "1 Insufficient pods because of pods of other schedulers",
		},
		"a node allows ten pods, and two run": {
			nodes: "b/r1 1", given: Given(Node("br1n1", "1cpu 10pods", Label("block", "b"), Label("rack", "r1")),
				gangOf(9, "", Within("rack")), Foreign("other", Running(2, "", "br1n1"))),
			waits: "8 of 9 pods",
		},
		"no node matches the node selector": {
			nodes: "b/r1 1", given: Given(Group("q/gang", 1, Within("rack"), Pending(1, "1cpu", NodeSelector("kind", "x")))), waits: "didn't match Pod's node affinity/selector",
		},
		"the node that matches the node selector": {
			nodes: "b/r1 1, b/r2 1", given: Given(Group("q/gang", 1, Within("rack"), Pending(1, "1cpu", NodeSelector("rack", "r2")))), want: "br2 1",
		},
		"each node counts with its own reason": {
			nodes: "b/r1 0.1 1 1", given: Given(
				Node("br1n2", "1cpu", Taint("k=v:NoSchedule"), Label("block", "b"), Label("rack", "r1"), Label("kind", "x")),
				Node("br1n1", "0.1cpu", Label("block", "b"), Label("rack", "r1"), Label("kind", "x")),
				Group("q/gang", 1, Within("rack"), Pending(1, "1cpu", NodeSelector("kind", "x")))),
			waits: "0/3 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector (node selector kind=x), 1 node(s) had untolerated taint",
		},
		"a node without the label of a narrower level is in its rack": {
			nodes: "b/r2 0.1", given: Given(Node("br1n1", "1cpu", Label("block", "b"), Label("rack", "r1")), one), want: "br1 1",
		},
		"a node without the label of a wider level is in no rack": {
			nodes: "b/r2 0.1", given: Given(Node("xr1n1", "1cpu", Label("rack", "r1")), one), waits: "1 node(s) were not in any rack",
		},
		"preferred node affinity does not choose the rack": {
			nodes: "b/r1 1, b/r2 1", given: Given(Group("q/gang", 1, Within("rack"), Pending(1, "1cpu", PreferNodes(10, "rack", "r2")))), want: "br1 1",
		},
		"preferred node affinity chooses a node of the rack": {
			nodes: "b/r1 1 1", given: Given(Group("q/gang", 1, Within("rack"), Pending(1, "1cpu", PreferNodes(10, "host", "br1n2")))), want: "br1n2 1",
		},
	})
}

// TestKueueSlices has the scenarios of Kueue's unit tests for slices, which are segments here.
func TestKueueSlices(t *testing.T) {
	testPlacements(t, map[string]placement{
		"slices on hosts of one block":                                  {nodes: "b1/r1 3 3 3", given: Given(inSegments(3, 2, "host", Within("block"))), want: "b1r1n1 2, b1r1n2 2, b1r1n3 2"},
		"the host for the most slices first, and the tightest one last": {nodes: "b1/r1 6 5 4 2", given: Given(inSegments(6, 2, "host", Within("block"))), want: "b1r1n1 6, b1r1n3 4, b1r1n4 2"},
		"of hosts for as many slices, those where nothing is left over": {nodes: "b1/r1 3 2 2", given: Given(inSegments(2, 2, "host", Within("block"))), want: "b1r1n2 2, b1r1n3 2"},
		"the last host is the smallest":                                 {nodes: "b1/r1 4 3 2", given: Given(inSegments(3, 2, "host", Within("block"))), want: "b1r1n1 4, b1r1n3 2"},
		"slices in racks of one block":                                  {nodes: "b1/r1 1 1, b1/r2 1 1 1, b2/r1 1 1", given: Given(inSegments(2, 2, "rack", Within("block"))), want: "b1r1 2, b1r2 2"},
		"a block is preferred, and none holds the slices":               {nodes: sixHosts, given: Given(inSegments(2, 2, "rack", Prefer("block", 0))), want: "b1r2 2, b2r2 2"},
		"two blocks of different hosts":                                 {nodes: "b1/r1 3 3 3, b2/r1 6", given: Given(inSegments(4, 3, "host", Prefer("block", 0))), want: "b1r1n1 3, b1r1n2 3, b2r1n1 6"},
		"the pods fit the block, and the slices do not fit its racks":   {nodes: "b1/r1 2, b1/r2 2, b1/r3 2", given: Given(inSegments(2, 3, "rack", Within("block"))), waits: "needs"},
		"one of two slices fits":                                        {nodes: "b1/r1 3, b1/r2 1, b1/r3 1, b1/r4 1", given: Given(inSegments(2, 3, "rack", Within("block"))), waits: "needs"},
		"the pods fit two blocks, and the slices one of them":           {nodes: "b1/r1 2, b1/r2 2, b1/r3 2, b2/r4 3, b2/r5 3", given: Given(inSegments(2, 3, "rack", Within("block"))), want: "b2r4 3, b2r5 3"},
		"slices on hosts anywhere":                                      {nodes: scattered, given: Given(inSegments(3, 2, "host")), want: "b1r1n1 4, b2r1n1 2"},
		"slices in racks anywhere":                                      {nodes: sixHosts, given: Given(inSegments(2, 2, "rack")), want: "b1r2 2, b2r2 2"},
		"the level of slices is wider than that of the gang":            {nodes: sixHosts, given: Given(inSegments(1, 1, "block", Within("host"))), waits: "TopologyNotFound"},
		"the level of slices does not exist":                            {nodes: sixHosts, given: Given(inSegments(1, 1, "row", Within("block"))), waits: `no level "row" in topology default`},
		"a slice whose host is lost starts on another host as a whole": {
			nodes: "b1/r1 5 5, b1/r2 2 2", want: "b1r1n2 2",
			given: Given(Group("q/gang", 1, append(replicas("w", 1, 2, 2, "2cpu"), Within("block"), SubGroups(eachInOne("host", segments("w", 2, 2))),
				Running(2, "2cpu", "b1r1n1", Label("role", "w"), Label("replica", "0")))...)),
		},
	})
}

// levelsOfSlices are subgroups of which each requires a rack, for segments that require a host each.
func levelsOfSlices(racks, inRack, size int, parts ...Part) Row {
	var list []v1alpha1.SubGroup
	for i := range racks {
		name := fmt.Sprintf("w%d", i)
		list = append(list, inOne("rack", eachInOne("host", segments(name, int32(size), int32(inRack)))))
		parts = append(parts, replicas(name, 0, inRack, size, "1cpu")...)
	}
	return Group("q/gang", 1, append(parts, SubGroups(list...))...)
}

// TestKueueLayers has the scenarios of Kueue's unit tests for slices within slices, which are segments in subgroups here.
func TestKueueLayers(t *testing.T) {
	testPlacements(t, map[string]placement{
		"4 pods in each rack, and 2 on each host":               {nodes: "b1/r1 1 4, b1/r2 3 4", given: Given(levelsOfSlices(2, 2, 2, Within("block"))), want: "b1r1n2 4, b1r2n2 4"},
		"racks hold the pods, and hosts do not hold the slices": {nodes: "b1/r1 3 3 0", given: Given(levelsOfSlices(1, 3, 2, Within("block"))), waits: "needs"},
		"a small host makes a rack too small":                   {nodes: "b1/r1 7 4, b1/r2 7 3", given: Given(levelsOfSlices(2, 2, 4, Within("block"))), waits: "needs"},
		"hosts hold all slices, and racks are too small":        {nodes: "b1/r1 4, b1/r2 4, b1/r3 4", given: Given(levelsOfSlices(2, 3, 2, Within("block"))), waits: "needs"},
		"small hosts make a block too small": {
			nodes: "b1/r1 4 4, b1/r2 4 4, b2/r3 4 4, b2/r4 1 1", waits: "needs",
			given: Given(Group("q/gang", 1, append(append(append(append(replicas("xa", 0, 2, 3, "1cpu"), replicas("xb", 0, 2, 3, "1cpu")...),
				replicas("ya", 0, 2, 3, "1cpu")...), replicas("yb", 0, 2, 3, "1cpu")...),
				SubGroups(inOne("block", v1alpha1.SubGroup{Name: "x"}), inOne("block", v1alpha1.SubGroup{Name: "y"}),
					child("x", inOne("rack", eachInOne("host", segments("xa", 3, 2)))), child("x", inOne("rack", eachInOne("host", segments("xb", 3, 2)))),
					child("y", inOne("rack", eachInOne("host", segments("ya", 3, 2)))), child("y", inOne("rack", eachInOne("host", segments("yb", 3, 2))))))...)),
		},
		"a leader beside slices within slices": {
			nodes: "b1/r1 3 3, b1/r2 3 3", want: "b1r1n1 3, b1r1n2 2, b1r2n1 2, b1r2n2 2",
			given: Given(levelsOfSlices(2, 2, 2, Within("block"), SubGroups(leaf("l", 1)), role("l", 1, "1cpu"))),
		},
	})
}

// TestKueueLayersOfGB200 places 96 pods in racks of 18 nodes: 48 in each of two zones, and 16 in each rack.
func TestKueueLayersOfGB200(t *testing.T) {
	given := Given(Topology("default", "zone", "block", "rack"), Queue("q", 1))
	for i := range 8 {
		given = append(given, Nodes(18, fmt.Sprintf("r%dn", i), "2gpu",
			Label("zone", fmt.Sprint(i/4)), Label("block", fmt.Sprint(i/2)), Label("rack", fmt.Sprint(i))))
	}
	parts := append(replicas("x", 0, 3, 16, "2gpu"), replicas("y", 0, 3, 16, "2gpu")...)
	parts = append(parts, SubGroups(inOne("zone", eachInOne("rack", segments("x", 16, 3))), inOne("zone", eachInOne("rack", segments("y", 16, 3)))))
	transcript := Run(t, BuiltIn(t), append(given, Group("q/gang", 1, parts...)))
	counts := map[string]int{}
	for _, bind := range regexp.MustCompile(`bind q/gang-\d+ r(\d)n`).FindAllStringSubmatch(transcript, -1) {
		counts[bind[1]]++
	}
	if got, want := FormatCounts(counts), "0 16, 1 16, 2 16, 4 16, 5 16, 6 16"; got != want {
		t.Errorf("got %s, want %s\n%s", got, want, transcript)
	}
}

// TestKueueLeaders has the scenarios of Kueue's unit tests for a leader and workers in one domain.
func TestKueueLeaders(t *testing.T) {
	used := Foreign("filler", Running(1, "2.5cpu", "brsn1"))
	testPlacements(t, map[string]placement{
		"the block that holds both":                                 {nodes: "b1/r 2, b2/r 5, b3/r 2", given: Given(withLeader("1cpu", 4, "1cpu 1gpu", Within("block"))), want: "b2r 5"},
		"the block that holds both tightly":                         {nodes: "b1/r 2, b2/r 8, b3/r 2", given: Given(withLeader("1cpu", 4, "1cpu 2gpu", Within("block"))), want: "b2r 5"},
		"not the block that holds the workers only":                 {nodes: "b1/r 11, b2/r 4", given: Given(withLeader("1cpu", 4, "1cpu 1gpu", Within("block"))), want: "b1r 5"},
		"no block holds both":                                       {nodes: "b1/r 1, b2/r 4", given: Given(withLeader("1cpu", 4, "1cpu 1gpu", Within("block"))), waits: "4 of 5 pods"},
		"no node holds the leader":                                  {nodes: "b1/r 4, b2/r 4", given: Given(withLeader("10cpu", 4, "1cpu 1gpu", Within("block"))), waits: "needs"},
		"not the rack where the leader or the worker fits":          {nodes: "b/rs 2.8 2.8, b/rt 6", given: Given(used, withLeader("2.5cpu", 1, "2.5cpu", Within("rack"))), want: "brt 2"},
		"not the rack where small workers take the place":           {nodes: "b/rs 2.8 2.8, b/rt 6", given: Given(used, withLeader("2.5cpu", 2, "0.5cpu", Within("rack"))), want: "brt 3"},
		"not the rack of several whole nodes, although it is tight": {nodes: "b/rs 2.8 2.8, b/rt 6", given: Given(used, withLeader("1cpu", 1, "1cpu", Within("rack"))), want: "brt 2"},
		"the tight rack that is in use": {
			nodes: "b/rs 2.8 2.8, b/rt 6", want: "brs 2",
			given: Given(Group("q/old", 1, Running(1, "2.5cpu", "brsn1")), withLeader("1cpu", 1, "1cpu", Within("rack"))),
		},
		"the leader leaves place for the workers": {nodes: "b/r 2 4 3", given: Given(withLeader("1cpu", 4, "2cpu", Within("rack"))), want: "brn1 1, brn2 2, brn3 2"},
		"the leader leaves place for slices": {
			nodes: "b/r 2 4 3", want: "brn1 2, brn2 4, brn3 3",
			given: Given(Group("q/gang", 1, append(replicas("w", 0, 4, 2, "1cpu"), Within("rack"), role("l", 1, "1cpu"),
				SubGroups(leaf("l", 1), eachInOne("host", segments("w", 2, 4))))...)),
		},
		"the leader leaves place in several domains": {nodes: "b/r 8 3", given: Given(withLeader("1cpu", 5, "2cpu", Prefer("host", 0))), want: "brn1 4, brn2 2"},
		"leader and worker on different nodes":       {nodes: "b/r 1 1", given: Given(withLeader("1cpu", 1, "1cpu 1gpu", Within("rack"))), want: "br 2"},
		"leader and slices of larger pods on two hosts": {
			nodes: "b/r 5 5", want: "brn1 3, brn2 2",
			given: Given(Group("q/gang", 1, append(replicas("w", 0, 2, 2, "2cpu"), Within("block"), role("l", 1, "1cpu"),
				SubGroups(leaf("l", 1), eachInOne("host", segments("w", 2, 2))))...)),
		},
		"the smaller block that holds both": {nodes: "d1/r1 10, d2/r2 6", given: Given(withLeader("1cpu", 5, "1cpu 1gpu", Within("block"))), want: "d2r2 6"},
		"workers in slices on two hosts, and the leader beside them": {
			nodes: "b/r 4 2 2 2", want: "brn1 4, brn2 2, brn3 1",
			given: Given(Group("q/gang", 1, append(replicas("w", 0, 3, 2, "1cpu"), Within("block"), role("l", 1, "1cpu"),
				SubGroups(leaf("l", 1), eachInOne("host", segments("w", 2, 3))))...)),
		},
		"two subgroups require a rack each": {
			nodes: "b1/r1 10, b1/r2 10", want: "b1r1 3",
			given: Given(Group("q/gang", 1, SubGroups(inOne("rack", leaf("x", 2)), inOne("rack", leaf("y", 1))), role("x", 2, "1cpu"), role("y", 1, "1gpu"))),
		},
		"one subgroup requires a block, and another one nothing": {
			nodes: "b1/r1 2, b2/r2 10", want: "b1r1 2, b2r2 8",
			given: Given(Group("q/gang", 1, SubGroups(inOne("block", leaf("x", 8)), leaf("y", 2)), role("x", 8, "1cpu"), role("y", 2, "1cpu 1gpu"))),
		},
		"a subgroup that matches no node keeps the others waiting": {
			nodes: "b1/r1 4", waits: "didn't match Pod's node affinity/selector",
			given: Given(Group("q/gang", 1, SubGroups(inOne("rack", leaf("x", 1)), inOne("rack", leaf("y", 1))), role("x", 1, "1cpu"),
				Pending(1, "1cpu", Label("role", "y"), NodeSelector("never", "match")))),
		},
	})
}
