// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package drf is the plugin that orders jobs by dominant share, smallest first (Ghodsi et al., "Dominant Resource
// Fairness", NSDI 2011).
package drf

import (
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

// Name is the plugin's name in configurations.
const Name = "drf"

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

// OnSessionOpen registers the order by dominant share: the largest fraction of the usable total that a job holds in
// any dimension. The model maintains the sums.
func (plugin) OnSessionOpen(ssn *framework.Session) {
	share := func(held api.Resource) api.Share { return ssn.Cluster().Dims().Dominant(held, ssn.Nodes().Total()) }
	ssn.AddJobOrderFn(Name, func(a, b *api.JobInfo) int { return share(a.Allocated).Compare(share(b.Allocated)) })
	ssn.AddPreemptableFn(Name, func(claim *api.Claim, unit api.Unit) api.Vote {
		if claim.Job == unit.Job {
			return api.Abstain // within a job, task priorities decide
		}
		before, after := share(claim.JobHeld), share(claim.JobHeld.Plus(claim.Request))
		if api.Fairer(before, after, share(unit.Job.Allocated.Minus(unit.Request))) {
			return api.Permit
		}
		return api.Reject
	})
}

func (plugin) OnSessionClose(*framework.Session) {}
