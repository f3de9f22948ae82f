//go:build !invariants

package scheduler

import (
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

// audit and planAudits are for builds with the tag invariants; production does not pay for them.
func audit(*api.Cluster) {}

func planAudits() []framework.WatchFn { return nil }
