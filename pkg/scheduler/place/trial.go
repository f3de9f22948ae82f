// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

// Trial is the result of attempts that change nothing. If no claim could be placed, it has the explanations.
type Trial struct {
	ssn      *framework.Session
	placed   bool
	verdicts []explained
}

// explained is why a job, or those of its tasks that have a signature, were not placed.
type explained struct {
	job       *api.JobInfo
	signature *api.Signature // nil: the gang
	verdict   *api.Verdict
}

// NewTrial returns a trial with an allocator that tries claims like any other, but neither commits nor explains.
func NewTrial(ssn *framework.Session) (*Trial, *Allocator) {
	t, a := &Trial{ssn: ssn}, NewAllocator(ssn)
	a.trial = t
	return t, a
}

// Placed reports whether a claim could be placed. Then the trial ends: the others would find another state. It is false
// without a trial.
func (t *Trial) Placed() bool { return t != nil && t.placed }

// Take returns the last verdict, and leaves it out of the explanations; nil if there is none.
func (t *Trial) Take() *api.Verdict {
	last := len(t.verdicts) - 1
	if last < 0 {
		return nil
	}
	v := t.verdicts[last].verdict
	t.verdicts = t.verdicts[:last]
	return v
}

// Explain records the explanations.
func (t *Trial) Explain() {
	for _, e := range t.verdicts {
		record(t.ssn, e)
	}
}

func record(ssn *framework.Session, e explained) {
	if e.signature == nil {
		ssn.Explain(e.job, e.verdict)
	} else {
		ssn.ExplainTasks(e.job, e.signature, e.verdict)
	}
}

// explain records why a job was not placed, or keeps it for Trial.Explain.
func (a *Allocator) explain(j *api.JobInfo, signature *api.Signature, v *api.Verdict) {
	if e := (explained{j, signature, v}); a.trial != nil {
		a.trial.verdicts = append(a.trial.verdicts, e)
	} else {
		record(a.ssn, e)
	}
}
