package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/test/cluster"
	"github.com/batch-scheduler/batch-scheduler/test/perf/figures"
	"github.com/batch-scheduler/batch-scheduler/test/perf/testbed"
)

// idle is a cluster that does nothing until a gang comes, and then another.
type idle struct{ nodes, size, gangs int }

const (
	// idlePause is between two gangs: what is still to be written about the last one is written.
	idlePause = time.Second
	// idlePatience is how long a gang may take.
	idlePatience = 30 * time.Second
)

func (m idle) measure(ctx context.Context, b bench) ([]figures.Figure, error) {
	latencies := newStarts()
	var findings testbed.Findings
	o := testbed.Options{
		Cluster:  cluster.Options{Nodes: m.nodes, NodeSpecs: []string{"cpu=8,memory=32Gi,pods=110"}, NoKubelets: true},
		Profiles: b.profiles, Say: b.say,
	}
	err := testbed.Use(ctx, o, func(bed *testbed.Bed) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		if err := bed.WatchPods(ctx, testbed.Sights{Bound: func(pod *corev1.Pod) { latencies.see(pod, time.Now()) }}); err != nil {
			return err
		}
		s, err := bed.StartScheduler(ctx)
		if err != nil {
			return err
		}
		defer s.Kill() // unless it has been stopped
		if err = s.Ready(ctx); err != nil {
			return err
		}
		profiled := s.Profile(ctx, "idle", time.Duration(m.gangs)*idlePause)
		for i := range m.gangs {
			gang := testbed.Gang{Name: fmt.Sprintf("gang-%04d", i), Size: m.size}
			if err = m.once(ctx, bed, gang, latencies, &findings); err != nil {
				return err
			}
		}
		if err = profiled(); err != nil {
			return err
		}
		return s.End()
	})
	if err != nil {
		return nil, err
	}
	sorted := latencies.latencies()
	b.say("gangs started after %.0f ms", sorted)
	list := []figures.Figure{
		atMost("median", quantile(sorted, 0.5), "ms", 60),
		atMost("p99", quantile(sorted, 0.99), "ms", 150),
	}
	if problem := findings.Problem(); problem != "" {
		return nil, fmt.Errorf("%s", problem)
	}
	return list, nil
}

// once has one gang come, start and go.
func (m idle) once(ctx context.Context, bed *testbed.Bed, gang testbed.Gang, latencies *starts, findings *testbed.Findings) error {
	limited, cancel := context.WithTimeout(ctx, idlePatience)
	defer cancel()
	over := latencies.expect(gang)
	if err := bed.Submit(limited, gang); err != nil {
		return err
	}
	latencies.created(gang, time.Now())
	select {
	case <-over:
	case <-limited.Done():
		return fmt.Errorf("gang %s has not started: %w", gang.Name, context.Cause(limited))
	}
	found, err := bed.Inspect(limited, []testbed.Gang{gang})
	if err != nil {
		return err
	}
	findings.Add(found)
	if err := bed.Remove(limited, gang); err != nil {
		return err
	}
	time.Sleep(idlePause)
	return nil
}
