// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package nodeindex

import (
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// holdsSubGroups reports whether the subgroups that a gang needs, and that require a topology level, fit in domains of it by
// the counts of a kind, each alone. It looks at those whose pods are alike, and of which none has a node.
func (x *capacityIndex) holdsSubGroups(j *api.JobInfo, s *api.SubGroup, kind sumKind) bool {
	if !s.Constrained {
		return true
	}
	if s.TopologyLevel != nil && s.PipelinedCount() == 0 && !x.holdsSubGroup(j, s, kind) {
		return false
	}
	held := int32(0)
	for _, c := range s.Children {
		if x.holdsSubGroups(j, c, kind) {
			held++
		}
	}
	return held >= min(s.MinSubGroup, int32(len(s.Children)))
}

func (x *capacityIndex) holdsSubGroup(j *api.JobInfo, s *api.SubGroup, kind sumKind) bool {
	var signature *api.Signature
	for _, t := range j.Tasks {
		switch {
		case !t.SubGroup().Within(s):
		case signature == nil:
			signature = t.Signature
		case signature != t.Signature:
			return true // of several kinds
		}
	}
	if signature == nil {
		return true
	}
	domains := x.domains.get(s.TopologyLevel)
	need, counts := int64(s.Need()), domains.counts(sumKey{kind: kind, signature: signature})
	return slices.ContainsFunc(domains.All(), func(d *Domain) bool { return counts.In(d) >= need })
}
