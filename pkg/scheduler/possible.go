// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

// possible answers whether groups could ever start whose controller creates the pods only if they could. Plugins consider the
// pods of a group; before they exist there is only spec.minResources.
type possible struct {
	ssn   *framework.Session
	total api.Resource // of all nodes, counted once per session
}

// check replaces the reason of a group of Volcano that lacks pods, if its spec.minResources can never be there.
func (p *possible) check(ssn *framework.Session, j *api.JobInfo, g *api.PodGroupReport) {
	if j.Source != api.SourceVolcano || j.MinResources == nil || g.Reason != v1alpha1.ReasonNotEnoughPods {
		return
	}
	dims := ssn.Cluster().Dims()
	if d := j.MinResources.Exceeds(j.Queue.Capability); d >= 0 {
		v := &api.Verdict{Reason: v1alpha1.ReasonExceedsQueueCapability, Name: string(j.Queue.ID), Dimension: d,
			Limit: j.Queue.Capability[d], Asked: j.MinResources[d], Detail: "requested by spec.minResources"}
		g.Reason, g.Message = v.Reason, v.Message(dims)
		return
	}
	if p.ssn != ssn {
		p.ssn, p.total = ssn, nil
		for _, n := range ssn.Cluster().Nodes() {
			if n != nil && n.Node != nil && !n.Node.Spec.Unschedulable {
				p.total.Add(n.Allocatable)
			}
		}
	}
	if d := j.MinResources.InsufficientDimension(p.total); d >= 0 && dims.Shared(d) {
		g.Reason = v1alpha1.ReasonExceedsClusterCapacity
		g.Message = fmt.Sprintf("spec.minResources requests %s, but the nodes have %s in total",
			dims.FormatOne(d, j.MinResources[d]), dims.FormatOne(d, p.total.At(d)))
	}
}
