// Package drf is the plugin that serves the job with the smallest dominant share first
// (Ghodsi et al., "Dominant Resource Fairness", NSDI 2011).
package drf

import (
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

// Name is the plugin's name in configurations.
const Name = "drf"

// Spec registers the plugin; it takes no arguments.
func Spec() framework.PluginSpec { return SpecWith(api.Fairer) }

// SpecWith registers it with another rule of who may take from whom, for the test that shows that a
// weaker one lets evictions go in circles (docs/design/preemption-convergence.md).
func SpecWith(fairer func(before, after, left api.Share) bool) framework.PluginSpec {
	return framework.PluginSpec{New: func(*conf.Decoder, framework.Handle) (framework.Plugin, error) { return plugin{fairer}, nil }}
}

type plugin struct {
	fairer func(before, after, left api.Share) bool
}

func (plugin) Name() string { return Name }

// OnSessionOpen registers the order by dominant share: the greatest part of the usable total
// that a job holds in any one dimension. The model keeps the sums, so nothing is counted here.
func (p plugin) OnSessionOpen(ssn *framework.Session) {
	share := func(held api.Resource) api.Share { return ssn.Cluster().Dims.Dominant(held, ssn.Total()) }
	ssn.AddJobOrderFn(Name, func(a, b *api.JobInfo) int { return share(a.Allocated).Compare(share(b.Allocated)) })
	ssn.AddPreemptableFn(Name, func(claim *api.Claim, unit api.Unit) api.Vote {
		if claim.Job == unit.Job {
			return api.Abstain // a job's own tasks are a matter of their priorities
		}
		before, after := share(claim.JobHeld), share(claim.JobHeld.Plus(claim.Request))
		if p.fairer(before, after, share(unit.Job.Allocated.Minus(unit.Request))) {
			return api.Permit
		}
		return api.Reject
	})
}

func (plugin) OnSessionClose(*framework.Session) {}
