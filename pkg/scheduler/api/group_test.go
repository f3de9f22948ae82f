// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import "testing"

// TestSurplus: the members of a gang that may be evicted one by one.
func TestSurplus(t *testing.T) {
	for name, tc := range map[string]struct {
		group *Group
		want  int32
	}{
		"no PodGroup":   {nil, 3},
		"a group":       {&Group{}, 3},
		"a whole group": {&Group{Whole: true}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			j := &JobInfo{Group: tc.group, MinMember: 2}
			j.Tracking.Counts[Running] = 5
			if got := j.Surplus(); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}
