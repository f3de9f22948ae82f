// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package nodeindex

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model/modeltest"
)

// domainCounts is what Domains says about a domain for a task.
type domainCounts struct {
	nodes                       int
	available, capacity, vacant int64
	whole                       bool
	lost                        int
}

// domainsTwin counts the nodes of all domains again, one by one.
func domainsTwin(c *model.Cluster, f Filters, level *api.TopologyLevel, t *api.TaskInfo) map[string]domainCounts {
	counts := map[string]domainCounts{}
	for _, n := range c.Nodes() {
		if n == nil {
			continue
		}
		path, ok := level.Path(n.Node.Labels)
		if !ok {
			continue
		}
		d, known := counts[path]
		d.whole = (d.whole || !known) && n.Members.At(api.Pods) == 0
		d.nodes++
		if f.Feasible(t.Signature, n) {
			d.available += t.Request.TimesIn(n.Available(t.Priority, api.Future))
			if n.Ready() && !n.Node.Spec.Unschedulable {
				d.capacity += t.Request.TimesIn(n.Allocatable.Minus(n.Foreign))
				d.vacant += t.Request.TimesIn(n.Allocatable)
			}
		}
		counts[path] = d
	}
	return counts
}

// TestDomainsFollowChanges compares domains and their counts with those of a count from the beginning, after random changes of
// nodes and pods.
func TestDomainsFollowChanges(t *testing.T) {
	t.Parallel()
	wide := &api.TopologyLevel{Topology: "t", Name: "block", Labels: []string{"block"}}
	narrow := &api.TopologyLevel{Topology: "t", Name: "rack", Labels: []string{"block", "rack"}}
	rapid.Check(t, func(t *rapid.T) {
		c := NewCluster()
		c.Events().SetPod(Pod("task", 1))
		index, pods := New(c, c.Dims()), 0
		change := func() {
			name := fmt.Sprintf("n%d", rapid.IntRange(0, 5).Draw(t, "node"))
			switch rapid.IntRange(0, 3).Draw(t, "change") {
			case 0:
				c.Events().DeleteNode(name)
			case 1:
				pods++
				of := func(*v1.Pod) {}
				if rapid.Bool().Draw(t, "foreign") {
					of = foreign
				}
				c.Events().SetPod(Pod(fmt.Sprintf("p%d", pods), 1, On(name), of))
			default:
				edits := []func(*v1.Node){cordonedIf(rapid.Bool().Draw(t, "cordoned"))}
				for _, label := range []string{"block", "rack", "broken"} {
					edits = append(edits, labelled(label, rapid.SampledFrom([]string{"", "", "a", "b"}).Draw(t, label)))
				}
				c.Events().SetNode(Node(name, rapid.IntRange(1, 4).Draw(t, "cpus"), edits...))
			}
		}
		for range rapid.IntRange(1, 8).Draw(t, "sessions") {
			for range rapid.IntRange(0, 5).Draw(t, "changes") {
				change()
			}
			f := open(index, c)
			task := c.Tasks()["task"]
			if rapid.Bool().Draw(t, "unused") {
				index.Close()
				continue
			}
			inBlocks := domainsTwin(c, f, wide, task)
			want := domainsTwin(c, f, narrow, task)
			for path, d := range want {
				if d.whole {
					d.lost = d.nodes
					if block := inBlocks[path[:1]]; block.whole {
						d.lost += block.nodes
					}
				}
				want[path] = d
			}
			domains, got := index.Domains(narrow), map[string]domainCounts{}
			for _, d := range domains.All() {
				got[d.Path] = domainCounts{
					d.Size(), domains.Available(task).In(d), domains.Capacity(task.Signature).In(d),
					domains.counts(sumKey{kind: emptyCapacity, signature: task.Signature}).In(d),
					domains.Whole(d), domains.Lost(d),
				}
			}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(domainCounts{})); diff != "" {
				t.Fatalf("domains (-want +got):\n%s", diff)
			}
			if !slices.IsSortedFunc(domains.All(), func(a, b *Domain) int { return cmpPaths(a, b) }) || len(got) != len(domains.All()) {
				t.Fatalf("domains %v are not in the order of their paths", slices.Sorted(maps.Keys(got)))
			}
			for _, n := range c.Nodes() {
				if n == nil {
					continue
				}
				path, ok := narrow.Path(n.Node.Labels)
				if d := domains.Of(n); (d != nil) != ok || ok && (d.Path != path || !d.Contains(n)) {
					t.Fatalf("node %s is in domain %v, want %q", n.Name, d, path)
				}
			}
			index.Close()
		}
	})
}

