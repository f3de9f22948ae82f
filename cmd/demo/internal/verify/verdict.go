// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"fmt"
	"slices"
	"time"

	"github.com/batch-scheduler/batch-scheduler/cmd/demo/internal/snapshot"
)

// State is how far a check has come.
type State string

// The states of a check. One that has failed stays so.
const (
	Open   State = "MISSING"
	Passed State = "ok"
	Failed State = "WRONG"
)

// Check is the result of one expectation.
type Check struct {
	Name  string
	State State

	// Details are numbers if it has passed, what is missing if it is open, and what went
	// wrong if it has failed.
	Details []string
}

// Verdict is all checks, in the order of the output.
type Verdict []Check

// Right reports whether all checks have passed.
func (v Verdict) Right() bool {
	return !slices.ContainsFunc(v, func(c Check) bool { return c.State != Passed })
}

// Complete reports whether no check is open.
func (v Verdict) Complete() bool {
	return !slices.ContainsFunc(v, func(c Check) bool { return c.State == Open })
}

const (
	checkWhole    = "every gang started whole or not at all"
	checkGangs    = "every gang that fits ran to its end"
	checkWork     = "Jobs, Deployments and best-effort pods run without a PodGroup"
	checkCapacity = "no node overcommitted, no queue over its capability"
	checkQueues   = "queues say what their pods hold, and share no more than there is"
)

func checkInfeasible(i Infeasible) string { return i.Group + " never started, and says why" }

func checkOrder(o Order) string { return o.Then + " started only after " + o.First + " had ended" }

// Verdict says what is known after the moments shown so far.
func (j *Verifier) Verdict() Verdict {
	checks := Verdict{j.whole(), j.gangs()}
	for _, i := range j.expectations.Infeasible {
		checks = append(checks, j.infeasible(i))
	}
	for _, o := range j.expectations.Orders {
		checks = append(checks, j.order(o))
	}
	return append(checks, j.work(), j.capacity(), j.queues())
}

// check makes a check: failed if there are faults, open if something is missing, else passed
// with the numbers.
func (j *Verifier) check(name string, missing []string, numbers ...string) Check {
	switch {
	case len(j.faults[name]) > 0:
		return Check{name, Failed, j.faults[name]}
	case len(missing) > 0:
		return Check{name, Open, missing}
	}
	return Check{name, Passed, numbers}
}

func (j *Verifier) whole() Check {
	var missing []string
	for _, g := range j.groups() {
		if g.Partial() {
			missing = append(missing, fmt.Sprintf("%s has nodes for %d of the %d pods it needs", g.Name, g.Bound, g.Min))
		}
	}
	var slowest time.Duration
	for _, d := range j.wholeAfter {
		slowest = max(slowest, d)
	}
	if len(j.wholeAfter) == 0 {
		missing = append(missing, "none has started")
	}
	return j.check(checkWhole, missing, fmt.Sprintf("%d gangs; each was whole within %s of its first pod",
		len(j.wholeAfter), slowest.Round(time.Millisecond)))
}

func (j *Verifier) gangs() Check {
	var missing []string
	for _, name := range j.expectations.Gangs {
		switch g := j.group(name); {
		case !g.Started():
			missing = append(missing, name+" has not started")
		case !g.Done():
			missing = append(missing, fmt.Sprintf("%s: %d of %d pods have ended", name, g.Ended, g.Members))
		case g.Phase != "Finished":
			missing = append(missing, fmt.Sprintf("%s: its phase is %q, not Finished", name, g.Phase))
		}
	}
	return j.check(checkGangs, missing, join(j.expectations.Gangs))
}

func (j *Verifier) infeasible(i Infeasible) Check {
	g := j.group(i.Group)
	var missing []string
	if !explains(g.Message, i.Resource) {
		missing = append(missing, fmt.Sprintf("its condition should name %s, the pods that need it and the nodes that have it, and is: %s %s",
			i.Resource, g.Reason, g.Message))
	}
	return j.check(checkInfeasible(i), missing, g.Reason+": "+g.Message)
}

func (j *Verifier) order(o Order) Check {
	var missing []string
	if !j.group(o.Then).Started() {
		missing = append(missing, o.Then+" has not started")
	}
	first, then := j.firstBound[o.First], j.firstBound[o.Then]
	return j.check(checkOrder(o), missing, fmt.Sprintf("it waited %s after the start of %s", then.Sub(first).Round(time.Second/10), o.First))
}

func (j *Verifier) work() Check {
	var missing, done []string
	for _, w := range []struct {
		kind, undone string
		names        []string
	}{
		{snapshot.Job, "has not completed", j.expectations.Jobs},
		{snapshot.Deployment, "is not available", j.expectations.Deployments},
		{snapshot.Pod, "does not run", j.expectations.Pods},
	} {
		for _, name := range w.names {
			if j.workDone(w.kind, name) {
				done = append(done, w.kind+"/"+name)
			} else {
				missing = append(missing, w.kind+"/"+name+" "+w.undone)
			}
		}
	}
	return j.check(checkWork, missing, join(done))
}

func (j *Verifier) workDone(kind, name string) bool {
	return slices.ContainsFunc(j.last.Work, func(w snapshot.Work) bool {
		return w.Namespace == j.expectations.Namespace && w.Kind == kind && w.Name == name && w.Done
	})
}

func (j *Verifier) capacity() Check {
	var missing []string
	if len(j.last.Nodes) == 0 {
		missing = []string{"there are no nodes"}
	}
	return j.check(checkCapacity, missing, fmt.Sprintf("%d nodes, %d queues", len(j.last.Nodes), len(j.last.Queues)))
}

func (j *Verifier) queues() Check {
	missing := j.queueDifferences()
	for _, name := range j.expectations.Queues {
		if !slices.ContainsFunc(j.last.Queues, func(q snapshot.Queue) bool { return q.Name == name }) {
			missing = append(missing, "queue "+name+" does not exist")
		}
	}
	return j.check(checkQueues, missing, join(j.expectations.Queues))
}
