// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package predicates

import (
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/plugins/predicates/internal/upstream"
)

// sizes is the weighted score of nodes by the size of their devices.
type sizes struct {
	*upstream.Sizes
	weight api.Score
}

// newSizes returns nil if the score is off, or without informers: then pods with devices fit on no node.
func newSizes(a Arguments, runner *upstream.FilterRunner) *sizes {
	shortages := runner.Shortages()
	if a.SmallestDevice == 0 || shortages == nil {
		return nil
	}
	return &sizes{upstream.NewSizes(shortages, a.Size, a.TypicalSize), api.Score(a.SmallestDevice)}
}

func (s *sizes) score(t *api.TaskInfo, n *api.NodeInfo) api.Score { return s.weight * s.Score(t, n) }
