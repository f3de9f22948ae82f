// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/subgroups"
)

// reporter turns the results of a session into a report. It keeps what it has reported, so that a
// cycle without new results reports nothing.
type reporter struct {
	reported map[api.JobID]string
	shown    map[*framework.JobClass]*framework.Outcome // what was reported about all jobs of a job class
	single   []*api.JobInfo                             // that were reported with outcomes of their own
	queues   map[api.QueueID]queueSums
	orders   orders // of the session that is open
	possible possible
	counts   topologyCounts
}

type queueSums struct {
	allocated, requested, deserved api.Resource
	groups                         v1alpha1.QueueGroups
	order                          published
}

func newReporter() *reporter {
	return &reporter{
		reported: map[api.JobID]string{}, shown: map[*framework.JobClass]*framework.Outcome{},
		queues: map[api.QueueID]queueSums{},
	}
}

// report returns the report about jobs that have changed or are pending, unless they were reported equally before, and
// about queues whose sums have changed. A job that has not changed and shares an outcome with others of its job class
// has been reported if they have.
func (r *reporter) report(ssn *framework.Session, changed []*api.JobInfo) *api.Report {
	report, b := &api.Report{}, ssn.Backlog()
	seen := make(map[*api.JobInfo]bool, len(changed))
	first := func(j *api.JobInfo) bool {
		before := seen[j]
		seen[j] = true
		return !before
	}
	add := func(j *api.JobInfo) {
		if first(j) {
			r.reportJob(ssn, j, report)
		}
	}
	for _, j := range changed {
		add(j)
	}
	for _, j := range b.Others() {
		add(j)
	}
	for _, j := range r.single {
		if jc := b.JobClass(j); jc != nil && ssn.Outcome(j) == jc.Outcome() {
			add(j)
		}
	}
	r.reportShared(ssn, first, report)
	r.single = nil
	ssn.EachExplained(func(j *api.JobInfo, _ *framework.Outcome) {
		if j.Waits() {
			add(j)
			r.single = append(r.single, j)
		}
	})
	r.orders.dropStarted(ssn)
	for _, q := range ssn.Cluster().SortedQueues() {
		r.reportQueue(ssn, q, r.orders[q], report)
	}
	r.counts.report(ssn, report)
	return report
}

// reportShared adds the jobs of job classes with a new outcome. Their pods are left out if these show the same text.
func (r *reporter) reportShared(ssn *framework.Session, first func(*api.JobInfo) bool, report *api.Report) {
	dims := ssn.Cluster().Dims()
	shown := make(map[*framework.JobClass]*framework.Outcome, len(r.shown))
	for _, jc := range ssn.Backlog().JobClasses() {
		before, now := r.shown[jc], jc.Outcome()
		shown[jc] = now
		if now != nil && before == now {
			continue
		}
		samePods := before != nil && now != nil && podReason(before.Job) == podReason(now.Job) &&
			before.Message(before.Job, dims) == now.Message(now.Job, dims)
		for _, j := range jc.Jobs() {
			switch {
			case ssn.Outcome(j) != now || !first(j):
			case samePods:
				r.reportGroup(ssn, j, report)
			default:
				r.reportJob(ssn, j, report)
			}
		}
	}
	r.shown = shown
}

// reportGroup adds the PodGroup of a job, if it has one.
func (r *reporter) reportGroup(ssn *framework.Session, j *api.JobInfo, report *api.Report) {
	if j.Group != nil {
		g := groupReport(ssn, j)
		r.possible.check(ssn, j, &g)
		report.PodGroups = append(append(report.PodGroups, g), partReports(j, &g)...)
	}
}

// reportJob adds a job: its PodGroup always, its pods if their reasons have changed.
func (r *reporter) reportJob(ssn *framework.Session, j *api.JobInfo, report *api.Report) {
	if len(j.Tasks) == 0 && j.Group == nil {
		delete(r.reported, j.ID)
		return
	}
	r.reportGroup(ssn, j, report)
	outcome, before := ssn.Outcome(j), len(report.Pods)
	report.Pods = append(report.Pods, failedBinds(j)...)
	if outcome != nil {
		report.Pods = appendPodReports(report.Pods, ssn, j, outcome)
	}
	pods := report.Pods[before:]
	if len(pods) == 0 || outcome != nil && outcome.Shared() { // such a job is reported when its outcome has changed
		delete(r.reported, j.ID)
		return
	}
	if text := digest(pods); text != r.reported[j.ID] {
		r.reported[j.ID] = text
	} else {
		report.Pods = report.Pods[:before]
	}
}

