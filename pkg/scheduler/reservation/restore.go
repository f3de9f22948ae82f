// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package reservation

import (
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/place"
)

// restore reads the nominations of an earlier scheduler process from the API server's objects: the tasks that it
// nominated for nodes, and the victims that name their preemptor.
func restore(c api.ClusterView) map[api.JobID]*nomination {
	nominations := map[api.JobID]*nomination{}
	byKey := map[string]*nomination{}
	for _, j := range c.WaitingJobs() {
		n := &nomination{}
		for _, t := range j.Tasks {
			if node := t.Pod.Status.NominatedNodeName; t.Waiting() && node != "" {
				n.placements = append(n.placements, place.Placement{Node: node, Signature: t.Signature})
			}
		}
		if len(n.placements) > 0 {
			nominations[j.ID], byKey[j.Key] = n, n
		}
	}
	if len(byKey) == 0 {
		return nominations
	}
	for _, t := range c.Tasks() {
		if n := byKey[t.Pod.Annotations[v1alpha1.AnnotationEvictedFor]]; n != nil && t.Status == api.Releasing {
			n.victims = append(n.victims, t.ID)
		}
	}
	for _, n := range nominations {
		slices.Sort(n.victims)
	}
	return nominations
}
