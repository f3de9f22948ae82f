// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/batch-scheduler/batch-scheduler/test/scheduler"
)

// stopTimeout is how long the scheduler may take to stop.
const stopTimeout = time.Minute

// readyTimeout is how long the scheduler may take to start.
const readyTimeout = 2 * time.Minute

// Scheduler is a scheduler on a testbed, with access to its profiles and process statistics.
type Scheduler struct {
	*scheduler.Scheduler
	bed *Bed
}

// StartScheduler starts a scheduler and does not wait until it is ready. Only one may run at a time. Its policy is the
// built-in one.
func (b *Bed) StartScheduler(ctx context.Context) (*Scheduler, error) { return b.start(ctx) }

// StartSchedulerWith is StartScheduler with another policy.
func (b *Bed) StartSchedulerWith(ctx context.Context, policy string) (*Scheduler, error) {
	path := filepath.Join(b.dir, "policy.yaml")
	if err := os.WriteFile(path, []byte(policy), 0o600); err != nil {
		return nil, err
	}
	return b.start(ctx, "--scheduler-conf="+path)
}

func (b *Bed) start(ctx context.Context, args ...string) (*Scheduler, error) {
	s, err := scheduler.Start(ctx, b.Cluster, scheduler.Options{Dir: b.dir, Args: slices.Concat(b.reader.Args, []string{"--profiling"}, args)})
	if err != nil {
		return nil, err
	}
	return &Scheduler{Scheduler: s, bed: b}, nil
}

// Ready returns when the caches of the scheduler have synced.
func (s *Scheduler) Ready(ctx context.Context) error {
	return wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, readyTimeout, true, func(ctx context.Context) (bool, error) {
		_, err := s.bed.reader.Get(ctx, "/readyz")
		select {
		case <-s.Done():
			return false, errors.New("the scheduler has ended")
		default:
			return err == nil, nil
		}
	})
}

// End stops the scheduler. The error reports faults in its log.
func (s *Scheduler) End() error {
	if err := s.Stop(stopTimeout); err != nil {
		return err
	}
	faults, err := s.Faults()
	if err != nil {
		return err
	}
	if len(faults) > 0 {
		return fmt.Errorf("the scheduler's log contains %d faults, first: %s", len(faults), faults[0])
	}
	return nil
}

// Usage reads the resource usage of the scheduler.
func (s *Scheduler) Usage() (Usage, error) { return UsageOf(s.PID()) }

// Profile takes a CPU profile of the given length of the scheduler and of the cluster, and then one of their memory,
// if profiles are enabled. The files are named after the measurement. It returns a function that waits for the
// profiles.
func (s *Scheduler) Profile(ctx context.Context, name string, d time.Duration) (wait func() error) {
	scheduler, cluster := s.bed.profile(ctx, s.bed.reader.Get, name+"-scheduler", d), s.bed.Profile(ctx, name, d)
	return func() error { return errors.Join(scheduler(), cluster()) }
}

// Profile does the same for the cluster only.
func (b *Bed) Profile(ctx context.Context, name string, d time.Duration) (wait func() error) {
	return b.profile(ctx, b.get, name+"-cluster", d)
}

func (b *Bed) profile(ctx context.Context, get func(context.Context, string) ([]byte, error), name string, d time.Duration) (wait func() error) {
	if b.options.Profiles == "" {
		return func() error { return nil }
	}
	taken, base := make(chan error, 1), filepath.Join(b.options.Profiles, name)
	go func() {
		taken <- errors.Join(
			save(ctx, get, fmt.Sprintf("/debug/pprof/profile?seconds=%d", max(1, int(d.Seconds()))), base+"-cpu.pprof"),
			save(ctx, get, "/debug/pprof/heap", base+"-heap.pprof"))
	}()
	return func() error { return <-taken }
}

// get sends a GET request for a path to the API server.
func (b *Bed) get(ctx context.Context, path string) ([]byte, error) {
	return b.Client.Discovery().RESTClient().Get().RequestURI(path).DoRaw(ctx)
}

func save(ctx context.Context, get func(context.Context, string) ([]byte, error), path, file string) error {
	body, err := get(ctx, path)
	if err != nil {
		return fmt.Errorf("taking a profile: %w", err)
	}
	if err = os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, body, 0o644)
}

// LiveHeap returns the bytes of memory in use after a garbage collection.
func (s *Scheduler) LiveHeap(ctx context.Context) (int64, error) {
	if _, err := s.bed.reader.Get(ctx, "/debug/pprof/heap?gc=1"); err != nil {
		return 0, err
	}
	metrics, err := s.bed.reader.Metrics(ctx)
	if err != nil {
		return 0, err
	}
	bytes, ok := metrics["go_memstats_heap_alloc_bytes"]
	if !ok {
		return 0, errors.New("the metrics of the scheduler do not contain its memory")
	}
	return int64(bytes), nil
}
