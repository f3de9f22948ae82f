package framework

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/audit"
)

// What is set aside counts as taken until the session closes, except in the turn of whom it is for; and
// the next session is told of it.
func TestSetAside(t *testing.T) {
	c := newCluster()
	c.Events().SetNode(node("n", 4))
	c.Events().SetPod(pod("a", 3))
	c.Events().SetPod(pod("b", 1))
	profile := profileOf(t, nil, []testPlugin{{name: "p", open: func(ssn *Session) {
		ssn.AddJobPipelinedFn("p", (*api.JobInfo).Pipelined)
	}}})
	ssn, _ := open(t, profile, c)
	before := audit.Dump(c)
	gang, other := c.Tasks()["a"], c.Tasks()["b"]
	room := func() int64 {
		return ssn.Nodes().Available(api.NewClaim(other.Job, []*api.TaskInfo{other})).At(api.CPU) / 1000
	}
	var got []int64
	look := func() { got = append(got, room()) }

	look()
	ssn.Reserve(gang.Job, []api.Decision{{Kind: api.Pipeline, Task: gang, Node: c.Node("n")}})
	look()
	ssn.ActivateReservation(gang.Job)
	look()
	ssn.ActivateReservation(other.Job)
	look()
	ssn.ActivateReservation(gang.Job)
	stmt := ssn.Statement()
	stmt.Pipeline(gang, c.Node("n"))
	ssn.ActivateReservation(other.Job) // the gang has its place, and needs no other
	look()
	stmt.Discard()
	ssn.ActivateReservation(nil)
	look()
	if diff := cmp.Diff([]int64{4, 1, 4, 1, 1, 1}, got); diff != "" {
		t.Errorf("room for others in cpus (-want +got):\n%s", diff)
	}
	ssn.Close()
	if diff := cmp.Diff(before, audit.Dump(c)); diff != "" {
		t.Errorf("after the session:\n%s", diff)
	}

	ssn, _ = open(t, profile, c)
	want := Placements{{Node: "n", Signature: gang.Signature}: 1}
	if diff := cmp.Diff(want, ssn.PreviousReservation(gang.Job)); diff != "" {
		t.Errorf("told to the next session (-want +got):\n%s", diff)
	}
	ssn.Close()
	ssn, _ = open(t, profile, c)
	if told := ssn.PreviousReservation(gang.Job); told != nil {
		t.Errorf("told to the one after: %v", told)
	}
	ssn.Close()
}

// Who found no plan while room was set aside may find one when it no longer is.
func TestHopeWhereRoomIsNoLongerSetAside(t *testing.T) {
	c := newCluster()
	c.Events().SetNode(node("n", 4))
	c.Events().SetPod(pod("a", 3))
	profile := profileOf(t, nil)
	for i, aside := range []bool{true, true, false, false} {
		ssn, _ := open(t, profile, c)
		if aside {
			task := c.Tasks()["a"]
			ssn.Reserve(task.Job, []api.Decision{{Kind: api.Pipeline, Task: task, Node: c.Node("n")}})
		}
		ssn.SetInfeasible("kind", 0)
		ssn.Close()
		ssn, _ = open(t, profile, c)
		_, hopeless := ssn.KnownInfeasible("kind")
		if want := []bool{false, true, false, true}[i]; hopeless != want {
			t.Errorf("session %d: remembered as hopeless: %t, want %t", i, hopeless, want)
		}
		// Closed like the one before, so that nothing changes in between.
		if aside {
			task := c.Tasks()["a"]
			ssn.Reserve(task.Job, []api.Decision{{Kind: api.Pipeline, Task: task, Node: c.Node("n")}})
		}
		ssn.Close()
	}
}
