// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// TestUnschedulablePlugins publishes reports one after the other, and compares the plugins in the status of the
// PodGroup. They are written with the condition only.
func TestUnschedulablePlugins(t *testing.T) {
	report := func(message string, plugins ...string) *api.Report {
		r := onlyGroups(pendingReport("Unschedulable", message))
		r.PodGroups[0].Plugins = strings.Join(plugins, ",")
		return r
	}
	scheduled := report("all pods have a node")
	scheduled.PodGroups[0].Scheduled, scheduled.PodGroups[0].Reason = true, v1alpha1.ReasonScheduled
	var many []string
	for i := range v1alpha1.MaxUnschedulablePlugins + 1 {
		many = append(many, fmt.Sprintf("p%d", i))
	}
	run(t, func(f *harness) {
		for _, step := range []struct {
			name   string
			report *api.Report
			want   []string
			writes int // events not included
		}{
			{"the plugins of a reason", report("3 nodes", "predicates", "proportion"), []string{"predicates", "proportion"}, 1},
			{"other plugins and the same condition", report("3 nodes", "gang"), []string{"predicates", "proportion"}, 0},
			{"another message", report("4 nodes", "gang"), []string{"gang"}, 1},
			{"more plugins than a status has", report("5 nodes", many...), many[:v1alpha1.MaxUnschedulablePlugins], 1},
			{"a scheduled PodGroup", scheduled, nil, 1},
		} {
			f.Publish(step.report)
			f.wait(20 * time.Second)
			if diff := cmp.Diff(step.want, f.PodGroup("g").Status.UnschedulablePlugins); diff != "" {
				t.Errorf("%s: plugins (-want +got):\n%s", step.name, diff)
			}
			if writes := countWrites(f); writes != step.writes {
				t.Errorf("%s: %d writes, want %d", step.name, writes, step.writes)
			}
		}
	})
}

// TestNearestDomain: the domain is written with the condition only.
func TestNearestDomain(t *testing.T) {
	level := &api.TopologyLevel{Topology: "default", Name: "rack", Labels: []string{"block", "rack"}}
	report := func(message, path string) *api.Report {
		r := onlyGroups(pendingReport("NotEnoughResources", message))
		r.PodGroups[0].Domain = level.Domain(path)
		return r
	}
	scheduled := onlyGroups(pendingReport("Scheduled", "all pods have a node"))
	scheduled.PodGroups[0].Scheduled = true
	run(t, func(f *harness) {
		for _, step := range []struct {
			name   string
			report *api.Report
			want   string // empty: no domain
			writes int    // events not included
		}{
			{"the domain of a message", report("rack b1/r1", "b1/r1"), "b1/r1", 1},
			{"another domain and the same condition", report("rack b1/r1", "b1/r2"), "b1/r1", 0},
			{"another message", report("rack b1/r2", "b1/r2"), "b1/r2", 1},
			{"a scheduled PodGroup", scheduled, "", 1},
		} {
			f.Publish(step.report)
			f.wait(20 * time.Second)
			got := ""
			if d := f.PodGroup("g").Status.NearestDomain; d != nil {
				got = d.Name
			}
			if got != step.want {
				t.Errorf("%s: domain %q, want %q", step.name, got, step.want)
			}
			if writes := countWrites(f); writes != step.writes {
				t.Errorf("%s: %d writes, want %d", step.name, writes, step.writes)
			}
		}
	})
}

// countWrites returns how often the PodGroup g was written since the last call.
func countWrites(f *harness) (writes int) {
	for _, line := range f.Written() {
		if strings.Contains(line, "podgroup g") {
			writes++
		}
	}
	return writes
}
