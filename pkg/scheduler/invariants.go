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

// auditPlans panics when a plan is committed that could be part of a cycle of evictions.
func auditPlans(ssn *framework.Session) {
	ssn.OnCommit(func(plan []api.Decision) {
		if _, err := audit.Plan(ssn, plan); err != nil {
			panic(err)
		}
	})
}