func cmpPaths(a, b *Domain) int {
	if a.Path < b.Path {
		return -1
	}
	return 1
}

func cordonedIf(yes bool) func(*v1.Node) {
	if yes {
		return cordoned
	}
	return func(*v1.Node) {}
}

// TestDomainOfAJob: the domain of a job is the one where the most of its members are. Members without a domain do not count.
func TestDomainOfAJob(t *testing.T) {
	t.Parallel()
	rack := &api.TopologyLevel{Topology: "t", Name: "rack", Labels: []string{"rack"}}
	for name, test := range map[string]struct {
		on   []string // nodes of the members; empty for a member that waits
		want string
	}{
		"all members wait":              {[]string{"", ""}, ""},
		"members in one domain":         {[]string{"a1", "", "a2"}, "a"},
		"most members in one domain":    {[]string{"a1", "b1", "b1"}, "b"},
		"as many in both domains":       {[]string{"b1", "a1"}, "a"},
		"on a node without the label":   {[]string{"bare"}, ""},
		"on a node that does not exist": {[]string{"gone", "b1"}, "b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := NewCluster()
			c.Events().SetNode(Node("a1", 4, labelled("rack", "a")))
			c.Events().SetNode(Node("a2", 4, labelled("rack", "a")))
			c.Events().SetNode(Node("b1", 4, labelled("rack", "b")))
			c.Events().SetNode(Node("bare", 4))
			c.Events().SetPodGroup(Group("g", len(test.on)))
			for i, node := range test.on {
				pod := Pod(fmt.Sprintf("p%d", i), 1, InGroup("g"))
				pod.Spec.NodeName = node
				c.Events().SetPod(pod)
			}
			index := New(c, c.Dims())
			open(index, c)
			got := ""
			if d := index.Domains(rack).OfJob(c.Tasks()["p0"].Job); d != nil {
				got = d.Path
			}
			if got != test.want {
				t.Errorf("the job is in domain %q, want %q", got, test.want)
			}
		})
	}
}

// TestDomainOfAJobFollows: the domain is the one of now, after each change of members or of node labels in a session.
func TestDomainOfAJobFollows(t *testing.T) {
	t.Parallel()
	rack := &api.TopologyLevel{Topology: "t", Name: "rack", Labels: []string{"rack"}}
	c := NewCluster()
	c.Events().SetNode(Node("a1", 4, labelled("rack", "a")))
	c.Events().SetNode(Node("b1", 4, labelled("rack", "b")))
	c.Events().SetPodGroup(Group("g", 1))
	c.Events().SetPod(Pod("p0", 1, InGroup("g")))
	index := New(c, c.Dims())
	open(index, c)
	task := c.Tasks()["p0"]
	var got []string
	ask := func() {
		path := ""
		if d := index.Domains(rack).OfJob(task.Job); d != nil {
			path = d.Path
		}
		got = append(got, path)
	}
	ask()
	c.Ledger().Place(task, api.Allocated, c.Nodes()[0])
	ask()
	c.Ledger().Place(task, api.Pending, nil)
	c.Ledger().Place(task, api.Pipelined, c.Nodes()[1])
	ask()
	c.Events().SetNode(Node("b1", 4, labelled("rack", "c")))
	ask()
	ask()
	if diff := cmp.Diff([]string{"", "a", "b", "c", "c"}, got); diff != "" {
		t.Errorf("domains (-want +got):\n%s", diff)
	}

	for _, name := range []string{"d", "e", "f", "g"} { // more changes than are read one by one
		c.Events().SetNode(Node("a1", 4, labelled("rack", name)))
	}
	if domains := index.Domains(rack); domains.OfJob(task.Job) != domains.Of(c.Nodes()[1]) {
		t.Error("the domain of the job is one of before")
	}
}

