// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model/modeltest"
)

type testAction string

func (a testAction) Name() string { return string(a) }

func (testAction) Execute(context.Context, *Session) error { return nil }

func TestRegistryRefuses(t *testing.T) {
	cases := map[string]struct {
		add  func(*Registry) error
		want string
	}{
		"a plugin twice":           {func(r *Registry) error { return r.AddPlugin("gang", testPlugin{}.spec()) }, `plugin "gang" is registered twice`},
		"a plugin without factory": {func(r *Registry) error { return r.AddPlugin("none", PluginSpec{}) }, `plugin "none" has no factory`},
		"an action twice":          {func(r *Registry) error { return r.AddAction(testAction("allocate")) }, `action "allocate" is registered twice`},
		"a configuration with an unknown action": {func(r *Registry) error {
			_, err := r.NewProfile(&conf.Configuration{Actions: []string{"alocate"}}, Handle{})
			return err
		}, `action "alocate" is not registered`},
		"a configuration with an unknown plugin": {func(r *Registry) error {
			_, err := r.NewProfile(&conf.Configuration{Tiers: []conf.Tier{{Plugins: []conf.Plugin{{Name: "gagn"}}}}}, Handle{})
			return err
		}, `plugin "gagn" is not registered`},
		"a plugin that cannot be made": {func(r *Registry) error {
			spec := PluginSpec{New: func(*conf.Decoder, Handle) (Plugin, error) { return nil, errors.New("out of order") }}
			if err := r.AddPlugin("broken", spec); err != nil {
				return err
			}
			_, err := r.NewProfile(&conf.Configuration{Tiers: []conf.Tier{{Plugins: []conf.Plugin{{Name: "broken"}}}}}, Handle{})
			return err
		}, `plugin broken: out of order`},
		"an argument that the plugin does not read": {func(r *Registry) error {
			plugin := conf.Plugin{Name: "gang", Arguments: conf.Arguments{"speed": "1"}}
			_, err := r.NewProfile(&conf.Configuration{Tiers: []conf.Tier{{Plugins: []conf.Plugin{plugin}}}}, Handle{})
			return err
		}, `plugin gang: [speed]: Forbidden: no such argument; there are no arguments`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := NewRegistry()
			if err := errors.Join(r.AddPlugin("gang", testPlugin{name: "gang"}.spec()), r.AddAction(testAction("allocate"))); err != nil {
				t.Fatal(err)
			}
			err := tc.add(r)
			if err == nil || err.Error() != tc.want {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

func TestCatalog(t *testing.T) {
	r := NewRegistry()
	if err := errors.Join(
		r.AddAction(testAction("reclaim")), r.AddAction(testAction("allocate")), r.AddPlugin("gang", testPlugin{}.spec()),
	); err != nil {
		t.Fatal(err)
	}
	c := r.Catalog()
	if diff := cmp.Diff([]string{"allocate", "reclaim"}, c.Actions); diff != "" {
		t.Error(diff)
	}
	if got := c.ArgumentsOf("gang"); len(got) > 0 {
		t.Errorf("a plugin without check has the arguments %v", got)
	}
}

func TestMisuseOfRegistrationPanics(t *testing.T) {
	ready := func(*api.JobInfo) bool { return true }
	cases := map[string]struct {
		open, after func(*Session)
		want        string
	}{
		"after the session has opened": {
			after: func(ssn *Session) { ssn.AddJobReadyFn("p", ready) },
			want:  `plugin "p" registers outside of its OnSessionOpen`,
		},
		"under the name of another": {
			open: func(ssn *Session) { ssn.AddJobReadyFn("q", ready) },
			want: `plugin "q" registers outside of its OnSessionOpen`,
		},
		"no function": {
			open: func(ssn *Session) { ssn.AddJobReadyFn("p", nil) },
			want: `plugin "p" registers a nil function`,
		},
		"no function at a point that is switched off": {
			open: func(ssn *Session) { ssn.AddPredicateFn("p", nil) },
			want: `plugin "p" registers a nil function`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			profile := profileOf(t, []conf.Point{conf.Predicate}, []testPlugin{{name: "p", open: tc.open}})
			defer func() {
				if got := recover(); got != tc.want {
					t.Errorf("panic: %v, want %s", got, tc.want)
				}
			}()
			ssn, _ := open(t, profile, NewCluster())
			tc.after(ssn)
		})
	}
}

// A point that the configuration switches off is never asked.
func TestSwitchedOffPointsAreNotAsked(t *testing.T) {
	var asked []string
	note := func(point string) { asked = append(asked, point) }
	everywhere := testPlugin{name: "p", open: func(ssn *Session) {
		ssn.AddJobOrderFn("p", func(_, _ *api.JobInfo) int { note("JobOrder"); return 0 })
		ssn.AddQueueOrderFn("p", func(_, _ *api.QueueInfo) int { note("QueueOrder"); return 0 })
		ssn.AddTaskOrderFn("p", func(_, _ *api.TaskInfo) int { note("TaskOrder"); return 0 })
		ssn.AddJobReadyFn("p", func(*api.JobInfo) bool { note("JobReady"); return true })
		ssn.AddJobPipelinedFn("p", func(*api.JobInfo) bool { note("JobPipelined"); return true })
		ssn.AddFilterFn("p", func(*api.Signature, *api.NodeInfo) *api.Unfit { note("Predicate"); return nil })
		ssn.AddPredicateFn("p", func(*api.TaskInfo, *api.NodeInfo, api.When) *api.Unfit { note("Predicate"); return nil })
		ssn.AddNodeOrderFn("p", func(*api.TaskInfo, *api.NodeInfo) api.Score { note("NodeOrder"); return 0 })
		ssn.AddPreemptableFn("p", func(*api.Claim, api.Unit) api.Vote { note("Preemptable"); return api.Abstain })
		ssn.AddReclaimableFn("p", func(*api.Claim, api.Unit) api.Vote { note("Reclaimable"); return api.Abstain })
		ssn.AddOverusedFn("p", func(*api.QueueInfo, *api.Claim) bool { note("Overused"); return false })
	}}
	ask := func(ssn *Session) {
		ssn.CompareJobs(&api.JobInfo{}, &api.JobInfo{})
		ssn.CompareQueues(nil, nil)
		ssn.CompareTasks(&api.TaskInfo{}, &api.TaskInfo{})
		ssn.JobReady(nil)
		ssn.JobPipelined(nil)
		ssn.Filter(nil, nil)
		ssn.Predicate(nil, nil, api.Now)
		ssn.NodeScore(nil, nil)
		ssn.Preemptable(nil, api.Unit{})
		ssn.Reclaimable(nil, api.Unit{})
		ssn.Overused(nil, nil)
	}
	points := []conf.Point{
		conf.JobOrder, conf.QueueOrder, conf.TaskOrder, conf.JobReady, conf.JobPipelined, conf.Predicate, conf.NodeOrder,
		conf.Preemptable, conf.Reclaimable,
	}
	for _, off := range points {
		t.Run(string(off), func(t *testing.T) {
			asked = nil
			ssn, _ := open(t, profileOf(t, []conf.Point{off}, []testPlugin{everywhere}), NewCluster())
			ask(ssn)
			for _, other := range points {
				heard := strings.Contains(strings.Join(asked, " "), string(other))
				if heard == (other == off) {
					t.Errorf("%s is asked: %t", other, heard)
				}
			}
			if !strings.Contains(strings.Join(asked, " "), "Overused") {
				t.Error("a point without switch is not asked")
			}
		})
	}
}

func TestPluginsAreOpenedAndClosedOncePerSession(t *testing.T) {
	var calls []string
	spy := func(name string) testPlugin {
		return testPlugin{
			name:  name,
			open:  func(*Session) { calls = append(calls, "open "+name) },
			close: func(*Session) { calls = append(calls, "close "+name) },
		}
	}
	profile := profileOf(t, nil, []testPlugin{spy("a"), spy("b")}, []testPlugin{spy("c")})
	for range 2 {
		ssn, _ := open(t, profile, NewCluster())
		ssn.Close()
	}
	session := []string{"open a", "open b", "open c", "close a", "close b", "close c"}
	if diff := cmp.Diff(append(session[:6:6], session...), calls); diff != "" {
		t.Error(diff)
	}
}
