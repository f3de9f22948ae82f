// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package gang is the plugin that starts the minMember tasks of a job together or not at all, and protects running
// gangs from partial eviction.
package gang

import (
	"cmp"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

// Name is the plugin's name in configurations.
const Name = "gang"

// Spec registers the plugin; it takes no arguments.
func Spec() framework.PluginSpec {
	return framework.PluginSpec{
		New:          func(*conf.Decoder, framework.Handle) (framework.Plugin, error) { return plugin{}, nil },
		NeverPermits: []conf.Point{conf.Preemptable, conf.Reclaimable},
		Without:      "the pods of a gang start one by one, as many as fit",
	}
}

type plugin struct{}

func (plugin) Name() string { return Name }

// Distinguished implements framework.JobClassAware.
func (plugin) Distinguished() []api.JobID { return nil }

func (plugin) OnSessionOpen(ssn *framework.Session) {
	ssn.AddJobValidFn(Name, rejectTooFewPods)
	ssn.AddJobReadyFn(Name, (*api.JobInfo).Ready)
	ssn.AddJobPipelinedFn(Name, (*api.JobInfo).Pipelined)
	ssn.AddJobOrderFn(Name, compareDegraded)
	ssn.AddPreemptableFn(Name, rejectPartialEviction)
	ssn.AddReclaimableFn(Name, rejectPartialEviction)
}

func (plugin) OnSessionClose(*framework.Session) {}

// rejectTooFewPods rejects jobs that have fewer usable members than must start together. It blocks only new
// placements; running members stay.
func rejectTooFewPods(j *api.JobInfo) *api.Verdict {
	if j.Valid() {
		return nil
	}
	return &api.Verdict{
		Reason: v1alpha1.ReasonNotEnoughPods, Need: j.MinMember, Have: j.ValidCount(), Gated: j.Gated(), SubGroup: api.LackingPods(j),
	}
}

// compareDegraded orders degraded gangs, which hold resources but cannot start, first. Jobs that have not started
// come next, then jobs that only need surplus members.
func compareDegraded(a, b *api.JobInfo) int { return cmp.Compare(urgency(a), urgency(b)) }

func urgency(j *api.JobInfo) int {
	switch {
	case j.Degraded():
		return 0
	case !j.Ready():
		return 1
	}
	return 2
}

// rejectPartialEviction rejects a victim unit whose eviction would leave its gang running but incomplete, or a part of a
// group that is evicted as a whole.
func rejectPartialEviction(_ *api.Claim, unit api.Unit) api.Vote {
	if unit.Job.Holding() > int32(len(unit.Tasks)) && !api.ReadyWithout(unit.Job, unit.Tasks) {
		return api.Reject
	}
	return api.Abstain
}
