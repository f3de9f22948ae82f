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