// inDomain refuses nodes outside of the domain of a gang, as package topology does.
type inDomain struct {
	*filters
	index *Index
}

func (f inDomain) Predicate(t *api.TaskInfo, n *api.NodeInfo, _ api.When) *api.Unfit {
	f.predicated++
	level, s := t.Job.TopologyLevel, t.ConstrainedSubGroup()
	if s != nil {
		level = s.TopologyLevel
	}
	domains := f.index.Domains(level)
	gang := domains.OfJob(t.Job)
	if s != nil {
		gang = domains.OfSubGroup(t.Job, s)
	}
	if there := domains.Of(n); there == nil || gang != nil && there != gang {
		return &api.Unfit{Reason: api.OutsideDomain}
	}
	return nil
}

// TestCountForConstrainedGangs: gangs with one constraint, of the gang or of a subgroup, share the verdicts of nodes until a
// member has a node.
func TestCountForConstrainedGangs(t *testing.T) {
	t.Parallel()
	for name, constrain := range map[string]func(*v1alpha1.PodGroup){
		"of the gang": func(g *v1alpha1.PodGroup) {
			g.Spec.TopologyConstraint = &v1alpha1.TopologyConstraint{RequiredTopologyLevel: "rack"}
		},
		"of a subgroup": func(g *v1alpha1.PodGroup) {
			constraint := &v1alpha1.RequiredTopology{RequiredTopologyLevel: "rack"}
			g.Spec.SubGroups = []v1alpha1.SubGroup{{Name: "all", MinMember: new(int32(1)), TopologyConstraint: constraint}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compareCounts(t, constrain)
		})
	}
}

func compareCounts(t *testing.T, constrain func(*v1alpha1.PodGroup)) {
	t.Helper()
	c := NewCluster()
	for name, rack := range map[string]string{"a1": "a", "a2": "a", "b1": "b", "bare": ""} {
		c.Events().SetNode(Node(name, 4, labelled("rack", rack)))
	}
	model.TopologiesOf(c).Set(&v1alpha1.Topology{
		ObjectMeta: metav1.ObjectMeta{Name: "t"}, Spec: v1alpha1.TopologySpec{Levels: []v1alpha1.TopologyLevel{{NodeLabel: "rack"}}},
	})
	for _, name := range []string{"g", "h"} {
		c.Events().SetPodGroup(Group(name, 1, constrain))
		for _, pod := range []string{"0", "1"} {
			c.Events().SetPod(Pod(name+pod, 1, InGroup(name), func(p *v1.Pod) { p.Labels[v1alpha1.LabelSubGroup] = "all" }))
		}
	}
	index := New(c, c.Dims())
	f := inDomain{open(index, c), index}
	index.Open(f)
	tasks := c.Tasks()
	available := func(name api.TaskID) int { return index.Count(tasks[name]).Available }
	got := []int{available("g0"), f.predicated, available("h0"), f.predicated}
	for _, n := range c.Nodes() {
		if n.Name == "b1" {
			c.Ledger().Place(tasks["g1"], api.Allocated, n)
		}
	}
	got = append(got, available("g0"), available("h0"))
	if diff := cmp.Diff([]int{3, 4, 3, 4, 1, 3}, got); diff != "" {
		t.Errorf("available nodes, and nodes that predicates were asked about (-want +got):\n%s", diff)
	}
}
