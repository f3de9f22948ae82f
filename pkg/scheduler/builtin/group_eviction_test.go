// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"strings"
	"testing"
	"time"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// TestEvictionOfGroups: groups of other APIs that are evicted as a whole, or never.
func TestEvictionOfGroups(t *testing.T) {
	whole := func(g *api.Group) { g.Whole = true }
	protected := func(g *api.Group) { g.NonPreemptable = true }
	none := func(*api.Group) {}
	from := func(priority int32) func(*api.Group) {
		return func(g *api.Group) { g.NonPreemptableFrom = &priority }
	}
	const surplus = "evict a/low-3 for a/high\npipeline a/high-0 n1"
	all := "evict a/low-0 for a/high\nevict a/low-1 for a/high\nevict a/low-2 for a/high\nevict a/low-3 for a/high\npipeline a/high-0 n1"
	for name, tc := range map[string]struct {
		change  func(*api.Group)
		rows    []Row
		wait    time.Duration
		blocked string // a pod that cannot be evicted
		want    string
	}{
		"surplus is evicted alone": {change: none, rows: Given(Group("a/low", 2, Running(4, "1cpu", "n1"))), want: surplus},
		"a whole group":            {change: whole, rows: Given(Group("a/low", 2, Running(4, "1cpu", "n1"))), want: all},
		"a pod of a whole group that cannot be evicted protects the group": {
			change: whole, rows: Given(Group("a/low", 1, Running(4, "1cpu", "n1"))), blocked: "a/low-0",
		},
		"a protected group":                            {change: protected, rows: Given(Group("a/low", 2, Running(4, "1cpu", "n1")))},
		"a group that its priority protects":           {change: from(0), rows: Given(Group("a/low", 2, Running(4, "1cpu", "n1")))},
		"a group that a higher priority would protect": {change: from(1), rows: Given(Group("a/low", 2, Running(4, "1cpu", "n1"))), want: surplus},
		"a group that its priority protects is degraded": {
			change: from(0), rows: Given(Group("a/low", 5, Running(4, "1cpu", "n1"), Pending(1, "1cpu"))), wait: 2 * time.Minute,
		},
		"a protected group is degraded": {
			change: protected, rows: Given(Group("a/low", 5, Running(4, "1cpu", "n1"), Pending(1, "1cpu"))), wait: 2 * time.Minute,
		},
	} {
		t.Run(name, func(t *testing.T) {
			dialect := &Dialect{
				Group: func(g *v1alpha1.PodGroup) *api.Group {
					group := dialects()["volcano"].Group(g)
					if g.Name == "low" {
						tc.change(group)
					}
					return group
				},
				Member: dialects()["volcano"].Member,
			}
			s := New(t, BuiltIn(t), Given(Node("n1", "4cpu"), Queue("default", 1), Queue("a", 1)), WithConfig(evicting),
				WithDialects(func(string) *Dialect { return dialect }))
			s.Add(tc.rows...)
			s.Cycle()
			if tc.blocked != "" {
				s.BlockEviction(tc.blocked)
			}
			s.Wait(tc.wait)
			if tc.wait > 0 { // another gang, for which alone degraded gangs are evicted
				s.Add(Group("a/high", 2, Pending(2, "1cpu", Priority(9))))
			} else {
				s.Add(Group("a/high", 1, Pending(1, "1cpu", Priority(9))))
			}
			if got := s.Cycle(); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
			if waits := s.Waits(); tc.want == "" && !strings.Contains(waits, "waits a/high NotEnoughResources") {
				t.Errorf("got %s", waits)
			}
		})
	}
}
