// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model/modeltest"
)

// testComponent is a component whose action decides nothing.
type testComponent struct{ testPlugin }

func (testComponent) Execute(context.Context, *Session) error { return nil }

func (c testComponent) spec() ComponentSpec {
	return ComponentSpec{Name: c.name, New: func(Environment) (Plugin, Action) { return c, c }}
}

func actionNamed(name string) ComponentSpec { return testComponent{testPlugin{name: name}}.spec() }

func TestActionsOfAConfiguration(t *testing.T) {
	r := NewRegistry()
	silent := ComponentSpec{Name: "silent", New: func(Environment) (Plugin, Action) { return testPlugin{name: "silent"}, nil }}
	if err := errors.Join(
		r.AddAction(testAction("allocate")), r.AddAction(testAction("preempt")),
		r.AddLast(actionNamed("z"), "preempt"), r.AddComponent(silent), r.AddFirst(actionNamed("b")), r.AddFirst(actionNamed("a")),
	); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		actions []string
		want    []ListedAction
	}{
		"without the action that the last one belongs to": {
			[]string{"allocate"}, []ListedAction{{"b", true}, {"a", true}, {"allocate", false}},
		},
		"with it": {
			[]string{"preempt", "allocate"},
			[]ListedAction{{"b", true}, {"a", true}, {"preempt", false}, {"allocate", false}, {"z", true}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := &conf.Configuration{Actions: tc.actions}
			if diff := cmp.Diff(tc.want, r.ActionsOf(c)); diff != "" {
				t.Errorf("listed (-want +got):\n%s", diff)
			}
			profile, err := r.NewProfile(c, Handle{})
			if err != nil {
				t.Fatal(err)
			}
			var want, got []string
			for _, listed := range tc.want {
				want = append(want, listed.Name)
			}
			ssn, _ := open(t, profile, NewCluster())
			for _, action := range ssn.Actions() {
				got = append(got, action.Name())
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("actions of a session (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRegistryRefusesComponents(t *testing.T) {
	r := NewRegistry()
	if err := r.AddFirst(actionNamed("a")); err != nil {
		t.Fatal(err)
	}
	for want, err := range map[string]error{
		`component "a" is registered twice`: r.AddComponent(actionNamed("a")),
		`component "b" has no factory`:      r.AddLast(ComponentSpec{Name: "b"}),
	} {
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// A component lives as long as its model, opens after the plugins and closes after them.
func TestLifetimeOfComponents(t *testing.T) {
	var calls []string
	made := 0
	say := func(what string) func(*Session) { return func(*Session) { calls = append(calls, what) } }
	r := NewRegistry()
	if err := errors.Join(
		r.AddComponent(ComponentSpec{Name: "c", New: func(Environment) (Plugin, Action) {
			made++
			name := fmt.Sprint("c", made)
			return testPlugin{name: "c", open: say("open " + name), close: say("close " + name)}, nil
		}}),
		r.AddPlugin("p", testPlugin{name: "p", open: say("open p"), close: say("close p")}.spec()),
	); err != nil {
		t.Fatal(err)
	}
	profile, err := r.NewProfile(&conf.Configuration{Tiers: []conf.Tier{{Plugins: []conf.Plugin{{Name: "p"}}}}}, Handle{})
	if err != nil {
		t.Fatal(err)
	}
	first := NewCluster()
	for _, c := range []*model.Cluster{first, first, NewCluster()} {
		ssn, _ := open(t, profile, c)
		ssn.Close()
	}
	want := []string{
		"open p", "open c1", "close p", "close c1",
		"open p", "open c1", "close p", "close c1",
		"open p", "open c2", "close p", "close c2",
	}
	if diff := cmp.Diff(want, calls); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The lifecycle points report a session from the validation of jobs to its end. Committed functions find the decisions in
// the model before Effects has them, and Closed functions find the placements that wait.
func TestLifecyclePoints(t *testing.T) {
	c := NewCluster()
	c.Events().SetNode(Node("n", 4))
	c.Events().SetPod(Pod("a", 1))
	c.Events().SetPod(Pod("b", 1))
	var said []string
	say := func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }
	var committed *effects
	profile := profileOf(t, nil, []testPlugin{{
		name: "p",
		open: func(ssn *Session) {
			status := func(id api.TaskID) api.TaskStatus { return ssn.Cluster().Tasks()[id].Status }
			ssn.AddOpenedFn("p", func() { say("opened with %d jobs", len(ssn.Jobs())) })
			ssn.AddCommittedFn("p", func(decisions []api.Decision, held bool) {
				for _, d := range decisions {
					say("committed %s, which is %v, held: %t, carried out: %q", wordsOf(d), status(d.Task.ID), held, committed.committed)
				}
			})
			ssn.AddClosedFn("p", func() { say("closed, b is %v", status("b")) })
		},
		close: func(ssn *Session) { say("closing the plugin, b is %v", ssn.Cluster().Tasks()["b"].Status) },
	}})
	ssn, e := open(t, profile, c)
	committed = e
	stmt := ssn.Statement()
	stmt.Allocate(c.Tasks()["a"], c.Node("n"))
	stmt.Commit()
	stmt = ssn.Statement()
	stmt.Pipeline(c.Tasks()["b"], c.Node("n"))
	stmt.Commit()
	ssn.Close()
	want := []string{
		"opened with 2 jobs",
		`committed allocate a n, which is Allocated, held: false, carried out: []`,
		`committed pipeline b n, which is Pipelined, held: true, carried out: ["allocate a n"]`,
		"closed, b is Pipelined",
		"closing the plugin, b is Pending",
	}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
