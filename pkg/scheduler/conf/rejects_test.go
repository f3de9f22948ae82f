// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package conf_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
)

func TestParseRejects(t *testing.T) {
	for name, tc := range map[string]struct {
		given string
		want  string
	}{
		"nothing at all": {
			given: "",
			want:  `f:1: actions: Required value: name at least one action, such as "allocate, backfill"`,
		},
		"only comments": {
			given: "# later\n",
			want:  `f:1: actions: Required value: name at least one action, such as "allocate, backfill"`,
		},
		"actions that are empty": {
			given: "tiers: []\nactions: ' '",
			want:  `f:2: actions: Required value: name at least one action, such as "allocate, backfill"`,
		},
		"an empty list of actions": {
			given: "actions: []",
			want:  `f:1: actions: Required value: name at least one action, such as "allocate, backfill"`,
		},
		"what is not YAML": {
			given: "actions: allocate\ntiers: {",
			want:  "f:2: not a YAML document: did not find expected node content",
		},
		"a second document": {
			given: "actions: allocate\n---\nactions: backfill\n",
			want:  "f:2: not a YAML document: a second document starts here; a configuration is one document",
		},
		"a list at the top": {
			given: "- actions",
			want: `f:1: Invalid value: must be a mapping of keys to values, not a list
f:1: actions: Required value: name at least one action, such as "allocate, backfill"`,
		},
		"an unknown field at every level": {
			given: `
action: allocate
actions: allocate
tiers:
- plugin: []
- plugins:
  - {name: gang, enableJobReadi: true}
  - {name: drf, args: {}}
  - {name: priority, disableJobOrder: true}
  - {name: proportion, enableJobValid: true, "": 1}
`,
			want: `
f:2: action: Forbidden: no such field; did you mean "actions"?
f:5: tiers[0].plugin: Forbidden: no such field; did you mean "plugins"?
f:7: tiers[1].plugins[0].enableJobReadi: Forbidden: no such field; did you mean "enableJobReady"?
f:8: tiers[1].plugins[1].args: Forbidden: no such field; known fields: arguments, enableJobOrder, enableJobPipelined, enableJobReady, enableNodeOrder, enablePredicate, enablePreemptable, enableQueueOrder, enableReclaimable, enableTaskOrder, name
f:9: tiers[1].plugins[2].disableJobOrder: Forbidden: no such field; write "enableJobOrder: false" to switch it off
f:10: tiers[1].plugins[3].enableJobValid: Forbidden: no such field; known fields: arguments, enableJobOrder, enableJobPipelined, enableJobReady, enableNodeOrder, enablePredicate, enablePreemptable, enableQueueOrder, enableReclaimable, enableTaskOrder, name
f:10: tiers[1].plugins[3][]: Forbidden: no such field; known fields: arguments, enableJobOrder, enableJobPipelined, enableJobReady, enableNodeOrder, enablePredicate, enablePreemptable, enableQueueOrder, enableReclaimable, enableTaskOrder, name`,
		},
		"unknown actions, close to a known one and far from all": {
			given: "actions: allocat, Backfill, destroy",
			want: `
f:1: actions: Invalid value: "allocat": no such action; did you mean "allocate"?
f:1: actions: Invalid value: "Backfill": no such action; did you mean "backfill"?
f:1: actions: Invalid value: "destroy": no such action; known actions: allocate, backfill, preempt, reclaim`,
		},
		"an unknown action in a list": {
			given: "actions:\n- allocate\n- preemt\n",
			want:  `f:3: actions[1]: Invalid value: "preemt": no such action; did you mean "preempt"?`,
		},
		"an action twice": {
			given: "actions: allocate, backfill, allocate",
			want:  `f:1: actions: Duplicate value: "allocate"`,
		},
		"a comma too many": {
			given: "actions: allocate, backfill,",
			want:  `f:1: actions: Required value: an action without a name; is there a comma too many?`,
		},
		"actions of the wrong kind": {
			given: "actions: {allocate: true}",
			want:  `f:1: actions: Invalid value: must be a list, or a string with commas such as "a, b", not a mapping`,
		},
		"an action of the wrong kind": {
			given: "actions: [allocate, [backfill], ~]",
			want: `f:1: actions[1]: Invalid value: must be a string, a number or a boolean, not a list
f:1: actions[2]: Invalid value: must be a string, a number or a boolean, not null`,
		},
		"unknown plugins, close to a known one and far from all": {
			given: "actions: allocate\ntiers:\n- plugins:\n  - name: gagn\n  - name: 7\n",
			want: `
f:4: tiers[0].plugins[0].name: Invalid value: "gagn": no such plugin; did you mean "gang"?
f:5: tiers[0].plugins[1].name: Invalid value: "7": no such plugin; known plugins: acme, conformance, drf, gang, nodeorder, predicates, priority, proportion`,
		},
		"a plugin twice, also across tiers": {
			given: "actions: allocate\ntiers:\n- plugins:\n  - name: gang\n- plugins:\n  - name: drf\n  - name: gang\n",
			want:  `f:7: tiers[1].plugins[1].name: Duplicate value: "gang": named before at tiers[0].plugins[0].name`,
		},
		"a plugin without a name": {
			given: "actions: allocate\ntiers:\n- plugins:\n  - arguments: {}\n  - name:\n",
			want: `
f:4: tiers[0].plugins[0].name: Required value: every plugin needs its name
f:5: tiers[0].plugins[1].name: Required value: every plugin needs its name`,
		},
		"a plugin that is only a name": {
			given: "actions: allocate\ntiers:\n- plugins:\n  - gang\n",
			want:  `f:4: tiers[0].plugins[0]: Invalid value: must be a mapping of keys to values, not the single value "gang"`,
		},
		"tiers and plugins that are not lists": {
			given: "actions: allocate\ntiers:\n- plugins: {name: gang}\n",
			want:  `f:3: tiers[0].plugins: Invalid value: must be a list, not a mapping`,
		},
		"an unknown argument, with a suggestion": {
			given: "actions: allocate\ntiers:\n- plugins:\n  - name: nodeorder\n    arguments:\n      nodeafinity.weight: 2\n",
			want:  `f:6: tiers[0].plugins[0].arguments[nodeafinity.weight]: Forbidden: no such argument; did you mean "nodeaffinity.weight"?`,
		},
		"an argument of a plugin that takes none": {
			given: "actions: allocate\ntiers:\n- plugins:\n  - name: gang\n    arguments: {size: 2}\n",
			want:  `f:5: tiers[0].plugins[0].arguments[size]: Forbidden: no such argument; there are no arguments`,
		},
		"weights that are negative, overflow, or are not whole numbers": {
			given: `
actions: allocate
tiers:
- plugins:
  - name: nodeorder
    arguments:
      leastrequested.weight: -1
      nodeaffinity.weight: 99999999999999999999
  - name: predicates
    arguments:
      predicate.MemoryPressureEnable: maybe
`,
			want: `
f:7: tiers[0].plugins[0].arguments[leastrequested.weight]: Invalid value: "-1": must be a whole number from 0 to 1000
f:8: tiers[0].plugins[0].arguments[nodeaffinity.weight]: Invalid value: "99999999999999999999": must be a whole number from 0 to 1000
f:11: tiers[0].plugins[1].arguments[predicate.MemoryPressureEnable]: Invalid value: "maybe": must be true or false`,
		},
		"arguments without a value or with a list of them": {
			given: "actions: allocate\ntiers:\n- plugins:\n  - name: nodeorder\n    arguments:\n      nodeaffinity.weight:\n      leastrequested.weight: [1]\n",
			want: `
f:6: tiers[0].plugins[0].arguments[nodeaffinity.weight]: Required value: give a value or remove the key
f:7: tiers[0].plugins[0].arguments[leastrequested.weight]: Invalid value: must be a string, a number or a boolean, not a list`,
		},
		"switches that are neither on nor off": {
			given: "actions: allocate\ntiers:\n- plugins:\n  - {name: gang, enableJobOrder: 'no', enableTaskOrder: no, enableQueueOrder: On, enableNodeOrder: tRue, enableJobReady: 1, enablePredicate: []}\n",
			want: `
f:4: tiers[0].plugins[0].enableJobOrder: Invalid value: "no": must be true or false
f:4: tiers[0].plugins[0].enableTaskOrder: Invalid value: "no": must be true or false
f:4: tiers[0].plugins[0].enableQueueOrder: Invalid value: "On": must be true or false
f:4: tiers[0].plugins[0].enableNodeOrder: Invalid value: "tRue": must be true or false
f:4: tiers[0].plugins[0].enableJobReady: Invalid value: "1": must be true or false
f:4: tiers[0].plugins[0].enablePredicate: Invalid value: must be a string, a number or a boolean, not a list`,
		},
		"arguments that are neither true nor false, by the same rule": {
			given: "actions: allocate\ntiers:\n- plugins:\n  - {name: predicates, arguments: {predicate.MemoryPressureEnable: yes, predicate.DiskPressureEnable: '1'}}\n",
			want: `
f:4: tiers[0].plugins[0].arguments[predicate.MemoryPressureEnable]: Invalid value: "yes": must be true or false
f:4: tiers[0].plugins[0].arguments[predicate.DiskPressureEnable]: Invalid value: "1": must be true or false`,
		},
		"an action and a plugin of another scheduler": {
			given: "actions: enqueue, allocate, elekt\ntiers:\n- plugins:\n  - name: binpack\n",
			want: `
f:1: actions: Invalid value: "enqueue": no such action; delete it
f:1: actions: Invalid value: "elekt": no such action; known actions: allocate, backfill, preempt, reclaim
f:4: tiers[0].plugins[0].name: Invalid value: "binpack": no such plugin; use nodeorder`,
		},
		"a ConfigMap": {
			given: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: p}\ndata: {p: 'actions: allocate'}\n",
			want:  `f:1: kind: this is a ConfigMap: the configuration is in its data; "config check" finds it there`,
		},
		"keys given twice, at every level": {
			given: `
actions: allocate
tiers:
- plugins:
  - name: gang
    name: drf
  - name: nodeorder
    arguments:
      nodeaffinity.weight: 1
      nodeaffinity.weight: 2
actions: backfill
`,
			want: `
f:6: tiers[0].plugins[0].name: Forbidden: given twice
f:10: tiers[0].plugins[1].arguments[nodeaffinity.weight]: Forbidden: given twice
f:11: actions: Forbidden: given twice`,
		},
		"an error in a key that is given twice, at the line of the first": {
			given: "actions: alocate\nkind: []\nkind: SchedulerConfiguration\nactions: [backfill]\n",
			want: `
f:1: actions: Invalid value: "alocate": no such action; did you mean "allocate"?
f:2: kind: Invalid value: must be a string, a number or a boolean, not a list
f:3: kind: Forbidden: given twice
f:4: actions: Forbidden: given twice`,
		},
		"another version and kind": {
			given: "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nactions: allocate",
			want: `
f:1: apiVersion: Invalid value: "kubescheduler.config.k8s.io/v1": must be "config.batch-scheduler.dev/v1alpha1" or absent
f:2: kind: Invalid value: "KubeSchedulerConfiguration": must be "SchedulerConfiguration" or absent`,
		},
		"a time without a unit": {
			given: "actions: allocate\nstarvationAfter: 5",
			want:  `f:2: starvationAfter: Invalid value: "5": must be a duration with its unit, such as "5m" or "90s", or 0 for never`,
		},
		"a time that is a list": {
			given: "actions: allocate\nstarvationAfter: [5m]",
			want:  `f:2: starvationAfter: Invalid value: must be a string, a number or a boolean, not a list`,
		},
		"a negative time": {
			given: "actions: allocate\nstarvationAfter: -5m",
			want:  `f:2: starvationAfter: Invalid value: "-5m0s": must not be negative; 0 stands for never`,
		},
		"a negative time of expectation": {
			given: "actions: allocate\nexpect: -1s",
			want:  `f:2: expect: Invalid value: "-1s": must not be negative; 0 reserves nothing`,
		},
		"a misspelt time": {
			given: "actions: allocate\nstarvationafter: 5m",
			want:  `f:2: starvationafter: Forbidden: no such field; did you mean "starvationAfter"?`,
		},
		"sources that do not exist or are listed twice": {
			given: "actions: allocate\ngroupSources:\n- own\n- vulcano\n- yunikorn\n- own",
			want: `
f:4: groupSources[1]: Invalid value: "vulcano": no such source of PodGroups; did you mean "volcano"?
f:5: groupSources[2]: Invalid value: "yunikorn": no such source of PodGroups; known sources: kai, native, own, scheduler-plugins, volcano
f:6: groupSources[3]: Duplicate value: "own"`,
		},
		"kinds of grouping that are unknown or listed twice": {
			given: "actions: allocate\ngrouping:\n  kinds:\n  - jobset\n  - jobsets\n  - deployment\n  - jobset\n  kind: jobset",
			want: `
f:5: grouping.kinds[1]: Invalid value: "jobsets": no such kind of objects; did you mean "jobset"?
f:6: grouping.kinds[2]: Invalid value: "deployment": no such kind of objects; known kinds: job, jobset, kubeflow, kueue, leaderworkerset, mpijob, raycluster, sparkapplication, trainjob
f:7: grouping.kinds[3]: Duplicate value: "jobset"
f:8: grouping.kind: Forbidden: no such field; did you mean "kinds"?`,
		},
		"a mode of Jobs that does not exist": {
			given: "actions: allocate\ngrouping:\n  kinds: [job]\n  job: indexd",
			want:  `f:4: grouping.job: Invalid value: "indexd": no such value; did you mean "indexed"?`,
		},
		"a mode of Jobs without Jobs": {
			given: "actions: allocate\ngrouping:\n  kinds: [jobset]\n  job: indexed",
			want:  `f:4: grouping.job: Invalid value: "indexed": has no effect unless kinds contains "job"`,
		},
		"grouping that is a list": {
			given: "actions: allocate\ngrouping: [jobset]",
			want:  "f:2: grouping: Invalid value: must be a mapping of keys to values, not a list",
		},
		"a source that is no list": {
			given: "actions: allocate\ngroupSources: volcano",
			want:  `f:2: groupSources: Invalid value: must be a list, not the single value "volcano"`,
		},
		"aliases, merge keys and keys that are not strings": {
			given: "actions: allocate\ntiers:\n- &t\n  plugins: [{name: gang}]\n- *t\n- <<: *t\n- {[a]: b}\n",
			want: `
f:5: tiers[1]: Invalid value: must be a mapping of keys to values, not a YAML alias; write the value out
f:6: tiers[2].<<: Forbidden: no such field; known fields: plugins
f:7: tiers[3]: Invalid value: a key must be a plain string, not a list`,
		},
		"everything at once, in the order of the lines": {
			given: "tiers:\n- plugins:\n  - name: gnag\n    enablePredicates: true\nkind: Policy\nactions: alocate\n",
			want: `
f:3: tiers[0].plugins[0].name: Invalid value: "gnag": no such plugin; did you mean "gang"?
f:4: tiers[0].plugins[0].enablePredicates: Forbidden: no such field; did you mean "enablePredicate"?
f:5: kind: Invalid value: "Policy": must be "SchedulerConfiguration" or absent
f:6: actions: Invalid value: "alocate": no such action; did you mean "allocate"?`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := conf.Parse("f", []byte(tc.given), testCatalog())
			if got != nil {
				t.Errorf("a configuration was returned with the error: %v", got)
			}
			var rejected *conf.Error
			if !errors.As(err, &rejected) {
				t.Fatalf("got error %v of type %T, want a *conf.Error", err, err)
			}
			if diff := cmp.Diff(strings.TrimSpace(tc.want), err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}
