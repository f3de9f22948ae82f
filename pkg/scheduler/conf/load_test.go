// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package conf_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
)

// testCatalog has the plugins of the built-in default, one of a third party, and the four actions of kube-batch.
func testCatalog() conf.Catalog {
	both := []conf.Point{conf.Preemptable, conf.Reclaimable}
	return conf.Catalog{
		Actions: []string{"allocate", "backfill", "preempt", "reclaim"},
		Advice: conf.Advice{
			Actions: map[string]string{"enqueue": "delete it"},
			Plugins: map[string]string{"binpack": "use nodeorder"},
		},
		Plugins: map[string]conf.PluginInfo{
			"priority":    {NeverPermits: []conf.Point{conf.Reclaimable}},
			"gang":        {NeverPermits: both},
			"conformance": {NeverPermits: both},
			"drf":         {NeverPermits: []conf.Point{conf.Reclaimable}},
			"proportion":  {NeverPermits: []conf.Point{conf.Preemptable}},
			"acme":        {},
			"predicates": {NeverPermits: both, Arguments: func(d *conf.Decoder) {
				d.Bool("predicate.MemoryPressureEnable", false, "")
				d.Bool("predicate.DiskPressureEnable", false, "")
			}},
			"nodeorder": {NeverPermits: both, Arguments: func(d *conf.Decoder) {
				d.Int("leastrequested.weight", 1, 0, 1000, "")
				d.Int("nodeaffinity.weight", 1, 0, 1000, "")
			}},
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
		StarvationAfter: 5 * time.Minute,
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

func TestAdviceWithoutAPluginThatPermits(t *testing.T) {
	catalog := conf.Catalog{
		Actions: []string{"preempt"},
		Plugins: map[string]conf.PluginInfo{"gang": {NeverPermits: []conf.Point{conf.Preemptable}}},
	}
	_, warnings, err := conf.Parse("f", []byte("actions: preempt\ntiers: [{plugins: [{name: gang}]}]"), catalog)
	if err != nil {
		t.Fatal(err)
	}
	want := "f:1: actions: preempt will never evict anything: no plugin permits it; no known plugin does"
	if got := lines(warnings); got != want {
		t.Errorf("got warnings %q, want %q", got, want)
	}
}

// TestMissingPlugins: a policy without a plugin that declares what happens without it gets a warning.
func TestMissingPlugins(t *testing.T) {
	catalog := conf.Catalog{
		Actions: []string{"allocate"},
		Plugins: map[string]conf.PluginInfo{"a": {}, "b": {Without: "nothing counts"}, "c": {Without: "it rains"}},
	}
	for name, tc := range map[string]struct{ given, want string }{
		"none":     {"actions: allocate\ntiers: [{plugins: [{name: b}]}, {plugins: [{name: c}, {name: a}]}]", ""},
		"one":      {"actions: allocate\ntiers: [{plugins: [{name: c}]}]", "f:2: tiers: plugin b is missing: nothing counts"},
		"both":     {"actions: allocate\ntiers: [{plugins: [{name: a}]}]", "f:2: tiers: plugin b is missing: nothing counts\nf:2: tiers: plugin c is missing: it rains"},
		"no tiers": {"actions: allocate", "f:1: tiers: no tiers: no plugin is active\nf:1: tiers: plugin b is missing: nothing counts\nf:1: tiers: plugin c is missing: it rains"},
	} {
		t.Run(name, func(t *testing.T) {
			_, warnings, err := conf.Parse("f", []byte(tc.given), catalog)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, lines(warnings)); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadConfigMap(t *testing.T) {
	const head = "apiVersion: v1\nkind: ConfigMap\n"
	for name, tc := range map[string]struct {
		given string
		want  *conf.ConfigMap
	}{
		"a policy":     {given: "actions: allocate\n"},
		"not YAML":     {given: "kind: ConfigMap\ndata: {"},
		"without data": {given: head, want: &conf.ConfigMap{}},
		"a literal block keeps its lines": {
			given: head + "data:\n  p: |\n    # why\n    actions: x\n",
			want: &conf.ConfigMap{Keys: []string{"p"}, Policies: []conf.Embedded{
				{Key: "p", Text: []byte("\n\n\n\n# why\nactions: x\n"), SameLines: true},
			}},
		},
		"a string does not": {
			given: head + `data: {p: "tiers: []\nactions: x"}`,
			want:  &conf.ConfigMap{Keys: []string{"p"}, Policies: []conf.Embedded{{Key: "p", Text: []byte("tiers: []\nactions: x")}}},
		},
		"the only value, whatever it is": {
			given: head + "data: {p: 'a: {'}",
			want:  &conf.ConfigMap{Keys: []string{"p"}, Policies: []conf.Embedded{{Key: "p", Text: []byte("a: {")}}},
		},
		"the policies among other values": {
			given: head + "data: {a: 'x: y', b: 'actions: x', c: '{', d: 'kind: SchedulerConfiguration', e: 'tiers: []'}",
			want: &conf.ConfigMap{Keys: []string{"a", "b", "c", "d", "e"}, Policies: []conf.Embedded{
				{Key: "b", Text: []byte("actions: x")}, {Key: "d", Text: []byte("kind: SchedulerConfiguration")}, {Key: "e", Text: []byte("tiers: []")},
			}},
		},
		"data that is a list":     {given: head + "data: [a, 'actions: x']", want: &conf.ConfigMap{}},
		"a value that is no text": {given: head + "data: {p: {actions: x}}", want: &conf.ConfigMap{Keys: []string{"p"}}},
		"a list":                  {given: "[kind, ConfigMap]"},
		"a kind that is a list":   {given: "kind: [ConfigMap]\ndata: {}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, conf.ReadConfigMap([]byte(tc.given))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
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
		"names the file in problems": {given: file, want: file + `:1: actions: Invalid value: "alocate": no such action; did you mean "allocate"?`},
		"reports a missing file":     {given: file + "x", want: "reading the scheduler configuration: open " + file + "x: no such file or directory"},
		"reports a directory":        {given: dir, want: "reading the scheduler configuration: read " + dir + ": is a directory"},
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
		"\xff\xfe( 00", // UTF-16
		"---",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, _, err := conf.Parse("f", data, testCatalog())
		if (c == nil) != (err != nil) {
			t.Fatalf("configuration %v together with error %v", c, err)
		}
		var list *conf.Error
		if errors.As(err, &list) {
			last := 1 // YAML has more line breaks than most editors
			for _, lineBreak := range []string{"\n", "\r", "\u0085", "\u2028", "\u2029"} {
				last += strings.Count(string(data), lineBreak)
			}
			for _, p := range list.Problems {
				if p.Line < 1 || p.Line > last && utf8.Valid(data) || p.Text == "" { // YAML may be UTF-16 too
					t.Errorf("a problem in line %d of %d: %q", p.Line, last, p.Text)
				}
			}
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

// lines joins the printed warnings.
func lines(warnings []conf.Warning) string {
	var out []string
	for _, w := range warnings {
		out = append(out, w.String())
	}
	return strings.Join(out, "\n")
}
