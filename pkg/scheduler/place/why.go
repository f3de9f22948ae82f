// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// Explain returns the primary reason why t is not placed: a hard cap of the queue if one applies, else the nodes.
func (p *Placer) Explain(t *api.TaskInfo, request api.Resource, missing int32) *api.Verdict {
	v := p.explain(t, request, missing)
	logNotPlaced(p.ssn.Log, t, v)
	return v
}

func (p *Placer) explain(t *api.TaskInfo, request api.Resource, missing int32) *api.Verdict {
	plugin := p.ssn.CappedBy(t.Job, request, api.Future)
	if plugin == "" {
		plugin = p.ssn.CappedBy(t.Job, t.ShareRequest, api.Future)
	}
	if plugin != "" {
		v := p.explainCap(t, request)
		v.Plugin = plugin
		return v
	}
	v := &api.Verdict{
		Reason:  v1alpha1.ReasonUnschedulable,
		Missing: missing,
		Request: t.Request,
		Nodes:   p.ssn.Nodes().Count(t),
	}
	if d := p.ssn.Devices(t, v.Nodes.Available == 0); d != nil {
		if v.Devices = d.Text; v.Devices != "" {
			v.Request = t.Signature.PodRequest
		}
		if d.Nearest != nil {
			v.Nodes.Nearest = d.Nearest
		}
	}
	switch {
	case !v.Nodes.Suitable():
	case !p.ssn.Nodes().CouldHold(t.Signature, 1):
		v.Reason = v1alpha1.ReasonExceedsClusterCapacity
		p.compareLargest(v, t)
	default:
		v.Reason = v1alpha1.ReasonNotEnoughResources
	}
	return v
}

// compareLargest adds the resource of which a pod requests more than the largest node has. The nearest node then says
// nothing: it lacks also what other pods hold there.
func (p *Placer) compareLargest(v *api.Verdict, t *api.TaskInfo) {
	largest := p.ssn.Nodes().Largest(t.Signature)
	d := t.Request.InsufficientDimension(largest)
	if d < 0 {
		return
	}
	v.OnePod, v.Dimension, v.Asked, v.Limit = true, d, t.Request.At(d), largest.At(d)
	v.Nodes.Nearest = nil
}

func (p *Placer) explainCap(t *api.TaskInfo, request api.Resource) *api.Verdict {
	j := t.Job
	q := j.Queue
	d := q.CapAllows(request, api.Future)
	never, needs := q.NeverAllows(j)
	switch {
	case never >= 0:
		v := &api.Verdict{
			Reason: v1alpha1.ReasonExceedsQueueCapability, Name: string(q.ID), Dimension: never, Limit: q.Capability[never], Asked: needs,
		}
		if one := t.ShareRequest.At(never); one > v.Limit {
			v.OnePod, v.Asked = true, one
		}
		return v
	case d < 0:
		return p.explainShare(j, request)
	}
	v := &api.Verdict{
		Reason:    v1alpha1.ReasonQueueFull,
		Name:      string(q.ID),
		Dimension: d,
		Limit:     q.Capability[d],
		Held:      q.Allocated.At(d),
		Asked:     request.At(d),
	}
	if reserved := q.Reserved.At(d); reserved > 0 {
		v.Detail = p.ssn.Cluster().Dims().FormatOne(d, reserved) + " of the rest is " + api.ReservedFor(q.ReservedFor.First(j.Namespace))
	}
	return v
}

// explainShare words that a job would exceed what its queue deserves: the queue cannot borrow, the job had to return
// what the queue had borrowed, or another job did and waits.
func (p *Placer) explainShare(j *api.JobInfo, request api.Resource) *api.Verdict {
	q := j.Queue
	v := &api.Verdict{Reason: v1alpha1.ReasonOverShare, Name: string(q.ID), Borrowed: q.Reclaimable, Yielding: p.ssn.Yielding(j), Dimension: -1}
	deserved, dims := p.ssn.Deserved(q), p.ssn.Cluster().Dims()
	for d, n := range request {
		if n > 0 && dims.Shared(d) && api.InParts(d, q.Allocated.At(d)+n) > deserved.At(d) {
			v.Dimension, v.Limit, v.Held, v.Asked = d, api.Units(deserved).At(d), q.Allocated.At(d), n
			break
		}
	}
	return v
}
