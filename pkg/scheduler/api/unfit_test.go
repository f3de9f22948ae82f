// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPluginsOfAVerdict(t *testing.T) {
	counts := func(plugins ...string) NodeCounts {
		var c NodeCounts
		for _, name := range plugins {
			c.Count(&Unfit{Reason: Taint, Plugin: name})
		}
		c.Sort()
		return c
	}
	for name, tc := range map[string]struct {
		given Verdict
		want  []string
	}{
		"none":                            {Verdict{}, nil},
		"the plugin that refuses the job": {Verdict{Plugin: "gang"}, []string{"gang"}},
		"those that refuse nodes, sorted, each once": {
			Verdict{Nodes: counts("resources", "predicates", "resources")}, []string{"predicates", "resources"},
		},
		"both": {Verdict{Plugin: "proportion", Nodes: counts("proportion", "predicates")}, []string{"predicates", "proportion"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.given.Plugins()); diff != "" {
				t.Errorf("plugins (-want +got):\n%s", diff)
			}
		})
	}
}

// Labels of metrics must be distinct.
func TestUnfitReasonsHaveDistinctNames(t *testing.T) {
	known := map[string]UnfitReason{}
	for _, reason := range UnfitReasons() {
		if other, taken := known[reason.String()]; taken {
			t.Errorf("reasons %d and %d are both named %s", other, reason, reason)
		}
		known[reason.String()] = reason
	}
}

func TestAttributed(t *testing.T) {
	var a Attributed
	plain, named := &Unfit{Reason: Taint, Detail: "x"}, &Unfit{Reason: Taint, Detail: "x", Plugin: "p"}
	got := a.To("p", plain)
	if *got != *named || plain.Plugin != "" {
		t.Errorf("got %+v, and the argument is %+v now", *got, *plain)
	}
	if a.To("p", &Unfit{Reason: Taint, Detail: "x"}) != got || a.To("p", &Unfit{Reason: Taint, Detail: "x", Plugin: "q"}) != got {
		t.Error("equal refusals are not shared")
	}
	if a.To("q", plain) == got || a.To("p", named) != named || a.To("p", nil) != nil {
		t.Error("the name of another plugin is returned, or the argument is copied without need")
	}
	if allocated := testing.AllocsPerRun(100, func() { a.To("p", plain) }); allocated > 0 {
		t.Errorf("%v allocations", allocated)
	}
	a.Clear()
	if again := a.To("p", plain); again == got || *got != *named {
		t.Error("Clear keeps refusals, or changes those that were returned")
	}
}
