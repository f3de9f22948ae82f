// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package builtin lists the plugins and actions that come with the scheduler.
package builtin

import (
	"errors"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/actions/allocate"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/actions/backfill"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/actions/preempt"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/actions/reclaim"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/plugins/conformance"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/plugins/drf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/plugins/fragmentation"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/plugins/gang"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/plugins/nodeorder"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/plugins/predicates"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/plugins/priority"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/plugins/proportion"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/reservation"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/topology"
)

// NewRegistry returns a registry of them, to which others may be added.
func NewRegistry() (*framework.Registry, error) {
	r := framework.NewRegistry()
	r.SetAdvice(volcano())
	return r, errors.Join(
		// Policies that are part of every configuration. Those that reserve resources do so in this order: what pods were evicted
		// for is not taken for pods that are expected, nor what these need for gangs that have waited long.
		r.AddComponent(topology.Required()),
		r.AddComponent(reservation.Overdue()),
		r.AddFirst(reservation.Nominated()),
		r.AddComponent(reservation.Expected()),
		r.AddFirst(reservation.Starvation()),
		r.AddFirst(reservation.Overrun()),
		r.AddLast(reservation.Degraded(), preempt.Name, reclaim.Name),
		// Plugins and actions that configurations name.
		r.AddPlugin(gang.Name, gang.Spec()),
		r.AddPlugin(priority.Name, priority.Spec()),
		r.AddPlugin(conformance.Name, conformance.Spec()),
		r.AddPlugin(drf.Name, drf.Spec()),
		r.AddPlugin(proportion.Name, proportion.Spec()),
		r.AddPlugin(predicates.Name, predicates.Spec()),
		r.AddPlugin(nodeorder.Name, nodeorder.Spec()),
		r.AddPlugin(fragmentation.Name, fragmentation.Spec()),
		r.AddAction(allocate.New()),
		r.AddAction(backfill.New()),
		r.AddAction(preempt.New()),
		r.AddAction(reclaim.New()),
	)
}
