// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
)

// TestPluginNames asserts that the reference also lists plugins that the built-in policy does not use.
func TestPluginNames(t *testing.T) {
	policy := &conf.Configuration{Tiers: []conf.Tier{
		{Plugins: []conf.Plugin{{Name: "priority"}, {Name: "gang"}}},
		{Plugins: []conf.Plugin{{Name: "nodeorder"}}},
	}}
	for name, tc := range map[string]struct{ all, want []string }{
		"all are in the tiers":     {[]string{"gang", "nodeorder", "priority"}, []string{"priority", "gang", "nodeorder"}},
		"two are not in the tiers": {[]string{"aging", "gang", "nodeorder", "priority", "zones"}, []string{"priority", "gang", "nodeorder", "aging", "zones"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, pluginNames(policy, tc.all)); diff != "" {
				t.Errorf("plugins (-want +got):\n%s", diff)
			}
		})
	}
}
