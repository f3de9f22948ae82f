// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package priority is the plugin that orders jobs and tasks by priority, highest first.
package priority

import (
	"cmp"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

// Name is the plugin's name in configurations.
const Name = "priority"

// Spec registers the plugin; it takes no arguments.
func Spec() framework.PluginSpec {
	return framework.PluginSpec{
		New:          func(*conf.Decoder, framework.Handle) (framework.Plugin, error) { return plugin{}, nil },
		NeverPermits: []conf.Point{conf.Reclaimable},
	}
}

type plugin struct{}

func (plugin) Name() string { return Name }

// Distinguished implements framework.JobClassAware.
func (plugin) Distinguished() []api.JobID { return nil }

func (plugin) OnSessionOpen(ssn *framework.Session) {
	ssn.AddJobOrderFn(Name, func(a, b *api.JobInfo) int { return cmp.Compare(b.Priority, a.Priority) })
	ssn.AddTaskOrderFn(Name, func(a, b *api.TaskInfo) int { return cmp.Compare(b.Priority, a.Priority) })
	ssn.AddPreemptableFn(Name, comparePriorities)
}

func (plugin) OnSessionClose(*framework.Session) {}

// comparePriorities permits victims of strictly lower priority, rejects victims of higher priority, and abstains for
// equal priorities. It rejects all victims for pods and groups with preemptionPolicy Never.
func comparePriorities(claim *api.Claim, unit api.Unit) api.Vote {
	for _, t := range claim.Tasks {
		if !t.Preempts() {
			return api.Reject
		}
	}
	if claim.Job == unit.Job {
		return vote(lowest(claim.Tasks), highest(unit.Tasks))
	}
	return vote(claim.Job.Priority, unit.Job.Priority)
}

func vote(preemptor, victimQueue int32) api.Vote {
	switch {
	case victimQueue < preemptor:
		return api.Permit
	case victimQueue > preemptor:
		return api.Reject
	}
	return api.Abstain
}

func lowest(tasks []*api.TaskInfo) int32 {
	least := tasks[0].Priority
	for _, t := range tasks {
		least = min(least, t.Priority)
	}
	return least
}

func highest(tasks []*api.TaskInfo) int32 {
	most := tasks[0].Priority
	for _, t := range tasks {
		most = max(most, t.Priority)
	}
	return most
}
