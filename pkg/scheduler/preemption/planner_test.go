// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model/modeltest"
)

// TestCachedEqualsUncached makes plans for many claims with one planner, which caches candidates,
// votes and infeasible claims, and with a new one for each claim in a session with an empty cache: both must
// decide the same.
func TestCachedEqualsUncached(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCluster(t)
		got, want := plans(c, true), plans(c, false)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("plans of new planners (-) and of one (+):\n%s", diff)
		}
	})
}

// plans plans for all waiting jobs, one after the other, and lists what was decided.
func plans(build func() *model.Cluster, remember bool) string {
	var log strings.Builder
	ssn := openSession(build(), &log)
	planner := New(ssn)
	for _, j := range ssn.Jobs() {
		tasks := ssn.WaitingTasks(j)
		if !remember {
			ssn.Plans().Invalidate()
			planner = New(ssn)
		}
		stmt := ssn.Statement()
		claim := api.NewClaim(j, tasks[:min(int(j.MinMember), len(tasks))])
		if planner.Plan(stmt, claim, rulesFor(ssn, j)) {
			for _, d := range stmt.Decisions() {
				fmt.Fprintf(&log, "%s %s %s\n", d.Kind, d.Task.Key, d.Node.Name)
			}
			stmt.Commit()
		} else {
			fmt.Fprintf(&log, "nothing for %s\n", j.Key)
		}
	}
	return log.String()
}

func rulesFor(ssn *framework.Session, preemptor *api.JobInfo) Rules {
	return Rules{
		VictimQueues: ssn.Cluster().SortedQueues,
		IsCandidate:  func(j *api.JobInfo) bool { return j != preemptor },
		Admits:       ssn.Preemptable,
	}
}

// voter permits what is lower in priority, and between equals what brings cpu shares together.
type voter struct{}

func (voter) Name() string { return "voter" }
func (voter) OnSessionOpen(ssn *framework.Session) {
	ssn.AddPreemptableFn("voter", func(claim *api.Claim, u api.Unit) api.Vote {
		share := func(r api.Resource) api.Share { return api.Share{Part: r.At(api.CPU), Whole: 1000} }
		if u.Job.Priority < claim.Job.Priority ||
			u.Job.Priority == claim.Job.Priority &&
				api.Fairer(share(claim.JobHeld), share(claim.JobHeld.Plus(claim.Request)), share(u.Job.Allocated.Minus(u.Request))) {
			return api.Permit
		}
		return api.Reject
	})
	ssn.AddJobReadyFn("voter", (*api.JobInfo).Ready)
}
func (voter) OnSessionClose(*framework.Session) {}

type noEffects struct{}

func (noEffects) Commit([]api.Decision) {}

func openSession(cluster *model.Cluster, log *strings.Builder) *framework.Session {
	registry := framework.NewRegistry()
	spec := framework.PluginSpec{New: func(*conf.Decoder, framework.Handle) (framework.Plugin, error) { return voter{}, nil }}
	if err := registry.AddPlugin("voter", spec); err != nil {
		panic(err)
	}
	profile, err := registry.NewProfile(&conf.Configuration{Tiers: []conf.Tier{{Plugins: []conf.Plugin{{Name: "voter"}}}}}, framework.Handle{})
	if err != nil {
		panic(err)
	}
	return profile.Open(cluster, noEffects{}, logr.Discard())
}

// drawCluster draws nodes, running jobs and waiting ones, and returns how to make the model of them.
func drawCluster(t *rapid.T) func() *model.Cluster {
	nodes := rapid.IntRange(1, 4).Draw(t, "nodes")
	var pods []*v1.Pod
	var groups []*v1alpha1.PodGroup
	for i := range rapid.IntRange(2, 9).Draw(t, "jobs") {
		name := fmt.Sprintf("j%d", i)
		size := rapid.IntRange(1, 3).Draw(t, "size")
		created := metav1.Unix(int64(i), 0)
		groups = append(groups, Group(name, rapid.IntRange(1, size).Draw(t, "min"), func(g *v1alpha1.PodGroup) {
			g.CreationTimestamp, g.Spec.Queue = created, rapid.SampledFrom([]string{"p", "q"}).Draw(t, "queue")
		}))
		running, cpu := rapid.Bool().Draw(t, "running"), rapid.IntRange(1, 3).Draw(t, "cpu")
		priority := rapid.Int32Range(0, 2).Draw(t, "priority")
		for n := range size {
			p := Pod(fmt.Sprintf("%s-%d", name, n), cpu, InGroup(name))
			p.CreationTimestamp, p.Spec.Priority = created, &priority
			if running {
				p.Spec.NodeName = fmt.Sprintf("n%d", rapid.IntRange(0, nodes-1).Draw(t, "node"))
				p.Status.Phase = v1.PodRunning
			}
			pods = append(pods, p)
		}
	}
	return func() *model.Cluster {
		c := NewCluster("q", "p")
		for i := range nodes {
			c.Events().SetNode(Node(fmt.Sprintf("n%d", i), 5, MaxPods(9)))
		}
		for _, g := range groups {
			c.Events().SetPodGroup(g)
		}
		for _, p := range pods {
			c.Events().SetPod(p)
		}
		c.Events().Recompute()
		return c
	}
}
