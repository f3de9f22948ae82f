// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model/modeltest"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/nodeindex"
)

// TestInnerCandidatesEqualScan places tasks of gangs with topology constraints at random, takes them back, and asks after each
// step for the best node of any domain: the candidates of the domain must name the one that a look at all of its nodes finds,
// whether or not members of the gang leave that domain to the task.
func TestInnerCandidatesEqualScan(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ssn := openConstrained(t)
		placer := New(ssn)
		var waiting, running []*api.TaskInfo
		for _, j := range ssn.Cluster().SortedJobs() {
			for _, task := range j.Tasks {
				if task.Waiting() {
					waiting = append(waiting, task)
				} else {
					running = append(running, task)
				}
			}
		}
		rack := &api.TopologyLevel{Topology: "default", Name: "rack", Labels: []string{"block", "rack"}}
		racks := ssn.Nodes().Domains(rack)
		domains := append([]*nodeindex.Domain{nil}, racks.All()...)
		domains = append(domains, racks.Wider().All()...)
		stmt := ssn.Statement()
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			task := rapid.SampledFrom(waiting).Draw(t, "task")
			domain := domains[rapid.IntRange(0, len(domains)-1).Draw(t, "domain")]
			when := api.When(rapid.Bool().Draw(t, "future"))
			o, among := Options{}, (*nodeindex.NodeSet)(nil)
			if domain != nil {
				o.Domain, among = &Domain{Domain: domain}, domain.Nodes()
			}
			got, want := placer.best(task, when, o), placer.scan(task, when, among, nil)
			if got != want {
				t.Fatalf("best node of %s: got %s, want %s", task.Key, name(got), name(want))
			}
			changeAtRandom(t, stmt, task, want, when, rapid.SampledFrom(running).Draw(t, "victim"))
		}
	})
}

// openConstrained opens a session with nodes in racks and blocks, some of which have no label, a gang that requires one rack,
// one that requires one block with a subgroup that requires one rack, and one without constraint.
func openConstrained(t *rapid.T) *framework.Session {
	c := NewCluster()
	model.TopologiesOf(c).Set(&v1alpha1.Topology{
		ObjectMeta: metav1.ObjectMeta{Name: "default"},
		Spec:       v1alpha1.TopologySpec{Levels: []v1alpha1.TopologyLevel{{NodeLabel: "block"}, {NodeLabel: "rack"}}},
	})
	nodes := rapid.IntRange(1, 24).Draw(t, "nodes")
	for i := range nodes {
		c.Events().SetNode(Node(fmt.Sprintf("n%d", i), rapid.IntRange(0, 9).Draw(t, "cpu"), MaxPods(5), func(n *v1.Node) {
			n.Labels["block"] = rapid.SampledFrom([]string{"", "a", "b", "a", "b"}).Draw(t, "block")
			n.Labels["rack"] = rapid.SampledFrom([]string{"", "r", "s", "r", "s"}).Draw(t, "rack")
		}))
	}
	rack, block := &v1alpha1.TopologyConstraint{RequiredTopologyLevel: "rack"}, &v1alpha1.TopologyConstraint{RequiredTopologyLevel: "block"}
	c.Events().SetPodGroup(Group("rack", 1, func(g *v1alpha1.PodGroup) { g.Spec.TopologyConstraint = rack }))
	c.Events().SetPodGroup(Group("parts", 1, func(g *v1alpha1.PodGroup) {
		g.Spec.TopologyConstraint = block
		g.Spec.SubGroups = []v1alpha1.SubGroup{{Name: "a", MinMember: new(int32(1)), TopologyConstraint: &v1alpha1.RequiredTopology{RequiredTopologyLevel: "rack"}}, {Name: "b", MinMember: new(int32(1))}}
	}))
	c.Events().SetPodGroup(Group("free", 1))
	for i := range 30 {
		group := []string{"rack", "parts", "free"}[i%3]
		pod := Pod(fmt.Sprintf("p%d", i), 1+i%2, InGroup(group))
		pod.Labels[v1alpha1.LabelSubGroup] = []string{"a", "b"}[i/3%2]
		if i >= 27 {
			pod.Spec.NodeName = fmt.Sprintf("n%d", i%nodes)
		}
		c.Events().SetPod(pod)
	}
	return sessionOf(t, c)
}
