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
			writes := 0
			for _, line := range f.Written() {
				if strings.Contains(line, "podgroup g") {
					writes++
				}
			}
			if writes != step.writes {
				t.Errorf("%s: %d writes, want %d", step.name, writes, step.writes)
			}
		}
	})
}
