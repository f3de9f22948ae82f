// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package harness runs a soak: a local cluster with the scheduler, a controller that carries out the steps of a
// scenario and creates the pods of jobs, and a checker that receives all changes from watches.
package harness

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/batch-scheduler/batch-scheduler/pkg/client/clientset/versioned"
	"github.com/batch-scheduler/batch-scheduler/test/cluster"
	"github.com/batch-scheduler/batch-scheduler/test/scheduler"
	"github.com/batch-scheduler/batch-scheduler/test/soak/internal/checker"
	"github.com/batch-scheduler/batch-scheduler/test/soak/internal/scenario"
)

// policy has all four actions, and starvation reservations and degraded gangs are handled soon.
const policy = `
actions: "reclaim, allocate, backfill, preempt"
starvationAfter: 30s
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
`

// gangGrace is how long a gang may have too few members before it is degraded.
const gangGrace = 10 * time.Second

const defaultQueue = "default"

// Options configure a Harness.
type Options struct {
	// Dir receives the logs.
	Dir string
	// Race runs the scheduler with the race detector and with the audits of its model.
	Race bool
	// Say reports progress.
	Say func(format string, args ...any)
}

// Harness is a running soak.
type Harness struct {
	*observer
	options    Options
	cluster    *cluster.Cluster
	clients    clients
	supervisor *supervisor
	jobs       *controller
	player     *player
}

// NewHarness starts everything except the scheduler.
func NewHarness(ctx context.Context, o Options) (*Harness, error) {
	s := &Harness{options: o, observer: newObserver()}
	if err := s.set(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Harness) set(ctx context.Context) (err error) {
	binary, err := scheduler.Build(ctx, s.options.Race)
	if err != nil {
		return err
	}
	if err = os.Setenv(scheduler.BinaryVariable, binary); err != nil {
		return err
	}
	size := fmt.Sprintf("cpu=%d,memory=32Gi,pods=20", scenario.NodeCPU)
	s.cluster, err = cluster.Start(ctx, cluster.Options{
		NodeSpecs: []string{
			fmt.Sprintf("count=%d,%s", scenario.Plain, size),
			fmt.Sprintf("name=gpu,count=%d,%s,%s=%d", scenario.GPUNodes, size, gpu, scenario.NodeGPU),
		},
		Zones: scenario.Zones, ControllerManager: true, LogFile: filepath.Join(s.options.Dir, "cluster.log"),
	})
	if err != nil {
		return err
	}
	if s.clients.client, err = kubernetes.NewForConfig(s.cluster.RESTConfig()); err != nil {
		return err
	}
	if s.clients.batch, err = versioned.NewForConfig(s.cluster.RESTConfig()); err != nil {
		return err
	}
	if err = scheduler.Install(ctx, s.cluster); err != nil {
		return err
	}
	s.jobs = &controller{clients: s.clients, observer: s.observer}
	s.player = &player{clients: s.clients, observer: s.observer, jobs: s.jobs, nodes: map[string]*corev1.Node{}}
	if err = s.player.createObjects(ctx); err != nil {
		return err
	}
	if s.supervisor, err = newSupervisor(ctx, s); err != nil {
		return err
	}
	s.player.supervisor = s.supervisor
	return s.watch(ctx, s.clients)
}

// Play carries out the steps at their times.
func (s *Harness) Play(ctx context.Context, steps []scenario.Step) error {
	began := time.Now()
	for _, step := range steps {
		if err := s.jobs.reconcileUntil(ctx, began.Add(step.At)); err != nil {
			return err
		}
		s.Check(func(c *checker.Checker, now time.Time) { c.Disturbed(now, "scenario: "+step.String(), keysOf(step)...) })
		if err := s.player.step(ctx, step); err != nil && ctx.Err() == nil {
			return fmt.Errorf("%s: %w", step, err)
		}
	}
	return context.Cause(ctx)
}

// Close stops everything.
func (s *Harness) Close() {
	if s.supervisor != nil {
		s.supervisor.close()
	}
	s.stop()
	s.watching.Wait()
	if s.cluster != nil {
		if err := s.cluster.Stop(); err != nil {
			s.options.Say("stopping the cluster: %v", err)
		}
	}
}
