// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/go-logr/logr"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
)

// TestNoAllocations checks the functions that are called for each task and node.
func TestNoAllocations(t *testing.T) {
	w := fleetOf(50).build(itsOwn, inItsOwnBlocks)
	profile, err := newProfile(clocktesting.NewFakePassiveClock(w.clock.Add(time.Hour)), true, conf.Reservations{})
	if err != nil {
		t.Fatal(err)
	}
	model := w.model()
	ssn := profile.Open(model, &effects{}, logr.Discard())
	job := ssn.Jobs()[0]
	task, node := job.Tasks[0], model.Nodes()[0]
	other := ssn.Jobs()[1]
	claim := api.NewClaim(job, job.Tasks)
	ssn.Nodes().Count(task)
	for name, ask := range map[string]func(){
		"filter":          func() { ssn.Filter(task.Signature, node) },
		"resources":       func() { node.Fits(task, api.Now) },
		"predicate":       func() { ssn.Predicate(task, node, api.Now) },
		"score":           func() { ssn.NodeScore(task, node) },
		"caps":            func() { ssn.Allocatable(job, task.Request, api.Now) },
		"order of jobs":   func() { ssn.CompareJobs(job, other) },
		"order of queues": func() { ssn.CompareQueues(job.Queue, other.Queue) },
		"order of tasks":  func() { ssn.CompareTasks(job.Tasks[0], job.Tasks[1]) },
		"insufficient":    func() { ssn.Nodes().Insufficient(claim, api.CPU) },
		"node counts":     func() { ssn.Nodes().Count(task) },
		"available nodes": func() { ssn.Nodes().KnownAvailable(task) },
		"capacity count":  func() { ssn.Nodes().CapacityCount(task.Signature) },
	} {
		t.Run(name, func(t *testing.T) {
			if got := testing.AllocsPerRun(100, ask); got > 0 {
				t.Errorf("%v allocations", got)
			}
		})
	}
}

// TestAllocationBudgets limits the allocations of whole cycles. Small clusters cost more per pod than large ones.
func TestAllocationBudgets(t *testing.T) {
	for name, test := range map[string]struct {
		given  benchmark
		cycle  int
		budget float64
		per    int
	}{
		"a pod of a gang that is placed": {gangs(50)[0], 0, 8, 500},
		"a pod that has ended":           {running(20), 1, 140, 1},
		"no change":                      {infeasible(50, "", "", 20, 0, 0, 0), 1, 160, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := trial{benchmark: test.given, ctx: t.Context(), fixture: test.given.build(), cost: make([][]cost, len(test.given.cycles))}
			if err := r.run(); err != nil {
				t.Fatal(err)
			}
			runs := r.cost[test.cycle]
			if got, _ := (limit{unit: allocations, per: test.per}).check(runs); got.Value > test.budget {
				t.Errorf("%.1f allocations, more than %.0f", got.Value, test.budget)
			}
		})
	}
}
