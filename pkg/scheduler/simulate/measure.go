// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/internal/text"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// notTried is the reason of jobs without a verdict of any session.
const notTried = "NotTried"

// measureBefore records the state before the first decision.
func (r *run) measureBefore() {
	dims := r.cluster.Dims()
	capacity, used := r.sums()
	r.result.Nodes = r.cluster.CountNodes()
	for _, name := range named(dims.List(capacity, nil)) {
		i := dims.Index(name)
		r.result.Totals = append(r.result.Totals, Total{Resource: name, Capacity: api.Quantity(i, capacity.At(i)), UsedBefore: api.Quantity(i, used.At(i))})
	}
	for _, q := range r.cluster.SortedQueues() {
		asked := q.Allocated.Clone()
		asked.Add(q.Requested)
		r.result.Queues = append(r.result.Queues, Queue{
			Name: string(q.ID), Weight: q.Weight,
			AllocatedBefore: dims.List(q.Allocated, dims.Shared), Requested: dims.List(asked, dims.Shared), Capability: dims.List(q.Capability, nil),
		})
	}
	slices.SortFunc(r.result.Queues, func(a, b Queue) int { return cmp.Compare(a.Name, b.Name) })
}

// measureAfter records the state at the end and the reasons of waiting pods.
func (r *run) measureAfter() {
	dims := r.cluster.Dims()
	_, used := r.sums()
	for i := range r.result.Totals {
		d := dims.Index(r.result.Totals[i].Resource)
		r.result.Totals[i].UsedAfter = api.Quantity(d, used.At(d))
	}
	for i := range r.result.Queues {
		q := r.cluster.Queues()[api.QueueID(r.result.Queues[i].Name)]
		r.result.Queues[i].AllocatedAfter = dims.List(q.Allocated, dims.Shared)
		r.result.Queues[i].Deserved = dims.List(api.Units(r.last.Deserved(q)), dims.Shared)
	}
	for _, j := range r.cluster.WaitingJobs() {
		r.result.Waiting = append(r.result.Waiting, r.waiting(j)...)
	}
	slices.SortFunc(r.result.Bound, func(a, b Binding) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Cycle, b.Cycle))
	})
	slices.SortFunc(r.result.Evicted, func(a, b Eviction) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Cycle, b.Cycle))
	})
	slices.SortFunc(r.result.Waiting, func(a, b Waiting) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Message, b.Message), slices.Compare(a.Plugins, b.Plugins))
	})
}

// sums returns the capacity of the nodes and the requests of the pods on them.
func (r *run) sums() (capacity, used api.Resource) {
	for _, n := range r.cluster.Nodes() {
		if n != nil {
			capacity.Add(n.Allocatable)
			used.Add(n.Allocatable)
			used.Sub(n.Idle)
		}
	}
	return capacity, used
}

// waiting returns why members of a job wait: for the reason of the job, except signatures with a reason of their own.
func (r *run) waiting(j *api.JobInfo) []Waiting {
	type why struct{ reason, message, plugins string }
	counts := map[why]int{}
	outcome, dims := r.last.Outcome(j), r.cluster.Dims()
	whole := why{notTried, "no action of the configuration has tried to place it", ""}
	if outcome != nil && outcome.Job != nil {
		whole = why{outcome.Job.Reason, outcome.Message(outcome.Job, dims) + outcome.Job.NearestMessage(dims), strings.Join(outcome.Job.Plugins(), " ")}
	}
	for _, t := range j.Tasks {
		switch {
		case t.Status != api.Pending:
		case outcome != nil && outcome.Tasks[t.Signature] != nil && !t.Gated:
			v := outcome.Tasks[t.Signature]
			counts[why{v.Reason, outcome.Message(v, dims), strings.Join(v.Plugins(), " ")}]++
		default:
			counts[whole]++
		}
	}
	if len(counts) == 0 {
		counts[whole] = 0
	}
	common := Waiting{
		Group: j.Key, Queue: string(j.QueueName),
		LimitSeconds: int64(j.RunTime.Maximum / time.Second), ExpectedSeconds: int64(j.RunTime.Expected / time.Second),
	}
	if outcome != nil && outcome.Job != nil {
		common.EstimatedStart, common.LatestStart = timeOf(outcome.Job.Start.Estimated), timeOf(outcome.Job.Start.Latest)
	}
	var list []Waiting
	for why, n := range counts {
		w := common
		w.Pods, w.Reason, w.Message, w.Plugins = n, why.reason, why.message, strings.Fields(why.plugins)
		list = append(list, w)
	}
	return list // the caller sorts the list of all jobs
}

// timeOf returns a time in nanoseconds since 1970; nil for zero.
func timeOf(at int64) *metav1.Time {
	if at == 0 {
		return nil
	}
	return &metav1.Time{Time: time.Unix(0, at).UTC()}
}

// named returns the resources in the lists, in the order of output.
func named(lists ...v1.ResourceList) []v1.ResourceName {
	all := v1.ResourceList{}
	for _, list := range lists {
		maps.Copy(all, list)
	}
	return text.Resources(all)
}
