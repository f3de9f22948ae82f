// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model/modeltest"
)

// pantry is a plugin that reserves something for each task with external resources.
type pantry struct{ taken []string }

type jar struct {
	pantry *pantry
	label  string
}

func (j jar) Commit(context.Context) error { return nil }

func (j jar) Release() {
	i := slices.Index(j.pantry.taken, j.label)
	if i < 0 {
		panic(j.label + " is released, and was not taken")
	}
	j.pantry.taken = slices.Delete(j.pantry.taken, i, i+1)
}

func (p *pantry) plugin() testPlugin {
	return testPlugin{name: "pantry", open: func(ssn *Session) {
		ssn.AddReserveFn("pantry", func(t *api.TaskInfo, n *api.NodeInfo) api.ExternalReservation {
			if !t.Waiting() {
				panic("the model shows the task on its node before anything is reserved for it")
			}
			p.taken = append(p.taken, string(t.ID)+" "+n.Name)
			return jar{p, string(t.ID) + " " + n.Name}
		})
	}}
}

func claims(p *v1.Pod) {
	p.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{
		PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: p.Name},
	}}}
}

// What is reserved is always what the tasks with volumes that the statement places would take, whatever was
// done and undone before.
func TestReservationsFollowPlacements(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &pantry{}
		tr := &trial{c: NewCluster()}
		for i := range 3 {
			tr.c.Events().SetNode(Node(fmt.Sprintf("n%d", i), 4))
		}
		for i := range 5 {
			changes := []func(*v1.Pod){}
			if i%2 == 0 {
				changes = append(changes, claims)
			}
			if i > 3 {
				changes = append(changes, On("n0"), func(p *v1.Pod) { p.Status.Phase = v1.PodRunning })
			}
			pod := Pod(fmt.Sprintf("p%d", i), 1, changes...)
			tr.c.Events().SetPod(pod)
			tr.tasks = append(tr.tasks, tr.c.Tasks()[api.TaskID(pod.UID)])
		}
		tr.ssn, _ = open(t, profileOf(t, nil, []testPlugin{p.plugin()}), tr.c)
		tr.stmt = tr.ssn.Statement()
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "kind") {
			case 0:
				tr.stmt.RollbackTo(Mark(rapid.IntRange(0, int(tr.stmt.Mark())).Draw(t, "mark")))
			case 1:
				tr.stmt.Revoke(rapid.SampledFrom(tr.tasks).Draw(t, "revoked"))
			default:
				tr.step(t)
			}
			var want []string
			for _, task := range tr.tasks {
				if task.Signature.Volumes && (task.Status == api.Allocated || task.Status == api.Pipelined) {
					want = append(want, string(task.ID)+" "+task.Node.Name)
				}
			}
			slices.Sort(p.taken)
			if diff := cmp.Diff(want, slices.Clone(p.taken)); diff != "" && len(want)+len(p.taken) > 0 {
				t.Fatalf("reserved (-want +got):\n%s", diff)
			}
		}
	})
}

// TestWhoHasReservationsAfterASession commits a statement over two pods with volumes, and closes the session.
func TestWhoHasReservationsAfterASession(t *testing.T) {
	tests := map[string]struct {
		place func(*Statement, *api.TaskInfo, *api.NodeInfo)
		want  []string
	}{
		"who is to bind them":              {(*Statement).Allocate, []string{"p0 n0", "p1 n0"}},
		"nothing, if the gang has to wait": {(*Statement).Pipeline, []string{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p, c := &pantry{}, NewCluster()
			c.Events().SetNode(Node("n0", 4))
			c.Events().SetPod(Pod("p0", 1, claims))
			c.Events().SetPod(Pod("p1", 1, claims))
			ssn, committed := open(t, profileOf(t, nil, []testPlugin{p.plugin()}), c)
			stmt := ssn.Statement()
			for _, id := range []api.TaskID{"p0", "p1"} {
				tt.place(stmt, c.Tasks()[id], c.Node("n0"))
			}
			stmt.Commit()
			if want := []string{"p0 n0", "p1 n0"}; !slices.Equal(want, p.taken) {
				t.Errorf("reserved until the session closes: %v, want %v; committed: %v", p.taken, want, committed.committed)
			}
			ssn.Close()
			if diff := cmp.Diff(tt.want, append([]string{}, p.taken...)); diff != "" {
				t.Errorf("reserved (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPlacingTasksWithoutVolumesReservesNothing(t *testing.T) {
	p, c := &pantry{}, NewCluster()
	c.Events().SetNode(Node("n0", 4))
	c.Events().SetPod(Pod("p0", 1))
	ssn, _ := open(t, profileOf(t, nil, []testPlugin{p.plugin()}), c)
	task := c.Tasks()["p0"]
	if allocated := testing.AllocsPerRun(100, func() { ssn.reserveExternal(task, c.Node("n0")) }); allocated > 0 || len(p.taken) > 0 {
		t.Errorf("%v allocations, and %v is reserved; want none", allocated, p.taken)
	}
}
