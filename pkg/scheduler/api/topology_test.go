// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

func rackOfBlock() *TopologyLevel {
	return &TopologyLevel{Topology: "default", Name: "rack", Labels: []string{"example.com/block", "example.com/rack"}}
}

// TestNearestDomain asserts which of several domains the status of a PodGroup shows.
func TestNearestDomain(t *testing.T) {
	t.Parallel()
	inRack := func(path, block, rack string) *v1alpha1.NearestDomain {
		return &v1alpha1.NearestDomain{Level: "rack", Name: path, NodeLabels: map[string]string{"example.com/block": block, "example.com/rack": rack}}
	}
	level := rackOfBlock()
	nearest := &DomainCount{Level: level, Path: "b1/r1"}
	planned := StartEstimate{Estimated: 1, Domain: level.Domain("b1/r2")}
	reserved := &StarvationReservation{Domain: level.Domain("b2/r1")}
	for name, tc := range map[string]struct {
		given Verdict
		want  *v1alpha1.NearestDomain
	}{
		"none":                            {Verdict{Reservation: &StarvationReservation{}}, nil},
		"where the most pods could start": {Verdict{Domain: nearest, Reservation: &StarvationReservation{}}, inRack("b1/r1", "b1", "r1")},
		"where it is planned to start":    {Verdict{Domain: nearest, Start: planned}, inRack("b1/r2", "b1", "r2")},
		"where resources are reserved":    {Verdict{Domain: nearest, Start: planned, Reservation: reserved}, inRack("b2/r1", "b2", "r1")},
		"of the topology key of a pod affinity": {
			Verdict{Domain: &DomainCount{Level: AffinityLevel("zone"), Path: "z1"}},
			&v1alpha1.NearestDomain{Level: "zone", Name: "z1", NodeLabels: map[string]string{"zone": "z1"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, tc.given.NearestDomain().Status()); diff != "" {
				t.Errorf("domain (-want +got):\n%s", diff)
			}
		})
	}
}
