// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package scheduler runs the scheduler as users run it: installed from config/, as a separate process with its own
// service account and the roles in config/. Tests and benchmarks start it on a local cluster:
//
//	err := scheduler.Install(ctx, c)
//	s, err := scheduler.Start(ctx, c, scheduler.Options{Dir: dir})
//	defer s.Stop(time.Minute)
package scheduler

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/batch-scheduler/batch-scheduler/test/cluster"
)

const (
	// Name is the spec.schedulerName of the pods that it schedules.
	Name = "batch-scheduler"

	// Namespace and Account are those in config/.
	Namespace = "batch-scheduler-system"
	Account   = "batch-scheduler"

	importPath = "github.com/batch-scheduler/batch-scheduler/cmd/batch-scheduler"
)

// Options configure the scheduler. Dir is required.
type Options struct {
	// Dir receives the kubeconfig and the log.
	Dir string

	// Race runs a binary with the race detector.
	Race bool

	// Args are appended to, and so override, those that Start sets: the kubeconfig, no leader election, no endpoints.
	Args []string
}

// Scheduler is a scheduler process.
type Scheduler struct {
	*cluster.Process

	// Kubeconfig is the scheduler's; Log is the file with its output.
	Kubeconfig, Log string
}

// Install applies config/crd and config/default as an administrator, except the Deployment. It must be called before
// Start and may be called again.
func Install(ctx context.Context, c *cluster.Cluster) error {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return fmt.Errorf("looking for the module: %w", err)
	}
	config := filepath.Join(strings.TrimSpace(string(root)), "config")
	if err = c.Apply(ctx, filepath.Join(config, "crd")); err != nil {
		return err
	}
	return c.Apply(ctx, filepath.Join(config, "default"), "Deployment", "PodDisruptionBudget")
}

// BinaryVariable is the environment variable with the path of a built scheduler. If it is empty or unset, Build
// builds one.
const BinaryVariable = "BATCH_SCHEDULER_BINARY"

// Build builds the scheduler, or returns the binary that the environment names. Even for an unchanged tree the go
// command takes seconds, so a program that starts many schedulers should set the variable to the result of the first
// Build.
func Build(ctx context.Context, race bool) (string, error) {
	if binary := os.Getenv(BinaryVariable); binary != "" {
		return binary, nil
	}
	return cluster.Build(ctx, importPath, race)
}

// Start starts a scheduler and does not wait until it is ready. Without leader election two can run at the same time:
// stop one before the next is started.
func Start(ctx context.Context, c *cluster.Cluster, o Options) (*Scheduler, error) {
	binary, err := Build(ctx, o.Race)
	if err != nil {
		return nil, err
	}
	s := &Scheduler{Kubeconfig: filepath.Join(o.Dir, "scheduler.kubeconfig")}
	if err = c.ServiceAccountKubeconfig(ctx, Namespace, Account, s.Kubeconfig); err != nil {
		return nil, err
	}
	log, err := os.CreateTemp(o.Dir, "scheduler-*.log")
	if err != nil {
		return nil, fmt.Errorf("creating a log file: %w", err)
	}
	s.Log = log.Name()
	if err = log.Close(); err != nil {
		return nil, fmt.Errorf("creating a log file: %w", err)
	}
	args := append([]string{"--kubeconfig=" + s.Kubeconfig, "--leader-elect=false", "--secure-port=0"}, o.Args...)
	s.Process, err = cluster.StartProcess(cluster.ProcessOptions{Path: binary, Args: args, Output: s.Log})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// fault matches what no log may contain, in any scenario.
var fault = regexp.MustCompile(`(?i)panic|DATA RACE|fatal error|forbidden: User|unauthorized`)

// Faults returns the lines of the log with a fault of the scheduler itself: a panic, a data race, or a permission
// that its roles do not grant.
func (s *Scheduler) Faults() ([]string, error) {
	data, err := os.ReadFile(s.Log)
	if err != nil {
		return nil, fmt.Errorf("reading the scheduler's log: %w", err)
	}
	var faults []string
	for line := range strings.SplitSeq(string(data), "\n") {
		if fault.MatchString(line) {
			faults = append(faults, line)
		}
	}
	return faults, nil
}
