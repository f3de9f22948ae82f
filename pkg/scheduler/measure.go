// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/metrics"
)

// measure returns what the metrics show of the model at the end of a session. They read it while the
// next cycle runs, so it holds copies of what changes in place.
func measure(ssn *framework.Session) *metrics.Model {
	cluster := ssn.Cluster()
	pending := pendingJobs(ssn)
	m := &metrics.Model{
		Nodes: cluster.CountNodes(), Pods: len(cluster.Tasks()), Jobs: len(cluster.Jobs()),
		Resources: sharedResources(cluster.Dims()), Devices: framework.MeasureDevices(ssn),
	}
	for _, q := range cluster.SortedQueues() {
		m.Queues = append(m.Queues, metrics.Queue{
			Name: string(q.ID), Weight: q.Weight, Capability: q.Capability, Guarantee: q.Guarantee,
			Deserved: api.Units(ssn.Deserved(q)), Allocated: q.Allocated.Clone(), Requested: q.Requested.Clone(),
			Groups: q.Groups, Pending: pending[q],
		})
	}
	return m
}

// pendingJobs counts the pending jobs of each queue, by reason.
func pendingJobs(ssn *framework.Session) map[*api.QueueInfo]map[string]int {
	pending := map[*api.QueueInfo]map[string]int{}
	framework.CountOutcomes(ssn, func(o *framework.Outcome, q *api.QueueInfo, jobs int) {
		if o.Job == nil || q == nil {
			return
		}
		if pending[q] == nil {
			pending[q] = map[string]int{}
		}
		pending[q][o.Job.Reason] += jobs
	})
	return pending
}

// sharedResources returns the names of the dimensions that queues share; the other names are empty.
func sharedResources(dims *api.Dimensions) []string {
	names := make([]string, dims.Len())
	for d := range names {
		if dims.Shared(d) {
			names[d] = string(dims.Name(d))
		}
	}
	return names
}
