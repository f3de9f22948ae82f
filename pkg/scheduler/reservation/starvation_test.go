// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package reservation

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/audit"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model/modeltest"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/place"
)

// starvationIn makes a profile with the policy, and returns the policy of its current model.
func starvationIn(t *testing.T) (*framework.Profile, func() *starvation) {
	t.Helper()
	var s *starvation
	spec := capturing(Starvation(), &s)
	return profileWith(t, spec), func() *starvation { return s }
}

func (s *starvation) reserve(ssn *framework.Session, task *api.TaskInfo) {
	r := &reservation{job: task.Job, placements: []api.Decision{{Kind: api.Pipeline, Task: task, Node: ssn.Cluster().Node("n")}}}
	r.hold(ssn)
	s.open = append(s.open, r)
}

// Reserved resources count as taken until the session closes, except for the current job if they are reserved for it. The
// next session knows where they were.
func TestReservations(t *testing.T) {
	c := NewCluster()
	c.Events().SetNode(Node("n", 4))
	c.Events().SetPod(Pod("a", 3))
	c.Events().SetPod(Pod("b", 1))
	profile, policy := starvationIn(t)
	ssn := open(profile, c)
	before := audit.Dump(c)
	gang, other := c.Tasks()["a"], c.Tasks()["b"]
	available := func() int64 {
		return ssn.Nodes().Available(api.NewClaim(other.Job, []*api.TaskInfo{other})).At(api.CPU) / 1000
	}
	var got []int64
	look := func() { got = append(got, available()) }

	look()
	policy().reserve(ssn, gang)
	look()
	ssn.ActivateReservation(gang.Job)
	look()
	ssn.ActivateReservation(other.Job)
	look()
	ssn.ActivateReservation(gang.Job)
	stmt := ssn.Statement()
	stmt.Pipeline(gang, c.Node("n"))
	ssn.ActivateReservation(other.Job) // the gang has its placements, and needs no others
	look()
	stmt.Discard()
	ssn.ActivateReservation(nil)
	look()
	if diff := cmp.Diff([]int64{4, 1, 4, 1, 1, 1}, got); diff != "" {
		t.Errorf("cpus available to others (-want +got):\n%s", diff)
	}
	ssn.Close()
	if diff := cmp.Diff(before, audit.Dump(c)); diff != "" {
		t.Errorf("after the session:\n%s", diff)
	}

	ssn = open(profile, c)
	want := place.Placements{{Node: "n", Signature: gang.Signature}: 1}
	if diff := cmp.Diff(want, policy().lastPlacements(gang.Job)); diff != "" {
		t.Errorf("known to the next session (-want +got):\n%s", diff)
	}
	ssn.Close()
	ssn = open(profile, c)
	if known := policy().lastPlacements(gang.Job); known != nil {
		t.Errorf("known to the one after: %v", known)
	}
	ssn.Close()
}

// A claim that found no plan while resources were reserved may find one when they no longer are.
func TestEndOfReservationsInvalidatesPlans(t *testing.T) {
	c := NewCluster()
	c.Events().SetNode(Node("n", 4))
	c.Events().SetPod(Pod("a", 3))
	profile, policy := starvationIn(t)
	for i, reserved := range []bool{true, true, false, false} {
		ssn := open(profile, c)
		if reserved {
			policy().reserve(ssn, c.Tasks()["a"])
		}
		ssn.Plans().SetInfeasible("kind", 0)
		ssn.Close()
		ssn = open(profile, c)
		_, infeasible := ssn.Plans().KnownInfeasible("kind")
		if want := []bool{false, true, false, true}[i]; infeasible != want {
			t.Errorf("session %d: remembered as infeasible: %t, want %t", i, infeasible, want)
		}
		// Closed like the one before, so that nothing changes in between.
		if reserved {
			policy().reserve(ssn, c.Tasks()["a"])
		}
		ssn.Close()
	}
}

// A rebuilt model has new policies, which know nothing of the one before.
func TestPoliciesAreMadeForEachModel(t *testing.T) {
	profile, policy := starvationIn(t)
	var made []*starvation
	for range 2 {
		c := NewCluster()
		for range 2 {
			open(profile, c).Close()
			made = append(made, policy())
		}
	}
	if made[0] != made[1] || made[1] == made[2] || made[2] != made[3] {
		t.Error("not one policy for each model")
	}
}
