package conf_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
)

// testCatalog knows the plugins of the built-in default and one of a third party. Of the four
// actions of kube-batch the last two are not built yet.
func testCatalog() conf.Catalog {
	return conf.Catalog{
		Actions:       []string{"allocate", "backfill"},
		FutureActions: []string{"preempt", "reclaim"},
		Plugins: map[string]conf.ArgumentCheck{
			"priority": nil, "gang": nil, "conformance": nil, "drf": nil, "proportion": nil, "acme": nil,
			"predicates": func(args conf.Arguments, path *field.Path) field.ErrorList {
				d := args.Decoder(path)
				d.Bool("predicate.MemoryPressureEnable", false)
				return d.Done()
			},
			"nodeorder": func(args conf.Arguments, path *field.Path) field.ErrorList {
				d := args.Decoder(path)
				d.Int("leastrequested.weight", 1, 0, 1000)
				d.Int("nodeaffinity.weight", 1, 0, 1000)
				return d.Done()
			},
		},
	}
}

func plugins(names ...string) conf.Tier {
	var tier conf.Tier
	for _, name := range names {
		tier.Plugins = append(tier.Plugins, conf.Plugin{Name: name})
	}
	return tier
}

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
		"all four actions of kube-batch, two of them with a warning": {
			given: `
actions: "reclaim, allocate, backfill, preempt"
tiers:
- plugins: [{name: priority}, {name: proportion}]
`,
			want: wanted{
				conf: &conf.Configuration{Actions: []string{"allocate", "backfill"}, Tiers: []conf.Tier{plugins("priority", "proportion")}},
				warnings: `
f:2: actions: action "reclaim" is not built yet and is left out
f:2: actions: action "preempt" is not built yet and is left out`,
			},
		},
		"actions as a list, in its order": {
			given: "actions:\n- backfill\n- allocate\ntiers: [{plugins: [{name: gang}]}]",
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
    enableJobOrder: no
  - name: gang
    enableJobOrder: true
    enableJobReady: true
    enableJobPipelined: true
    enableTaskOrder: true
    enablePreemptable: true
    enableReclaimable: true
    enableQueueOrder: true
    enablePredicate: true
    enableNodeOrder: yes
`,
			want: wanted{conf: &conf.Configuration{Actions: []string{"allocate"}, Tiers: []conf.Tier{{Plugins: []conf.Plugin{
				{Name: "drf", Disabled: []conf.Point{
					conf.JobOrder, conf.JobReady, conf.JobPipelined, conf.TaskOrder, conf.Preemptable,
					conf.Reclaimable, conf.QueueOrder, conf.Predicate, conf.NodeOrder}},
				{Name: "gang"},
			}}}}},
		},
		"arguments as texts, numbers and booleans": {
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
				warnings: "f:1: tiers: no tiers: without plugins gangs are not kept whole and pods may land on nodes that cannot run them",
			},
		},
		"tiers without plugins, each with a warning": {
			given: "actions: allocate\ntiers:\n- plugins: []\n- plugins:\n  - name: gang\n- {}\n",
			want: wanted{
				conf:     &conf.Configuration{Actions: []string{"allocate"}, Tiers: []conf.Tier{{}, plugins("gang"), {}}},
				warnings: "f:3: tiers[0]: a tier without plugins has no effect\nf:6: tiers[2]: a tier without plugins has no effect",
			},
		},
		"reclaim that nobody permits, with a warning": {
			given: "actions: [allocate, reclaim]\ntiers: [{plugins: [{name: priority}, {name: drf}, {name: gang}]}]",
			want: wanted{
				conf: &conf.Configuration{Actions: []string{"allocate"}, Tiers: []conf.Tier{plugins("priority", "drf", "gang")}},
				warnings: `
f:1: actions[1]: action "reclaim" is not built yet and is left out
f:1: actions[1]: reclaim will never evict anything: no plugin permits it; add proportion with enableReclaimable on`,
			},
		},
		"preempt that nobody permits, because of a switch, with a warning": {
			given: "actions: allocate, preempt\ntiers: [{plugins: [{name: priority, enablePreemptable: false}, {name: proportion}]}]",
			want: wanted{
				conf: &conf.Configuration{Actions: []string{"allocate"}, Tiers: []conf.Tier{{Plugins: []conf.Plugin{
					{Name: "priority", Disabled: []conf.Point{conf.Preemptable}}, {Name: "proportion"}}}}},
				warnings: `
f:1: actions: action "preempt" is not built yet and is left out
f:1: actions: preempt will never evict anything: no plugin permits it; add priority or drf with enablePreemptable on`,
			},
		},
		"reclaim that a plugin of a third party may permit, without that warning": {
			given: "actions: allocate, reclaim\ntiers: [{plugins: [{name: acme}]}]",
			want: wanted{
				conf:     &conf.Configuration{Actions: []string{"allocate"}, Tiers: []conf.Tier{plugins("acme")}},
				warnings: `f:1: actions: action "reclaim" is not built yet and is left out`,
			},
		},
		"no action that is built yet, with a warning": {
			given: "\nactions: preempt\ntiers: [{plugins: [{name: priority}]}]",
			want: wanted{
				conf: &conf.Configuration{Tiers: []conf.Tier{plugins("priority")}},
				warnings: `
f:2: actions: action "preempt" is not built yet and is left out
f:2: actions: none of the actions is built yet: nothing will be scheduled`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, warnings, err := conf.Parse("f", []byte(tc.given), testCatalog())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want.conf, got); diff != "" {
				t.Errorf("configuration (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(strings.TrimSpace(tc.want.warnings), lines(warnings)); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		given string
		want  string
	}{
		"nothing at all": {
			given: "",
			want:  `f:1: actions: Required value: name at least one action, such as "allocate, backfill"`,
		},
		"comments alone": {
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
		"an action that is not built yet twice": {
			given: "actions: [reclaim, allocate, reclaim]",
			want:  `f:1: actions[2]: Duplicate value: "reclaim"`,
		},
		"a comma too many": {
			given: "actions: allocate, backfill,",
			want:  `f:1: actions: Required value: an action without a name; is there a comma too many?`,
		},
		"actions of the wrong kind": {
			given: "actions: {allocate: true}",
			want:  `f:1: actions: Invalid value: must be a text such as "allocate, backfill" or a list, not a mapping`,
		},
		"an action of the wrong kind": {
			given: "actions: [allocate, [backfill], ~]",
			want: `f:1: actions[1]: Invalid value: must be a text, a number or a boolean, not a list
f:1: actions[2]: Invalid value: must be a text, a number or a boolean, not null`,
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
		"tiers and plugins that are no lists": {
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
		"weights that are negative, overflow, or are no whole numbers": {
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
f:6: tiers[0].plugins[0].arguments[nodeaffinity.weight]: Required value: give a value or remove the argument
f:7: tiers[0].plugins[0].arguments[leastrequested.weight]: Invalid value: must be a text, a number or a boolean, not a list`,
		},
		"switches that are neither on nor off": {
			given: "actions: allocate\ntiers:\n- plugins:\n  - {name: gang, enableJobOrder: 'true', enableJobReady: 1, enablePredicate: []}\n",
			want: `
f:4: tiers[0].plugins[0].enableJobOrder: Invalid value: "true": must be true or false, without quotes
f:4: tiers[0].plugins[0].enableJobReady: Invalid value: "1": must be true or false, without quotes
f:4: tiers[0].plugins[0].enablePredicate: Invalid value: must be a text, a number or a boolean, not a list`,
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
		"another version and kind": {
			given: "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nactions: allocate",
			want: `
f:1: apiVersion: Invalid value: "kubescheduler.config.k8s.io/v1": must be "config.batch-scheduler.dev/v1alpha1" or absent
f:2: kind: Invalid value: "KubeSchedulerConfiguration": must be "SchedulerConfiguration" or absent`,
		},
		"aliases, merge keys and keys that are no texts": {
			given: "actions: allocate\ntiers:\n- &t\n  plugins: [{name: gang}]\n- *t\n- <<: *t\n- {[a]: b}\n",
			want: `
f:5: tiers[1]: Invalid value: must be a mapping of keys to values, not a YAML alias; write the value out
f:6: tiers[2].<<: Forbidden: no such field; known fields: plugins
f:7: tiers[3]: Invalid value: a key must be a plain text, not a list`,
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
			var refused *conf.Error
			if !errors.As(err, &refused) {
				t.Fatalf("got error %v of type %T, want a *conf.Error", err, err)
			}
			if diff := cmp.Diff(strings.TrimSpace(tc.want), err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDefaultIsTheDocumentedOne(t *testing.T) {
	got, err := conf.Default(testCatalog())
	if err != nil {
		t.Fatal(err)
	}
	want := &conf.Configuration{
		Actions: []string{"allocate", "backfill"},
		Tiers: []conf.Tier{
			plugins("priority", "gang", "conformance"),
			{Plugins: []conf.Plugin{
				{Name: "drf"}, {Name: "predicates"}, {Name: "proportion"},
				{Name: "nodeorder", Arguments: conf.Arguments{"nodeaffinity.weight": "2"}},
			}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("default (-want +got):\n%s", diff)
	}
}

func TestDefaultFailsWithoutItsPlugins(t *testing.T) {
	catalog := testCatalog()
	delete(catalog.Plugins, "drf")
	_, err := conf.Default(catalog)
	want := `built-in default:11: tiers[1].plugins[0].name: Invalid value: "drf": no such plugin; known plugins: acme, conformance, gang, nodeorder, predicates, priority, proportion`
	if err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "scheduler.yaml")
	if err := os.WriteFile(file, []byte("actions: alocate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		given string
		want  string
	}{
		"names the file in problems":  {given: file, want: file + `:1: actions: Invalid value: "alocate": no such action; did you mean "allocate"?`},
		"says that there is no file":  {given: file + "x", want: "reading the scheduler configuration: open " + file + "x: no such file or directory"},
		"says that it is a directory": {given: dir, want: "reading the scheduler configuration: read " + dir + ": is a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := conf.Load(tc.given, testCatalog())
			if err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		conf.DefaultYAML(),
		"",
		"actions: [allocate, backfill]\ntiers: [{plugins: [{name: gang, enableJobOrder: false}]}]",
		"actions: &a [*a]\ntiers: *a",
		"a: !!binary gIGC\n? {}\n: []\n<<: {a: b}",
		"tiers: [{plugins: [{name: nodeorder, arguments: {nodeaffinity.weight: 1e400}}]}]",
		"actions: \"allocate,,\"\n---\n...\n",
		"\xff\xfe\x00",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, _, err := conf.Parse("f", data, testCatalog())
		if (c == nil) != (err != nil) {
			t.Fatalf("configuration %v together with error %v", c, err)
		}
		if c == nil {
			return
		}
		known := testCatalog()
		for _, tier := range c.Tiers {
			for _, p := range tier.Plugins {
				if _, ok := known.Plugins[p.Name]; !ok {
					t.Errorf("accepted the unknown plugin %q", p.Name)
				}
			}
		}
		again, _, err := conf.Parse("f", data, testCatalog())
		if err != nil || !cmp.Equal(c, again) {
			t.Errorf("read again, the same text gives another result: %v\n%s", err, cmp.Diff(c, again))
		}
	})
}

// lines joins warnings as they are printed.
func lines(warnings []conf.Warning) string {
	var out []string
	for _, w := range warnings {
		out = append(out, w.String())
	}
	return strings.Join(out, "\n")
}
