// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// The log lines of sessions. CONTRIBUTING.md lists what belongs to which verbosity. A line is not formatted, and nothing
// is allocated for it, unless its verbosity is enabled.

// logOf returns the log for the execution of an action.
func logOf(action Action, log logr.Logger) logr.Logger {
	if !log.Enabled() {
		return log
	}
	return log.WithValues("action", action.Name())
}

// lateStart is after what time a gang that starts is logged at V(0).
const lateStart = time.Minute

// logCommit logs a committed statement.
func logCommit(ssn *Session, decisions []api.Decision, held bool) {
	log := ssn.Log
	if attempts := log.V(4); attempts.Enabled() {
		attempts.Info("Statement committed", "job", klog.KObj(jobOf(decisions[0])), "allocated", count(decisions, api.Allocate),
			"pipelined", count(decisions, api.Pipeline), "evicted", count(decisions, api.Evict), "held", held)
	}
	if gangs := log.V(1); gangs.Enabled() {
		logPlan(gangs, decisions)
	}
	if !held && log.Enabled() {
		logStarted(log, ssn.Now, decisions)
	}
}

// jobOf returns the job that a decision is made for.
func jobOf(d api.Decision) *api.JobInfo {
	if d.Kind == api.Evict {
		return d.For
	}
	return d.Task.Job
}

// logPlan logs the evictions that a statement decides, and the gangs that they break. The evictor logs what is evicted.
func logPlan(log logr.Logger, decisions []api.Decision) {
	first := slices.IndexFunc(decisions, func(d api.Decision) bool { return d.Kind == api.Evict })
	if first < 0 {
		return
	}
	preemptor, cause, victims := klog.KObj(decisions[first].For), decisions[first].Cause.String(), count(decisions, api.Evict)
	log.Info("Plan made", "job", preemptor, "cause", cause, "victims", victims, "placements", len(decisions)-victims)
	eachJob(decisions, api.Evict, func(j *api.JobInfo, pods int32) {
		if !j.Shadow() && !j.Ready() {
			log.Info("Gang selected as victim", "job", klog.KObj(j), "preemptor", preemptor, "cause", cause, "pods", pods)
		}
	})
}

// logStarted logs the gangs that the statement completes, and how long they have waited since the last of their pods was
// created.
func logStarted(log logr.Logger, now time.Time, decisions []api.Decision) {
	eachJob(decisions, api.Allocate, func(j *api.JobInfo, pods int32) {
		if before := j.ReadyCount() - pods; j.Shadow() || !j.Ready() || before >= j.MinMember {
			return
		}
		waited := now.Sub(time.Unix(0, lastCreated(j, decisions)))
		gangs := log.V(1)
		if waited > lateStart {
			gangs = log
		}
		if gangs.Enabled() {
			gangs.Info("Gang started", "job", klog.KObj(j), "queue", queueOf(j), "pods", pods, "minMember", j.MinMember,
				"waited", max(waited, 0).Round(time.Second).String())
		}
	})
}

// lastCreated returns when the last of the allocated tasks of a job was created.
func lastCreated(j *api.JobInfo, decisions []api.Decision) (last int64) {
	for _, d := range decisions {
		if d.Kind == api.Allocate && d.Task.Job == j {
			last = max(last, d.Task.Created)
		}
	}
	return last
}

// eachJob visits the jobs of tasks with decisions of a kind, in the order of the decisions, with the number of those. It
// allocates nothing, because the default verbosity of the shipped deployment includes V(1).
func eachJob(decisions []api.Decision, kind api.DecisionKind, visit func(j *api.JobInfo, decisions int32)) {
	for i, d := range decisions {
		same := func(other api.Decision) bool { return other.Kind == kind && other.Task.Job == d.Task.Job }
		if d.Kind != kind || slices.ContainsFunc(decisions[:i], same) {
			continue
		}
		n := int32(0)
		for _, other := range decisions[i:] {
			if same(other) {
				n++
			}
		}
		visit(d.Task.Job, n)
	}
}

func count(decisions []api.Decision, kind api.DecisionKind) int {
	n := 0
	for _, d := range decisions {
		if d.Kind == kind {
			n++
		}
	}
	return n
}

func queueOf(j *api.JobInfo) klog.ObjectRef { return klog.KRef("", string(j.QueueName)) }

// logRollback logs that the statement undoes its decisions after m.
func logRollback(s *Statement, m Mark) {
	if len(s.ops) <= int(m) {
		return
	}
	if log := s.ssn.Log.V(4); log.Enabled() {
		undone := s.Decisions()[m:]
		evicted := count(undone, api.Evict)
		log.Info("Statement rolled back", "job", klog.KObj(jobOf(undone[0])), "placed", len(undone)-evicted, "evicted", evicted, "kept", int(m))
	}
}

// logPending logs why each job is pending, after the session.
func logPending(ssn *Session) {
	log := ssn.Log.V(3)
	if !log.Enabled() {
		return
	}
	dims := ssn.cluster.Dims()
	for _, j := range ssn.cluster.WaitingJobs() {
		o := ssn.Outcome(j)
		if o == nil {
			continue
		}
		if v := o.primary(); v != nil {
			log.Info("Job pending", "job", klog.KObj(j), "queue", queueOf(j), "pods", j.Count(api.Pending), "reason", v.Reason,
				"plugins", strings.Join(v.Plugins(), ","), "message", o.Message(v, dims)+v.NearestMessage(dims))
		}
	}
}

// primary returns why the gang has not started; if it has, why tasks of the signature with the lowest key wait.
func (o *Outcome) primary() *api.Verdict {
	if o.Job != nil {
		return o.Job
	}
	var lowest *api.Signature
	for s := range o.Tasks {
		if lowest == nil || s.Key() < lowest.Key() {
			lowest = s
		}
	}
	return o.Tasks[lowest]
}
