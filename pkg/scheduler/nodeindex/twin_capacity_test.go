// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package nodeindex

import (
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// capacityCount places pods on each node, one after the other, until the next one does not fit.
func (w *twin) capacityCount(signature *api.Signature, foreign bool, among func(*api.NodeInfo) bool) int64 {
	count := int64(0)
	for _, n := range w.c.Nodes() {
		if n == nil || !w.hasCapacity(signature, n) || !among(n) {
			continue
		}
		free := n.Allocatable.Clone()
		if foreign {
			free.Sub(n.Foreign)
		}
		for signature.Request.Fits(free) {
			free.Sub(signature.Request)
			count++
		}
	}
	return count
}

func (w *twin) hasCapacity(signature *api.Signature, n *api.NodeInfo) bool {
	return n.Ready() && !n.Node.Spec.Unschedulable && w.filters.Filter(signature, n) == nil
}

// inOneDomain is the capacity count of the largest domain if the signature requires one, else of all nodes.
func (w *twin) inOneDomain(signature *api.Signature, foreign bool) int64 {
	key := signature.SelfAffinityKey()
	if key == "" {
		return w.capacityCount(signature, foreign, func(*api.NodeInfo) bool { return true })
	}
	most := int64(0)
	for _, domain := range []string{"ssd", "hdd"} {
		most = max(most, w.capacityCount(signature, foreign, func(n *api.NodeInfo) bool { return n.Node.Labels[key] == domain }))
	}
	return most
}

// couldFit starts the tasks of a job one by one while the capacity of their signature lasts.
func (w *twin) couldFit(job *api.JobInfo) (tasks map[*api.Signature]int64, enough bool) {
	tasks = map[*api.Signature]int64{}
	return tasks, w.members(job, true, tasks) >= int64(job.MinMember)
}

// members returns how many members the job could have, and counts in tasks those that start.
func (w *twin) members(job *api.JobInfo, foreign bool, tasks map[*api.Signature]int64) int64 {
	free := map[*api.Signature]int64{}
	for _, t := range job.Tasks {
		n := t.Node
		if !t.Waiting() && !t.Status.Ended() && n != nil && n.Exists() && w.hasCapacity(t.Signature, n) {
			free[t.Signature]--
		}
	}
	for _, t := range job.Tasks {
		if _, known := tasks[t.Signature]; known || !t.Waiting() {
			continue
		}
		tasks[t.Signature] = 0
		if free[t.Signature] == 0 {
			free[t.Signature] = w.inOneDomain(t.Signature, foreign)
		} else { // members that run determine the domain
			free[t.Signature] += w.capacityCount(t.Signature, foreign, func(*api.NodeInfo) bool { return true })
		}
	}
	members := int64(job.ReadyCount() + job.Count(api.Releasing))
	for _, t := range job.Tasks {
		if t.Waiting() && free[t.Signature] > 0 {
			free[t.Signature]--
			members++
			tasks[t.Signature]++
		}
	}
	return members
}
