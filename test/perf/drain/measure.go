// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/batch-scheduler/batch-scheduler/test/cluster"
	"github.com/batch-scheduler/batch-scheduler/test/perf/testbed"
	"github.com/batch-scheduler/batch-scheduler/test/scheduler"
)

// measure runs all measurements. The order within a pair alternates, because the speed of a shared machine changes
// over time.
func measure(ctx context.Context, o options, say testbed.Progress) (*result, error) {
	r := &result{
		Pods: o.pods(), Nodes: o.nodes, Gangs: o.gangs, GangSize: o.size,
		Kubelets: o.kubelets, KubeletParallelism: o.kubeletParallelism, Unthrottled: o.unthrottled,
		CPUs: runtime.GOMAXPROCS(0), Pairs: make([]pair, o.repeat),
	}
	if _, err := scheduler.Build(ctx, false); err != nil {
		return nil, err
	}
	for i := range r.Pairs {
		halves := []func(*testbed.Bed) error{
			func(b *testbed.Bed) error { return ceiling(ctx, b, o, &r.Pairs[i], say) },
			func(b *testbed.Bed) error { return drain(ctx, b, o, &r.Pairs[i], say) },
		}
		for half := range halves {
			if err := testbed.Use(ctx, o.bed(say), halves[(half+i)%len(halves)]); err != nil {
				return nil, err
			}
		}
	}
	r.sum()
	return r, nil
}

func (o options) bed(say testbed.Progress) testbed.Options {
	return testbed.Options{
		Cluster: cluster.Options{
			Nodes: o.nodes, NodeSpecs: []string{o.nodeSpec},
			NoKubelets: !o.kubelets, KubeletParallelism: o.kubeletParallelism, Unthrottled: o.unthrottled,
		},
		Profiles: o.profiles, Progress: say,
	}
}

// drain creates the gangs, starts the scheduler, and watches until all pods have nodes.
func drain(ctx context.Context, b *testbed.Bed, o options, p *pair, say testbed.Progress) error {
	say("creating %d gangs of %d pods", o.gangs, o.size)
	gangs := testbed.Gangs(o.gangs, o.size)
	if err := b.Submit(ctx, gangs...); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	binds, err := b.WatchBinds(limited)
	if err != nil {
		return err
	}
	started := time.Now()
	s, err := b.StartScheduler(ctx)
	if err != nil {
		return err
	}
	defer s.Kill() // if it has not been stopped
	waited := binds.Wait(limited, 1, s.Done())
	before, err := look(b)
	if err != nil {
		return err
	}
	start, err := s.Usage()
	if err != nil {
		return err
	}
	profiled := s.Profile(ctx, fmt.Sprintf("drain-%d", o.pods()), o.profiled())
	if waited == nil {
		waited = binds.Wait(limited, o.pods(), s.Done())
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if waited != nil {
		say("%v", waited) // the result contains the rest
	}
	counts := binds.Counts()
	p.FirstBindSeconds = counts.First.Sub(started).Seconds()
	usage, err := s.Usage()
	if err != nil {
		return err
	}
	if p.Scheduler, err = rateOf(b, counts, before, usage.CPU-start.CPU); err != nil {
		return err
	}
	p.SchedulerCPU, p.SchedulerPeakSize = usage.CPU.Seconds(), usage.Peak
	say("%.0f pods/s by the scheduler", p.Scheduler.PodsPerSecond)
	if err = profiled(); err != nil {
		return err
	}
	if p.Findings, err = b.Inspect(ctx, gangs); err != nil {
		return err
	}
	return s.End()
}

// profiled is the length of a profile: most of the time in which all pods are bound.
func (o options) profiled() time.Duration {
	return time.Duration(o.pods()) * time.Second / 1500
}

// ceiling lets plain clients bind the same pods.
func ceiling(ctx context.Context, b *testbed.Bed, o options, p *pair, say testbed.Progress) error {
	say("ceiling: creating %d pods", o.pods())
	pods := testbed.Pods(testbed.Gangs(o.gangs, o.size))
	if err := b.Create(ctx, pods); err != nil {
		return err
	}
	clients, err := b.PlainClients(ctx)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	binds, err := b.WatchBinds(limited)
	if err != nil {
		return err
	}
	if err = b.WatchPods(limited, testbed.Sights{}); err != nil { // as a scheduler must, in addition to the measuring informer
		return err
	}
	before, err := look(b)
	if err != nil {
		return err
	}
	say("%d plain clients bind them", len(clients))
	profiled := b.Profile(ctx, fmt.Sprintf("ceiling-%d", o.pods()), o.profiled())
	if err = clients.Bind(limited, pods, o.nodes); err != nil {
		return err
	}
	if err = binds.Wait(limited, o.pods(), b.Cluster.Done()); err != nil {
		return err
	}
	if p.Ceiling, err = rateOf(b, binds.Counts(), before, 0); err != nil {
		return err
	}
	say("%.0f pods/s by plain clients", p.Ceiling.PodsPerSecond)
	return profiled()
}

// taken is the processor time of processes.
type taken struct{ cluster, self time.Duration }

// look reads the processor time of the cluster and of this process so far.
func look(b *testbed.Bed) (taken, error) {
	cluster, err := testbed.UsageOf(b.Cluster.PID())
	if err != nil {
		return taken{}, err
	}
	self, err := testbed.UsageOf(os.Getpid())
	return taken{cluster.CPU, self.CPU}, err
}

// rateOf returns how fast pods were bound, and the processor time used since before, including that of a scheduler.
func rateOf(b *testbed.Bed, t testbed.BindCounts, before taken, scheduler time.Duration) (rate, error) {
	after, err := look(b)
	perPod := func(d time.Duration) float64 { return d.Seconds() * 1000 / float64(max(1, t.Count)) }
	return rate{
		Bound: t.Count, PodsPerSecond: t.PerSecond(),
		ClusterCPU: perPod(after.cluster - before.cluster), ClientCPU: perPod(after.self - before.self + scheduler),
	}, err
}
