// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package conf_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/config/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
)

func TestParseAccepts(t *testing.T) {
	type wanted struct {
		conf     *conf.Configuration
		warnings string
	}
	twoTiers := []conf.Tier{
		plugins("priority", "gang", "conformance"),
		{Plugins: []conf.Plugin{
			{Name: "drf"}, {Name: "predicates"}, {Name: "proportion"},
			{Name: "nodeorder", Arguments: conf.Arguments{"nodeaffinity.weight": "2"}},
		}},
	}
	for name, tc := range map[string]struct {
		given string
		want  wanted
	}{
		"the file of kube-batch as it is": {
			given: `
actions: "allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
    arguments: {nodeaffinity.weight: "2"}
`,
			want: wanted{conf: &conf.Configuration{Actions: []string{"allocate", "backfill"}, Tiers: twoTiers}},
		},
		"all four actions of kube-batch": {
			given: `
actions: "reclaim, allocate, backfill, preempt"
tiers:
- plugins: [{name: priority}, {name: proportion}]
`,
			want: wanted{
				conf: &conf.Configuration{Actions: []string{"reclaim", "allocate", "backfill", "preempt"}, Tiers: []conf.Tier{plugins("priority", "proportion")}},
			},
		},
		"actions as a list, in its order": {
			given: "actions:\n- backfill\n- allocate\ntiers: [{plugins: [{name: gang}]}]",
			want:  wanted{conf: &conf.Configuration{Actions: []string{"backfill", "allocate"}, Tiers: []conf.Tier{plugins("gang")}}},
		},
		"spaces around the actions of a list": {
			given: "actions: [' backfill', 'allocate ']\ntiers: [{plugins: [{name: gang}]}]",
			want:  wanted{conf: &conf.Configuration{Actions: []string{"backfill", "allocate"}, Tiers: []conf.Tier{plugins("gang")}}},
		},
		"version and kind": {
			given: "apiVersion: config.batch-scheduler.dev/v1alpha1\nkind: SchedulerConfiguration\nactions: allocate\ntiers: [{plugins: [{name: gang}]}]",
			want:  wanted{conf: &conf.Configuration{Actions: []string{"allocate"}, Tiers: []conf.Tier{plugins("gang")}}},
		},
		"JSON": {
			given: `{"actions": ["allocate"], "tiers": [{"plugins": [{"name": "gang", "enableJobOrder": false}]}]}`,
			want: wanted{conf: &conf.Configuration{Actions: []string{"allocate"}, Tiers: []conf.Tier{{
				Plugins: []conf.Plugin{{Name: "gang", Disabled: []conf.Point{conf.JobOrder}}}}}}},
		},
		"every switch, off and on": {
			given: `
actions: allocate
tiers:
- plugins:
  - name: drf
    enableNodeOrder: false
    enablePredicate: false
    enableQueueOrder: false
    enableReclaimable: false
    enablePreemptable: false
    enableTaskOrder: false
    enableJobPipelined: false
    enableJobReady: false
    enableJobOrder: "false"
  - name: gang
    enableJobOrder: true
    enableJobReady: true
    enableJobPipelined: true
    enableTaskOrder: true
    enablePreemptable: true
    enableReclaimable: true
    enableQueueOrder: true
    enablePredicate: true
    enableNodeOrder: True
`,
			want: wanted{conf: &conf.Configuration{Actions: []string{"allocate"}, Tiers: []conf.Tier{{Plugins: []conf.Plugin{
				{Name: "drf", Disabled: []conf.Point{
					conf.JobOrder, conf.JobReady, conf.JobPipelined, conf.TaskOrder, conf.Preemptable,
					conf.Reclaimable, conf.QueueOrder, conf.Predicate, conf.NodeOrder}},
				{Name: "gang"},
			}}}}},
		},
		"arguments as strings, numbers and booleans": {
			given: `
actions: allocate
tiers:
- plugins:
  - name: predicates
    arguments: {predicate.MemoryPressureEnable: True}
  - name: nodeorder
    arguments:
      leastrequested.weight: 0
      nodeaffinity.weight: '1000'
`,
			want: wanted{conf: &conf.Configuration{Actions: []string{"allocate"}, Tiers: []conf.Tier{{Plugins: []conf.Plugin{
				{Name: "predicates", Arguments: conf.Arguments{"predicate.MemoryPressureEnable": "True"}},
				{Name: "nodeorder", Arguments: conf.Arguments{"leastrequested.weight": "0", "nodeaffinity.weight": "1000"}},
			}}}}},
		},
		"fields without a value count as absent": {
			given: "apiVersion:\nkind: ~\nactions: allocate\ntiers:\n- plugins:\n  - {name: gang, arguments: , enableJobOrder: }\n",
			want:  wanted{conf: &conf.Configuration{Actions: []string{"allocate"}, Tiers: []conf.Tier{plugins("gang")}}},
		},
		"no tiers, with a warning": {
			given: "actions: allocate",
			want: wanted{
				conf:     &conf.Configuration{Actions: []string{"allocate"}},
				warnings: "f:1: tiers: no tiers: no plugin is active",
			},
		},
		"tiers without plugins, each with a warning": {
			given: "actions: allocate\ntiers:\n- plugins: []\n- plugins:\n  - name: gang\n- {}\n",
			want: wanted{
				conf:     &conf.Configuration{Actions: []string{"allocate"}, Tiers: []conf.Tier{{}, plugins("gang"), {}}},
				warnings: "f:3: tiers[0]: a tier without plugins has no effect\nf:6: tiers[2]: a tier without plugins has no effect",
			},
		},
		"reclaim that no plugin permits, with a warning": {
			given: "actions: [allocate, reclaim]\ntiers: [{plugins: [{name: priority}, {name: drf}, {name: gang}]}]",
			want: wanted{
				conf: &conf.Configuration{Actions: []string{"allocate", "reclaim"}, Tiers: []conf.Tier{plugins("priority", "drf", "gang")}},
				warnings: `
f:1: actions[1]: reclaim will never evict anything: no plugin permits it; add acme or proportion with enableReclaimable on`,
			},
		},
		"preempt that no plugin permits, because of a switch, with a warning": {
			given: "actions: allocate, preempt\ntiers: [{plugins: [{name: priority, enablePreemptable: false}, {name: proportion}]}]",
			want: wanted{
				conf: &conf.Configuration{Actions: []string{"allocate", "preempt"}, Tiers: []conf.Tier{{Plugins: []conf.Plugin{
					{Name: "priority", Disabled: []conf.Point{conf.Preemptable}}, {Name: "proportion"}}}}},
				warnings: `
f:1: actions: preempt will never evict anything: no plugin permits it; add acme or drf or priority with enablePreemptable on`,
			},
		},
		"reclaim that a plugin of a third party may permit, without that warning": {
			given: "actions: allocate, reclaim\ntiers: [{plugins: [{name: acme}]}]",
			want: wanted{
				conf: &conf.Configuration{Actions: []string{"allocate", "reclaim"}, Tiers: []conf.Tier{plugins("acme")}},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, warnings, err := conf.Parse("f", []byte(tc.given), testCatalog())
			if err != nil {
				t.Fatal(err)
			}
			tc.want.conf.StarvationAfter = v1alpha1.DefaultStarvationAfter
			if diff := cmp.Diff(tc.want.conf, got); diff != "" {
				t.Errorf("configuration (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(strings.TrimSpace(tc.want.warnings), lines(warnings)); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStarvationAfter(t *testing.T) {
	for name, tc := range map[string]struct {
		given string
		want  time.Duration
	}{
		"a duration":                    {"starvationAfter: 1h30m", 90 * time.Minute},
		"in quotes":                     {`starvationAfter: "90s"`, 90 * time.Second},
		"off":                           {"starvationAfter: 0", 0},
		"absent":                        {"", 5 * time.Minute},
		"without a value, as if absent": {"starvationAfter:", 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := conf.Parse("f", []byte("actions: allocate\n"+tc.given), testCatalog())
			if err != nil {
				t.Fatal(err)
			}
			if got.StarvationAfter != tc.want {
				t.Errorf("got %s, want %s", got.StarvationAfter, tc.want)
			}
		})
	}
}

func TestExpect(t *testing.T) {
	for given, want := range map[string]time.Duration{"expect: 90s": 90 * time.Second, "expect: 0": 0, "": 0} {
		got, _, err := conf.Parse("f", []byte("actions: allocate\n"+given), testCatalog())
		if err != nil {
			t.Fatal(err)
		}
		if got.Expect != want {
			t.Errorf("%q: got %s, want %s", given, got.Expect, want)
		}
	}
}

func TestGroupSources(t *testing.T) {
	for name, tc := range map[string]struct {
		given string
		want  api.GroupSources
	}{
		"absent":                        {"", api.GroupSources{}},
		"without a value, as if absent": {"groupSources:", api.GroupSources{}},
		"own":                           {"groupSources: [own]", api.GroupSources{}},
		"all":                           {"groupSources: [volcano, own, native, kai, scheduler-plugins]", api.AllGroupSources()},
		"one, and own unlisted":         {"groupSources: [scheduler-plugins]", api.GroupSources{SchedulerPlugins: true}},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := conf.Parse("f", []byte("actions: allocate\n"+tc.given), testCatalog())
			if err != nil {
				t.Fatal(err)
			}
			if got.GroupSources != tc.want {
				t.Errorf("got %+v, want %+v", got.GroupSources, tc.want)
			}
		})
	}
}

func TestGrouping(t *testing.T) {
	for name, tc := range map[string]struct {
		given string
		want  api.Grouping
	}{
		"absent":          {"", api.Grouping{}},
		"without a value": {"grouping:", api.Grouping{}},
		"without kinds":   {"grouping: {kinds: []}", api.Grouping{}},
		"a kind":          {"grouping: {kinds: [jobset]}", api.Grouping{Kinds: api.KindJobSet}},
		"Jobs":            {"grouping: {kinds: [job, raycluster]}", api.Grouping{Kinds: api.KindJob | api.KindRayCluster}},
		"indexed Jobs":    {"grouping: {kinds: [job], job: indexed}", api.Grouping{Kinds: api.KindJob, IndexedJobs: true}},
		"all": {"grouping: {kinds: [job, jobset, kubeflow, kueue, leaderworkerset, mpijob, raycluster, sparkapplication, trainjob], job: basic}", api.Grouping{
			Kinds: api.KindJob | api.KindJobSet | api.KindKubeflow | api.KindKueue | api.KindLeaderWorkerSet | api.KindMPIJob | api.KindRayCluster |
				api.KindSparkApplication | api.KindTrainJob,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := conf.Parse("f", []byte("actions: allocate\n"+tc.given), testCatalog())
			if err != nil {
				t.Fatal(err)
			}
			if got.Grouping != tc.want {
				t.Errorf("got %+v, want %+v", got.Grouping, tc.want)
			}
		})
	}
}
