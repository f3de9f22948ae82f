// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package predicates

import (
	"strings"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// devices describes the devices that t requests.
func (s *podDependent) devices(t *api.TaskInfo, nearest bool) *api.DeviceDemand {
	d := &api.DeviceDemand{Text: s.runner.Shortages().Demand(t.Pod)}
	if nearest {
		d.Nearest = s.nearest(t)
	}
	return d
}

// nearest returns the node that only has too few free devices for t, and of those the one that has the fewest too few;
// of several the first by name.
func (s *podDependent) nearest(t *api.TaskInfo) *api.NearestNode {
	missing := s.runner.Shortages().Missing(t.Pod)
	var nearest *api.NearestNode
	var least int64
	for _, n := range s.cluster.Nodes() {
		if n == nil || !n.Fits(t, api.Now) || s.filter.unfit(t.Signature, n) != nil {
			continue
		}
		text, devices := missing(n)
		if devices == 0 {
			continue
		}
		if nearest == nil || devices < least || devices == least && strings.Compare(n.Name, nearest.Node) < 0 {
			nearest, least = &api.NearestNode{Node: n.Name, Devices: text}, devices
		}
	}
	return nearest
}
