// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/batch-scheduler/batch-scheduler/test/scheduler"
	"github.com/batch-scheduler/batch-scheduler/test/soak/internal/checker"
)

// processTimeout is how long the scheduler may take to start or to stop.
const processTimeout = time.Minute

// supervisor starts and stops the scheduler and reads its metrics.
type supervisor struct {
	harness *Harness
	reader  *scheduler.Reader
	args    []string

	busy    sync.Mutex // held while the scheduler starts or stops
	mu      sync.Mutex
	running *scheduler.Scheduler
	wanted  bool // a scheduler should run
}

func newSupervisor(ctx context.Context, s *Harness) (*supervisor, error) {
	reader, err := scheduler.NewReader(ctx, s.cluster, s.options.Dir, "cluster-admin")
	if err != nil {
		return nil, err
	}
	file := filepath.Join(s.options.Dir, "policy.yaml")
	if err = os.WriteFile(file, []byte(policy), 0o644); err != nil {
		return nil, err
	}
	args := append([]string{"--scheduler-conf=" + file, "--gang-grace=" + gangGrace.String(), "--v=2", "--profiling"}, reader.Args...)
	return &supervisor{harness: s, reader: reader, args: args}, nil
}

// start starts the scheduler and returns when it is ready.
func (k *supervisor) start(ctx context.Context) error {
	s, err := scheduler.Start(ctx, k.harness.cluster, scheduler.Options{Dir: k.harness.options.Dir, Race: k.harness.options.Race, Args: k.args})
	if err != nil {
		return err
	}
	k.mu.Lock()
	k.running, k.wanted = s, true
	k.mu.Unlock()
	k.harness.watching.Go(func() { k.recordExit(s) })
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, processTimeout, true, func(ctx context.Context) (bool, error) {
		select {
		case <-s.Done():
			return false, errors.New("the scheduler has ended")
		default:
		}
		_, unready := k.reader.Get(ctx, "/readyz")
		return unready == nil, nil
	})
	if err != nil {
		return fmt.Errorf("starting the scheduler: %w", err)
	}
	k.harness.Check(func(c *checker.Checker, now time.Time) {
		c.Made(checker.Process)
		c.Scheduler(now, true)
	})
	return nil
}

// recordExit checks a scheduler that has exited.
func (k *supervisor) recordExit(s *scheduler.Scheduler) {
	<-s.Done()
	faults, err := s.Faults()
	if err != nil {
		k.harness.fail(checker.Process, "%v", err)
	}
	if len(faults) > 0 {
		k.harness.fail(checker.Process, "the log %s contains %d faults, first:\n%s", s.Log, len(faults), strings.Join(faults[:min(5, len(faults))], "\n"))
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.running == s && k.wanted {
		k.running = nil
		_, err := s.Wait()
		k.harness.fail(checker.Process, "the scheduler exited unexpectedly: %v", err)
	}
}

// stop stops the scheduler with SIGTERM or SIGKILL.
func (k *supervisor) stop(kill bool) {
	k.mu.Lock()
	s := k.running
	k.running, k.wanted = nil, false
	k.mu.Unlock()
	if s == nil {
		return
	}
	k.harness.Check(func(c *checker.Checker, now time.Time) { c.Scheduler(now, false) })
	if kill {
		s.Kill()
		<-s.Done()
		return
	}
	if err := s.Stop(processTimeout); err != nil {
		k.harness.fail(checker.Process, "stopping the scheduler: %v", err)
	}
}

// restart stops the scheduler and starts another one after a pause.
func (k *supervisor) restart(ctx context.Context, kill bool, pause time.Duration) {
	if !k.busy.TryLock() {
		return // a restart is in progress
	}
	defer k.busy.Unlock()
	k.stop(kill)
	select {
	case <-time.After(pause):
	case <-ctx.Done():
		return
	}
	if err := k.start(ctx); err != nil && ctx.Err() == nil {
		k.harness.fail(checker.Process, "%v", err)
	}
}

// waitReady waits until no restart is in progress.
func (k *supervisor) waitReady() {
	k.busy.Lock()
	k.busy.Unlock() //nolint:staticcheck // to wait is all
}

func (k *supervisor) close() {
	k.busy.Lock()
	defer k.busy.Unlock()
	k.stop(false)
}

// Vitals are metrics of the scheduler.
type Vitals struct {
	Writes     float64 // requests that may have changed objects
	Goroutines float64
	Heap       float64 // MiB in use after a garbage collection
}

func (k *supervisor) vitals(ctx context.Context) (Vitals, error) {
	if _, err := k.reader.Get(ctx, "/debug/pprof/heap?gc=1"); err != nil {
		return Vitals{}, err
	}
	metrics, err := k.reader.Metrics(ctx)
	if err != nil {
		return Vitals{}, err
	}
	v := Vitals{Goroutines: metrics["go_goroutines"], Heap: metrics["go_memstats_heap_alloc_bytes"] / (1 << 20)}
	for series, value := range metrics {
		if strings.HasPrefix(series, "batch_scheduler_api_writes_total") && !strings.Contains(series, "reviews") {
			v.Writes += value
		}
	}
	return v, nil
}
