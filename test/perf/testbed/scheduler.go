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

// stopPatience is how long the scheduler may take to stop.
const stopPatience = time.Minute

// readyPatience is how long it may take to start.
const readyPatience = 2 * time.Minute

// Scheduler is a scheduler that runs on a testbed, whose insides can be read.
type Scheduler struct {
	*scheduler.Scheduler
	bed *Bed
}

// StartScheduler starts a scheduler, one at a time, and does not wait until it is ready.
func (b *Bed) StartScheduler(ctx context.Context) (*Scheduler, error) {
	s, err := scheduler.Start(ctx, b.Cluster, scheduler.Options{Dir: b.dir, Args: append(slices.Clone(b.reader.Args), "--profiling")})
	if err != nil {
		return nil, err
	}
	return &Scheduler{Scheduler: s, bed: b}, nil
}

// Ready returns when the scheduler has seen everything that there is.
func (s *Scheduler) Ready(ctx context.Context) error {
	return wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, readyPatience, true, func(ctx context.Context) (bool, error) {
		_, err := s.bed.reader.Get(ctx, "/readyz")
		select {
		case <-s.Done():
			return false, errors.New("the scheduler has ended")
		default:
			return err == nil, nil
		}
	})
}

// End stops the scheduler. The error tells of faults that its log tells of.
func (s *Scheduler) End() error {
	if err := s.Stop(stopPatience); err != nil {
		return err
	}
	faults, err := s.Faults()
	if err != nil {
		return err
	}
	if len(faults) > 0 {
		return fmt.Errorf("the scheduler's log tells of %d faults, first: %s", len(faults), faults[0])
	}
	return nil
}

// Usage reads what the scheduler takes.
func (s *Scheduler) Usage() (Usage, error) { return UsageOf(s.PID()) }

// Profile takes a CPU profile of the given time of the scheduler and of the cluster, and then one
// of their memory, if profiles are asked for. The files are named after what is measured. It
// returns at once, and a function that waits.
func (s *Scheduler) Profile(ctx context.Context, name string, d time.Duration) (wait func() error) {
	scheduler, cluster := s.bed.profile(ctx, s.bed.reader.Get, name+"-scheduler", d), s.bed.Profile(ctx, name, d)
	return func() error { return errors.Join(scheduler(), cluster()) }
}

// Profile does so for the cluster alone.
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

// get returns what the API server answers on a path.
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

// LiveHeap returns how many bytes of memory are in use after a collection of garbage.
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
		return 0, errors.New("the metrics of the scheduler do not tell its memory")
	}
	return int64(bytes), nil
}
