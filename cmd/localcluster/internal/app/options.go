// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"time"

	"github.com/batch-scheduler/batch-scheduler/cmd/localcluster/internal/controlplane"
	"github.com/batch-scheduler/batch-scheduler/cmd/localcluster/internal/nodes"
)

// maxNodes limits the number of nodes, so that a typing error does not exhaust the memory.
const maxNodes = 20000

// options are the flags.
type options struct {
	kubeconfig string
	port       int
	stateDir   string

	nodes int
	pools []string
	zones int

	controllerManager  bool
	scheduler          bool
	noKubelets         bool
	kubeletParallelism int
	jobRunTime         time.Duration
	workloadAPI        bool
	featureGates       []string
	unthrottled        bool
	profiling          bool
	auditLog           string

	stopOnStdinClose bool
	logFile          string
	verbosity        int
}

func newOptions() *options {
	return &options{
		nodes:              3,
		kubeletParallelism: 4,
		jobRunTime:         5 * time.Second,
	}
}

// validate checks everything that can be checked before a start. It returns the nodes to create, or the first error.
func (o *options) validate() (nodes.Plan, error) {
	for _, err := range []error{
		inRange("--port", o.port, 0, 65535),
		inRange("--nodes", o.nodes, 0, maxNodes),
		inRange("--zones", o.zones, 0, nodes.MaxZones),
		inRange("--kubelet-parallelism", o.kubeletParallelism, 1, 64),
		inRange("--v", o.verbosity, 0, 10),
		notNegative("--job-run-time", o.jobRunTime),
		o.features().Validate(),
	} {
		if err != nil {
			return nodes.Plan{}, err
		}
	}
	return o.plan()
}

func (o *options) features() controlplane.Features {
	return controlplane.Features{WorkloadAPI: o.workloadAPI, Gates: o.featureGates}
}

func (o *options) plan() (nodes.Plan, error) {
	specs := o.pools
	if len(specs) == 0 {
		specs = []string{nodes.DefaultSpec}
	}
	plan := nodes.Plan{Zones: o.zones}
	total := 0
	for _, spec := range specs {
		pool, err := nodes.ParsePool(spec, o.nodes)
		if err != nil {
			return nodes.Plan{}, fmt.Errorf("--node: %w", err)
		}
		plan.Pools = append(plan.Pools, pool)
		total += pool.Count
	}
	return plan, inRange("all nodes together", total, 0, maxNodes)
}

func inRange(name string, value, least, most int) error {
	if value < least || value > most {
		return fmt.Errorf("%s: %d is not in %d to %d", name, value, least, most)
	}
	return nil
}

func notNegative(name string, value time.Duration) error {
	if value < 0 {
		return fmt.Errorf("%s: %s is negative", name, value)
	}
	return nil
}
