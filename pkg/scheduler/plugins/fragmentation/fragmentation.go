// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package fragmentation is the plugin that keeps devices usable: it prefers the node where a pod leaves fewer devices that
// other pods cannot use.
//
// What pods cannot use of a node is F of package pkg/scheduler/fragmentation. Its types are those of the members of queues that
// run or wait, as of when the session opened, or those of the policy. So the score depends on the model alone, and a placement
// changes the score of its own node only.
//
// The score of a node is 1/2 if the pod does not change F there, more if F falls, and less if F grows. A node without devices
// always has 1/2. So pods without devices avoid nodes where they take the cpu or memory that pods with devices need.
package fragmentation

import (
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/metrics"
)

// Name of the plugin in configurations.
const Name = "fragmentation"

// Spec registers the plugin.
func Spec() framework.PluginSpec {
	return framework.PluginSpec{
		New: func(d *conf.Decoder, _ framework.Handle) (framework.Plugin, error) {
			return &plugin{arguments: decode(d)}, nil
		},
		Check:        func(d *conf.Decoder) { decode(d) },
		NeverPermits: []conf.Point{conf.Preemptable, conf.Reclaimable},
	}
}

// plugin exists as long as the configuration.
type plugin struct {
	arguments Arguments
	workload  *workload // nil before the first session
}

func (p *plugin) Name() string { return Name }

func (p *plugin) OnSessionOpen(ssn *framework.Session) {
	if p.arguments.Weight == 0 {
		return
	}
	if p.workload == nil || p.workload.cluster != ssn.Cluster() {
		p.workload = newWorkload(&p.arguments, ssn.Cluster())
	}
	scores := &scores{workload: p.workload, weight: api.Score(p.arguments.Weight)}
	ssn.AddNodeOrderFn(Name, scores.score)
	ssn.AddPlanFns(Name, framework.PlanFns{Score: scores.scoreEvictions})
	ssn.AddOpenedFn(Name, func() { p.workload.update(ssn.Nodes()) })
}

func (p *plugin) OnSessionClose(*framework.Session) {}

// MeasureDevices implements framework.DeviceMeter.
func (p *plugin) MeasureDevices() *metrics.Devices {
	if p.workload == nil {
		return nil
	}
	return p.workload.measure(p.arguments.Resource)
}

// scores are the scores of one session.
type scores struct {
	*workload
	weight api.Score
}

// score returns the weighted score of a node. It does not allocate.
func (q *scores) score(t *api.TaskInfo, n *api.NodeInfo) api.Score {
	if q.set == nil || n.Allocatable.At(q.device) <= 0 || uint(n.Index) >= uint(len(q.nodes)) {
		return q.weight * (api.OneScore / 2)
	}
	return q.weight * q.set.Score(q.lost(n), q.lostWithout(n, t.Request))
}