// groupReport returns the status of a PodGroup. While binds are in flight the condition does not
// change: it becomes Scheduled when the API server shows the members on their nodes. An exception
// are claims that have to be bound before the pods, which can take minutes: the condition says so.
func groupReport(ssn *framework.Session, j *api.JobInfo) api.PodGroupReport {
	g := api.PodGroupReport{
		Source:     j.Group.Source,
		Namespace:  j.Group.Namespace,
		Name:       j.Group.Name,
		UID:        j.Group.UID,
		Generation: j.Group.Generation,
		Phase:      j.Phase(),
		Pending:    j.Count(api.Pending) + j.Count(api.Binding),
		Running:    j.Running() + j.Count(api.Releasing) + j.Count(api.Unknown),
		Succeeded:  j.Count(api.Succeeded),
		Failed:     j.Count(api.Failed),
		Started:    j.Started,
		Topology:   occupiedDomains(j),
	}
	switch outcome, failed := ssn.Outcome(j), failedBinds(j); {
	case g.Phase == v1alpha1.PodGroupRunning, g.Phase == v1alpha1.PodGroupFinished && j.Ready():
		g.Scheduled, g.Reason = true, v1alpha1.ReasonScheduled
		g.Message = scheduledMessage(j.MinMember)
	case j.Ended():
		reportEnd(j, &g)
	case outcome != nil && outcome.Job != nil:
		dims := ssn.Cluster().Dims()
		g.Reason, g.Message = outcome.Job.Reason, outcome.Message(outcome.Job, dims)+outcome.Nearest(dims)
		g.Plugins, g.Domain, g.Start = outcome.Plugins(dims), outcome.Domain(dims), outcome.Job.Start
		if outcome.DegradedFor > 0 && g.Reason != v1alpha1.ReasonPreempting {
			g.Reason = v1alpha1.ReasonGangDegraded
			g.Message = fmt.Sprintf("only %d of the %d pods that must run together have been running for more than %s; %s", j.Holding(), j.MinMember, outcome.DegradedFor, g.Message)
		}
	case len(failed) > 0:
		g.Reason, g.Message = failed[0].Reason, failed[0].Message
	case slices.ContainsFunc(j.Tasks, bindsClaims) && !reportsClaim(j.Group.PodGroup):
		g.Reason, g.Message = v1alpha1.ReasonClaimsNotReady, "all required pods have nodes; waiting for their claims to be bound"
	}
	if class, unknown := j.UnknownPriorityClass(); unknown && g.Message != "" {
		g.Message += fmt.Sprintf("; priority class %s does not exist, so the highest priority of the pods is used", class)
	}
	if invalid := j.Tracking.InvalidRunTime; invalid != "" && g.Message != "" {
		g.Message += "; run time ignored: " + invalid
	}
	return g
}

// scheduledMessage words that the gang has its nodes.
func scheduledMessage(minMember int32) string {
	if minMember == 1 {
		return "the 1 pod that must start has a node"
	}
	return fmt.Sprintf("all %d pods that must start together have a node", minMember)
}

// bindsClaims reports whether a task is in flight and claims may have to be bound first.
func bindsClaims(t *api.TaskInfo) bool { return t.InFlight() && t.Signature.HasExternalResources() }

// reportsClaim reports whether the condition of a PodGroup is about claims already. After a failure it
// names the claim, and stays during the retries.
func reportsClaim(g *v1alpha1.PodGroup) bool {
	c := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionPodGroupScheduled)
	return c != nil && c.Reason == v1alpha1.ReasonClaimsNotReady
}

