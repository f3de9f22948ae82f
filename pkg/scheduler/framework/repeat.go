package framework

import (
	"slices"
	"time"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// repeat is what a session that decided nothing leaves to the next one, for the case that nothing happens
// in between.
type repeat struct {
	generation uint64 // of the model when the session was closed; 0: there is nothing to repeat
	jobs       []*api.JobInfo
	verdicts   map[*api.JobInfo]*Outcome
	wake       time.Time
}

// Repeats tells whether the session finds all as the one before found it, which decided nothing: the model
// is the same, and nothing has become due since.
func (ssn *Session) Repeats() bool { return ssn.repeats }

// Actions returns the configured actions in their order; none if the session repeats the one before: they
// would find what was found then, explanations included.
func (ssn *Session) Actions() []Action {
	if ssn.repeats {
		return nil
	}
	return ssn.profile.Actions
}

// idle tells whether nothing was decided.
func (ssn *Session) idle() bool { return ssn.counts == [len(ssn.counts)]int{} }

// takeUp is called while the session opens, and tells whether there was something to take over.
func (ssn *Session) takeUp(r *repeat) bool {
	due := !r.wake.IsZero() && !ssn.Now.Before(r.wake)
	if r.generation == 0 || r.generation != ssn.cluster.Generations().Model || due {
		return false
	}
	ssn.repeats, ssn.jobs, ssn.verdicts = true, r.jobs, r.verdicts
	if !r.wake.IsZero() {
		ssn.WakeAt(r.wake)
	}
	return true
}

// leaveRepeat is called when everything that was not committed is undone. What was promised or set aside
// goes its own way from session to session, and volumes and claims change outside of the model.
func (ssn *Session) leaveRepeat() {
	m := ssn.memory
	m.repeat = repeat{}
	if !ssn.idle() || len(m.nominations) > 0 || len(m.reservations) > 0 || !ssn.repeats && slices.ContainsFunc(ssn.jobs, looksOutside) {
		return
	}
	m.repeat = repeat{ssn.cluster.Generations().Model, ssn.jobs, ssn.verdicts, ssn.wake}
}

func looksOutside(j *api.JobInfo) bool {
	return slices.ContainsFunc(j.Tasks, func(t *api.TaskInfo) bool { return t.Signature.HasExternalResources() })
}
