// Package gang is the plugin that starts the minMember tasks of a job together or not at all,
// and keeps what has started whole.
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
	}
}

type plugin struct{}

func (plugin) Name() string { return Name }

func (plugin) OnSessionOpen(ssn *framework.Session) {
	ssn.AddJobValidFn(Name, enoughPods)
	ssn.AddJobReadyFn(Name, (*api.JobInfo).Ready)
	ssn.AddJobPipelinedFn(Name, (*api.JobInfo).Pipelined)
	ssn.AddJobOrderFn(Name, degradedFirst)
	ssn.AddPreemptableFn(Name, keepWhole)
	ssn.AddReclaimableFn(Name, keepWhole)
}

func (plugin) OnSessionClose(*framework.Session) {}

// enoughPods refuses jobs that have fewer usable members than must start together. It blocks
// new placements only; members that run stay.
func enoughPods(j *api.JobInfo) *api.Verdict {
	if have := j.ValidCount(); have < j.MinMember {
		return &api.Verdict{Reason: v1alpha1.ReasonNotEnoughPods, Need: j.MinMember, Have: have, Gated: j.Gated()}
	}
	return nil
}

// degradedFirst lets gangs that hold room without being able to start go first: they waste it.
// Then come jobs that have not started, then jobs that only want more.
func degradedFirst(a, b *api.JobInfo) int { return cmp.Compare(urgency(a), urgency(b)) }

func urgency(j *api.JobInfo) int {
	switch {
	case j.Degraded():
		return 0
	case !j.Ready():
		return 1
	}
	return 2
}

// keepWhole rejects giving up a unit that would leave its gang running without being complete.
func keepWhole(_ *api.Claim, unit api.Unit) api.Vote {
	gone := int32(len(unit.Tasks))
	if unit.Job.Holding() > gone && unit.Job.ReadyCount()-gone < unit.Job.MinMember {
		return api.Reject
	}
	return api.Abstain
}
