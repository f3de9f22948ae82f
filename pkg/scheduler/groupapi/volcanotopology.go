// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package groupapi

import (
	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// volcanoTopology says in HyperNodes of which tier pods run: at most in that of the highest tier (hard), or in as low a tier as
// possible (soft). The name of a tier is that of a level here, and tier 1 is the narrowest level above nodes.
type volcanoTopology struct {
	Mode               string `json:"mode"`
	HighestTierAllowed *int64 `json:"highestTierAllowed"`
	HighestTierName    string `json:"highestTierName"`
}

// Modes. The API server of Volcano fills in hard.
const (
	volcanoHard = "hard"
	volcanoSoft = "soft"
)

// constraint returns the constraint of a group, or what the scheduler cannot honour.
func (n *volcanoTopology) constraint() (constraint *v1alpha1.TopologyConstraint, notSupported string) {
	level := n.HighestTierName
	switch {
	case level != "" && n.HighestTierAllowed != nil:
		return nil, "spec.networkTopology with both highestTierName and highestTierAllowed"
	case n.HighestTierAllowed != nil:
		level = api.TierLevel(*n.HighestTierAllowed)
	}
	switch n.Mode {
	case "", volcanoHard:
		if level == "" {
			return nil, "spec.networkTopology of mode hard without highestTierName or highestTierAllowed"
		}
		return &v1alpha1.TopologyConstraint{RequiredTopologyLevel: level}, ""
	case volcanoSoft:
		if level == "" {
			level = api.TierLevel(1)
		}
		return &v1alpha1.TopologyConstraint{PreferredTopologyLevel: level}, ""
	}
	return nil, "spec.networkTopology.mode " + n.Mode
}

// required returns the constraint of each part of a policy; nil if there is none.
func (n *volcanoTopology) required() (constraint *v1alpha1.RequiredTopology, notSupported string) {
	if n == nil {
		return nil, ""
	}
	whole, notSupported := n.constraint()
	switch {
	case notSupported != "":
		return nil, notSupported
	case whole.RequiredTopologyLevel == "":
		return nil, "spec.networkTopology of mode soft"
	}
	return &v1alpha1.RequiredTopology{RequiredTopologyLevel: whole.RequiredTopologyLevel}, ""
}
