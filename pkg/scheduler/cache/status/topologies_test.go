// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// TestOccupiedDomains: the domains of a PodGroup are written with the other numbers, every 2 seconds.
func TestOccupiedDomains(t *testing.T) {
	in := func(domains api.OccupiedDomains) *api.Report {
		r := onlyGroups(pendingReport("Unschedulable", "3 nodes"))
		r.PodGroups[0].Topology = domains
		return r
	}
	run(t, func(f *harness) {
		for _, r := range []*api.Report{in("rack 1 b1/r1"), in("rack 1 b1/r1"), in("rack 2 b1/r1 b1/r2"), in("")} {
			f.Publish(r)
			f.wait(1200 * time.Millisecond)
		}
		f.wait(10 * time.Second)
		want := []string{
			"0s event on PodGroup g: Unschedulable: 3 nodes",
			"0s podgroup g: Pending 1/0, False Unschedulable: 3 nodes, in rack [b1/r1]",
			"2.4s podgroup g: Pending 1/0, False Unschedulable: 3 nodes, in rack [b1/r1 b1/r2]",
			"4.4s podgroup g: Pending 1/0, False Unschedulable: 3 nodes",
		}
		if diff := cmp.Diff(want, f.Written()); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
	})
}