// failedBinds returns reports about the pods of a job whose last bind failed and is retried.
func failedBinds(j *api.JobInfo) []api.PodReport {
	var reports []api.PodReport
	for _, t := range j.Tasks {
		if t.InFlight() && t.LastBindError() != "" {
			reports = append(reports, api.PodReport{
				Namespace: t.Pod.Namespace, Name: t.Pod.Name, UID: t.Pod.UID,
				Reason: v1alpha1.ReasonBindFailed, Message: t.LastBindError() + "; retrying with exponential backoff",
			})
		}
	}
	return reports
}

// appendPodReports appends the reason why each pending member is pending. The reason Unschedulable makes
// autoscalers add nodes, so only members that the gang needs to start get it.
func appendPodReports(reports []api.PodReport, ssn *framework.Session, j *api.JobInfo, outcome *framework.Outcome) []api.PodReport {
	dims := ssn.Cluster().Dims()
	needed := int(j.MinMember - j.ReadyCount())
	tasks := j.Tasks // in no order; that of waiting tasks matters if some of them are not needed
	if int32(len(tasks)) != j.Waiting() || needed < len(tasks) {
		tasks = ssn.WaitingTasks(j)
		if j.SubGroups != nil {
			tasks, needed = subgroups.NeededFirst(j, tasks)
		}
	}
	for i, t := range tasks {
		verdict := outcome.Tasks[t.Signature]
		reason, message := "", ""
		switch {
		case verdict != nil:
			reason, message = podReason(verdict), outcome.Message(verdict, dims)
		case outcome.Job == nil:
			continue
		case i >= needed && podReason(outcome.Job) == v1.PodReasonUnschedulable:
			reason = v1alpha1.ReasonGangPending
			message = fmt.Sprintf("not one of the %d pods that must start together, and waiting for them: %s", j.MinMember, outcome.Message(outcome.Job, dims))
		default:
			reason, message = podReason(outcome.Job), outcome.Message(outcome.Job, dims)
		}
		reports = append(reports, api.PodReport{
			Namespace: t.Pod.Namespace, Name: t.Pod.Name, UID: t.Pod.UID, Reason: reason, Message: message,
			NominatedNode: ssn.NominatedNode(t),
		})
	}
	return reports
}

// podReason returns the reason of a pod condition for a verdict. Autoscalers know Unschedulable only.
func podReason(v *api.Verdict) string {
	switch v.Reason {
	case v1alpha1.ReasonNotEnoughResources, v1alpha1.ReasonExceedsClusterCapacity:
		return v1.PodReasonUnschedulable
	}
	return v.Reason
}

// digest returns a text that is equal for equal reports.
func digest(pods []api.PodReport) string {
	var b strings.Builder
	last := ""
	for i := range pods {
		b.WriteString(string(pods[i].UID) + pods[i].NominatedNode)
		if pods[i].Message != last {
			last = pods[i].Message
			b.WriteString(pods[i].Reason + last)
		}
	}
	return b.String()
}

// reportQueue adds a queue to the report if its sums or its order have changed.
func (r *reporter) reportQueue(ssn *framework.Session, q *api.QueueInfo, order *queueOrder, report *api.Report) {
	now := queueSums{allocated: q.Allocated, requested: q.Requested, deserved: api.Units(ssn.Deserved(q)), groups: q.Groups}
	last, known := r.queues[q.ID]
	if known && last.allocated.Equal(now.allocated) && last.requested.Equal(now.requested) &&
		last.deserved.Equal(now.deserved) && last.groups == now.groups && last.order.shows(order) {
		return
	}
	shown, ids := order.publish()
	r.queues[q.ID] = queueSums{q.Allocated.Clone(), q.Requested.Clone(), now.deserved, q.Groups, ids}
	dims := ssn.Cluster().Dims()
	report.Queues = append(report.Queues, api.QueueReport{
		Name: q.Queue.Name,
		UID:  q.Queue.UID,
		Status: v1alpha1.QueueStatus{
			Allocated: dims.List(q.Allocated, dims.Shared),
			Deserved:  dims.List(now.deserved, dims.Shared),
			Pending:   dims.List(q.Requested, dims.Shared),
			Groups:    q.Groups,
			Order:     shown,
		},
	})
}
