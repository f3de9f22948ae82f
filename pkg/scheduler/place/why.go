// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"fmt"

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
		plugin = p.ssn.CappedBy(t.Job, t.Request, api.Future)
	}
	if plugin != "" {
		v := p.explainCap(t.Job, request)
		v.Plugin = plugin
		return v
	}
	v := &api.Verdict{
		Reason:  v1alpha1.ReasonUnschedulable,
		Missing: missing,
		Request: t.Request,
		Nodes:   p.ssn.Nodes().Count(t),
	}
	if v.Nodes.Suitable() {
		v.Reason = v1alpha1.ReasonNotEnoughResources
	}
	return v
}

func (p *Placer) explainCap(j *api.JobInfo, request api.Resource) *api.Verdict {
	q := j.Queue
	d := q.CapAllows(request, api.Future)
	switch {
	case d < 0 && q.Reclaimable:
		return &api.Verdict{Reason: v1alpha1.ReasonOverShare, Detail: fmt.Sprintf(
			"evicted because queue %s had borrowed resources that other queues deserve; starts again only within the deserved resources of its queue", q.ID)}
	case d < 0:
		return &api.Verdict{Reason: v1alpha1.ReasonOverShare, Detail: fmt.Sprintf(
			"queue %s cannot borrow (spec.reclaimable is false) and would exceed its deserved resources", q.ID)}
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
