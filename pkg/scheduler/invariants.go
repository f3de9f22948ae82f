//go:build invariants

package scheduler

import "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"

// audit recomputes the model from scratch after a cycle and panics if it contradicts itself,
// which fails the cycle, counts it, and rebuilds the model. Tests build the scheduler with it.
func audit(cluster *api.Cluster) {
	if err := cluster.Audit(); err != nil {
		panic(err)
	}
}
