package framework

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

func TestRepeats(t *testing.T) {
	for name, test := range map[string]struct {
		first   func(*Session)                                       // in the session before
		between func(*model.Cluster, *clocktesting.FakePassiveClock) // and then
		want    bool
	}{
		"nothing happened": {want: true},
		"a pod has come": {
			between: func(c *model.Cluster, _ *clocktesting.FakePassiveClock) { c.Events().SetPod(pod("new", 1)) },
		},
		"a node is gone": {
			between: func(c *model.Cluster, _ *clocktesting.FakePassiveClock) { c.Events().DeleteNode("n") },
		},
		"something outside of the model has changed": {
			between: func(c *model.Cluster, _ *clocktesting.FakePassiveClock) { c.Events().NotifyExternalChange() },
		},
		"something was tried and undone": {
			first: func(ssn *Session) {
				stmt := ssn.Statement()
				stmt.Allocate(ssn.Cluster().Tasks()["p"], ssn.Cluster().Node("n"))
				stmt.Discard()
			},
			want: true,
		},
		"something was decided": {
			first: func(ssn *Session) {
				stmt := ssn.Statement()
				stmt.Allocate(ssn.Cluster().Tasks()["p"], ssn.Cluster().Node("n"))
				stmt.Commit()
			},
		},
		"it is time": {
			first: func(ssn *Session) { ssn.WakeAt(ssn.Now.Add(time.Minute)) },
			between: func(_ *model.Cluster, clock *clocktesting.FakePassiveClock) {
				clock.SetTime(clock.Now().Add(time.Minute))
			},
		},
		"it is not time yet": {
			first: func(ssn *Session) { ssn.WakeAt(ssn.Now.Add(time.Minute)) },
			between: func(_ *model.Cluster, clock *clocktesting.FakePassiveClock) {
				clock.SetTime(clock.Now().Add(time.Second))
			},
			want: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			c.Events().SetNode(node("n", 4))
			c.Events().SetPod(pod("p", 1))
			profile := profileOf(t, nil)
			clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
			profile.clock = clock
			before, _ := open(t, profile, c)
			if before.Repeats() {
				t.Error("the first session repeats")
			}
			before.Explain(c.Tasks()["p"].Job, &api.Verdict{Detail: "no"})
			if test.first != nil {
				test.first(before)
			}
			before.Close()
			if test.between != nil {
				test.between(c, clock)
			}
			ssn, _ := open(t, profile, c)
			if got := ssn.Repeats(); got != test.want {
				t.Errorf("repeats: %t", got)
			}
			if told := ssn.Outcome(c.Tasks()["p"].Job) != nil; told != test.want {
				t.Errorf("explained as before: %t", told)
			}
			if test.want && !ssn.Wake().Equal(before.Wake()) {
				t.Errorf("wakes at %v, and before at %v", ssn.Wake(), before.Wake())
			}
		})
	}
}
