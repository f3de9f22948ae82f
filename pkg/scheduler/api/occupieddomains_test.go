// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// TestOccupiedDomains: the status lists 16 domains, and counts the others.
func TestOccupiedDomains(t *testing.T) {
	var racks []string
	for i := range 19 {
		racks = append(racks, fmt.Sprintf("b1/r%02d", i))
	}
	block, rack := &TopologyLevel{Name: "block"}, &TopologyLevel{Name: "example.com/rack"}
	o := OccupiedDomains("").With(&TopologyLevel{Name: "row"}, nil).With(block, []string{"b1"}).With(rack, racks)
	want := []v1alpha1.OccupiedDomains{{Level: "block", Domains: []string{"b1"}}, {Level: "example.com/rack", Domains: racks[:16], More: 3}}
	if diff := cmp.Diff(want, o.Status()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := OccupiedDomains("").Status(); got != nil {
		t.Errorf("without domains, the status is %v", got)
	}
}
