//go:build !invariants

package scheduler

import (
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

// audit and auditPlans do nothing without the build tag invariants.
func audit(*api.Cluster) {}

func auditPlans(*framework.Session) {}
