// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

//go:build invariants

package scheduler

import (
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/audit"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

// auditModel recomputes the model from scratch after a cycle and panics if it contradicts itself,
// which counts the cycle as failed and rebuilds the model. Tests build the scheduler with it.
func auditModel(cluster *model.Cluster) {
	if err := audit.Model(cluster); err != nil {
		panic(err)
	}
}

// planAudits panic when a statement is committed that could be part of an endless sequence of evictions.
func planAudits() []framework.WatchFn {
	return []framework.WatchFn{func(ssn *framework.Session, plan []api.Decision) {
		if _, err := audit.Plan(ssn, plan); err != nil {
			panic(err)
		}
	}}
}
