// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"errors"
	"fmt"
	"testing"

	"github.com/go-logr/logr"
	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model/modeltest"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/topology"
)

// TestCandidatesEqualScan places and takes back tasks of several classes at random and asks
// after each step for the best node: the ordered candidates must name the one that judging all
// nodes finds.
func TestCandidatesEqualScan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ssn := openSession(t, rapid.IntRange(1, 12).Draw(t, "nodes"))
		placer := New(ssn)
		var waiting, running []*api.TaskInfo
		for _, j := range ssn.Jobs() {
			waiting = append(waiting, ssn.WaitingTasks(j)...)
		}
		for _, j := range ssn.Cluster().SortedJobs() {
			if j.Holding() > 0 {
				running = append(running, j.Tasks...)
			}
		}
		stmt := ssn.Statement()
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			task := rapid.SampledFrom(waiting).Draw(t, "task")
			when := api.When(rapid.Bool().Draw(t, "future"))
			got, want := placer.best(task, when, Options{}), placer.scan(task, when, nil, nil)
			if got != want {
				t.Fatalf("best node of %s: got %s, want %s", task.Key, name(got), name(want))
			}
			changeAtRandom(t, stmt, task, want, when, rapid.SampledFrom(running).Draw(t, "victim"))
		}
	})
}

// changeAtRandom undoes a part of a statement, evicts the victim, or places the task on its best node, if it has one.
func changeAtRandom(t *rapid.T, stmt *framework.Statement, task *api.TaskInfo, best *api.NodeInfo, when api.When, victim *api.TaskInfo) {
	switch step := rapid.IntRange(0, 5).Draw(t, "step"); {
	case step == 0:
		stmt.RollbackTo(framework.Mark(rapid.IntRange(0, int(stmt.Mark())).Draw(t, "mark")))
	case step == 1 && victim.Evictable():
		stmt.Evict(victim, task.Job, api.Preempted)
	case task.Waiting() && best != nil && when == api.Now:
		stmt.Allocate(task, best)
	case task.Waiting() && best != nil:
		stmt.Pipeline(task, best)
	}
}

func name(n *api.NodeInfo) string {
	if n == nil {
		return "none"
	}
	return n.Name
}

// scorer prefers full nodes by one measure and empty ones by another, so that placements move
// scores up and down, and has ties.
type scorer struct{}

func (scorer) Name() string { return "scorer" }
func (scorer) OnSessionOpen(ssn *framework.Session) {
	ssn.AddFilterFn("scorer", func(s *api.Signature, n *api.NodeInfo) *api.Unfit {
		if s.Request.At(api.CPU) == 3000 && n.Index%3 == 0 {
			return &api.Unfit{Reason: api.OtherUnfit}
		}
		return nil
	})
	ssn.AddNodeOrderFn("scorer", func(t *api.TaskInfo, n *api.NodeInfo) api.Score {
		free := n.Idle.At(api.CPU) / 1000
		if t.Request.At(api.CPU) == 1000 {
			free = -free
		}
		return api.Score(free % 4)
	})
}
func (scorer) OnSessionClose(*framework.Session) {}

type noEffects struct{}

func (noEffects) Commit([]api.Decision) {}

func openSession(t *rapid.T, nodes int) *framework.Session {
	cluster := NewCluster()
	for i := range nodes {
		cluster.Events().SetNode(Node(fmt.Sprintf("n%d", i), rapid.IntRange(0, 9).Draw(t, "cpu"), MaxPods(5)))
	}
	for i := range 18 {
		p := Pod(fmt.Sprintf("p%d", i), 1+i%3)
		if i >= 12 {
			p.Spec.NodeName = fmt.Sprintf("n%d", i%nodes)
		}
		cluster.Events().SetPod(p)
	}
	return sessionOf(t, cluster)
}

func sessionOf(t *rapid.T, cluster *model.Cluster) *framework.Session {
	cluster.Events().Recompute()
	registry := framework.NewRegistry()
	spec := framework.PluginSpec{New: func(*conf.Decoder, framework.Handle) (framework.Plugin, error) { return scorer{}, nil }}
	if err := errors.Join(registry.AddPlugin("scorer", spec), registry.AddComponent(topology.Required())); err != nil {
		t.Fatal(err)
	}
	config := &conf.Configuration{Tiers: []conf.Tier{{Plugins: []conf.Plugin{{Name: "scorer"}}}}}
	profile, err := registry.NewProfile(config, framework.Handle{})
	if err != nil {
		t.Fatal(err)
	}
	return profile.Open(cluster, noEffects{}, logr.Discard())
}
