// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package nodeindex

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model/modeltest"
)

// mostMembers is OfJob, and with a subgroup OfSubGroup, by a look at all members.
func mostMembers(d *Domains, j *api.JobInfo, s *api.SubGroup) (most string) {
	counts := map[string]int{}
	for _, t := range j.Tasks {
		if domain := d.ofTask(t); domain != nil && (s == nil || t.SubGroup() == s) {
			counts[domain.Path]++
		}
	}
	for path, n := range counts {
		if n > counts[most] || n == counts[most] && path < most {
			most = path
		}
	}
	return most
}

// TestDomainsOfMembersEqualACount places members of a gang at random, takes them back, and asks in which domain the gang and its
// subgroups are.
func TestDomainsOfMembersEqualACount(t *testing.T) {
	t.Parallel()
	rack := &api.TopologyLevel{Topology: "t", Name: "rack", Labels: []string{"rack"}}
	rapid.Check(t, func(t *rapid.T) {
		c := NewCluster()
		for i := range 8 {
			c.Events().SetNode(Node(fmt.Sprintf("n%d", i), 100, labelled("rack", []string{"a", "b", "c", ""}[i%4])))
		}
		c.Events().SetPodGroup(Group("g", 1, func(g *v1alpha1.PodGroup) {
			g.Spec.SubGroups = []v1alpha1.SubGroup{{Name: "x", MinMember: new(int32(1))}, {Name: "y", MinMember: new(int32(1))}}
		}))
		for i := range 12 {
			c.Events().SetPod(Pod(fmt.Sprintf("p%d", i), 1, InGroup("g"), func(p *v1.Pod) { p.Labels[v1alpha1.LabelSubGroup] = []string{"x", "y"}[i%2] }))
		}
		index := New(c, c.Dims())
		open(index, c)
		job := c.Tasks()["p0"].Job
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			for range rapid.IntRange(1, 3).Draw(t, "changes") {
				task, node := rapid.SampledFrom(job.Tasks).Draw(t, "task"), rapid.SampledFrom(c.Nodes()).Draw(t, "node")
				status := rapid.SampledFrom([]api.TaskStatus{api.Pending, api.Allocated, api.Pipelined}).Draw(t, "status")
				if status == api.Pending {
					node = nil
				}
				c.Ledger().Place(task, status, node)
			}
			domains := index.Domains(rack)
			for _, s := range append([]*api.SubGroup{nil}, job.SubGroups.Children...) {
				got, want := domains.OfJob(job), mostMembers(domains, job, s)
				if s != nil {
					got = domains.OfSubGroup(job, s)
				}
				if path := pathOf(got); path != want {
					t.Fatalf("members are in domain %q, want %q", path, want)
				}
			}
		}
	})
}

func pathOf(d *Domain) string {
	if d == nil {
		return ""
	}
	return d.Path
}
