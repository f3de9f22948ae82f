// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/test/cluster"
	"github.com/batch-scheduler/batch-scheduler/test/perf/figures"
	"github.com/batch-scheduler/batch-scheduler/test/perf/testbed"
)

// idle is a cluster that is idle until a gang arrives, and then another. First plain clients bind as many pods: their
// time is that of API server and machine, the rest is the scheduler's.
type idle struct {
	nodes, size, gangs int
	gpus               int64 // of each pod, which are devices; 0: none
}

const (
	// idlePause is the time between two gangs, in which pending writes about the last one complete.
	idlePause = time.Second
	// plainPause is the time before and between the pods that plain clients bind.
	plainPause = 200 * time.Millisecond
	// idleTimeout is the maximum time for a gang to start.
	idleTimeout = 30 * time.Second
)

func (m idle) measure(ctx context.Context, b bench) ([]figures.Figure, error) {
	var plain, gangs *starts
	o := testbed.Options{
		Cluster:  cluster.Options{Nodes: m.nodes, NodeSpecs: []string{"cpu=8,memory=32Gi,pods=110"}, NoKubelets: true, AuditLog: b.audit},
		Profiles: b.profiles, Progress: b.say,
	}
	err := testbed.Use(ctx, o, func(bed *testbed.Bed) (err error) {
		if plain, err = m.plain(ctx, bed); err != nil {
			return err
		}
		b.say("plain clients bind %d pods in %.0f ms", m.size, plain.latencies())
		gangs, err = m.scheduled(ctx, bed)
		return err
	})
	if err != nil {
		return nil, err
	}
	b.say("gangs started after %.0f ms", gangs.latencies())
	if b.audit != "" {
		requests, err := readRequests(b.audit)
		if err != nil {
			return nil, err
		}
		showTraces(b.say, "plain clients", plain.traces(requests))
		showTraces(b.say, "scheduler", gangs.traces(requests))
	}
	limit, times := plain.latencies(), gangs.latencies()
	return []figures.Figure{
		unbounded("plain-median", quantile(limit, 0.5), "ms"),
		unbounded("plain-p99", quantile(limit, 0.99), "ms"),
		atMost("median", quantile(times, 0.5), "ms", 60),
		atMost("p99", quantile(times, 0.99), "ms", 150),
	}, nil
}

// plain measures plain clients, which know the node and do not wait, for the same number of pods, with an additional
// watch as a scheduler has.
func (m idle) plain(ctx context.Context, bed *testbed.Bed) (*starts, error) {
	return m.plainWith(ctx, bed, func(ctx context.Context, clients testbed.Plain, pods []*corev1.Pod) error {
		return clients.Bind(ctx, pods, m.nodes)
	})
}

// plainWith is plain with another function that binds pods.
func (m idle) plainWith(ctx context.Context, bed *testbed.Bed, bind func(context.Context, testbed.Plain, []*corev1.Pod) error) (*starts, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := bed.WatchPods(ctx, testbed.Sights{}); err != nil {
		return nil, err
	}
	clients, err := bed.PlainClients(ctx)
	if err != nil {
		return nil, err
	}
	return m.each(ctx, bed, plainPause, func(ctx context.Context, gang testbed.Gang) (time.Time, error) {
		pods := testbed.Pods([]testbed.Gang{gang})
		if err := bed.Create(ctx, pods); err != nil {
			return time.Time{}, err
		}
		time.Sleep(plainPause)
		return time.Now(), bind(ctx, clients, pods)
	})
}

// scheduled measures how long gangs take until the scheduler has bound them.
func (m idle) scheduled(ctx context.Context, bed *testbed.Bed) (*starts, error) {
	s, err := bed.StartScheduler(ctx)
	if err != nil {
		return nil, err
	}
	defer s.Kill() // if it has not been stopped
	if err = s.Ready(ctx); err != nil {
		return nil, err
	}
	profiled := s.Profile(ctx, "idle", time.Duration(m.gangs)*idlePause)
	gangs, err := m.each(ctx, bed, idlePause, func(ctx context.Context, gang testbed.Gang) (time.Time, error) {
		failed := bed.Submit(ctx, gang)
		return time.Now(), failed
	})
	if err != nil {
		return nil, err
	}
	if err = profiled(); err != nil {
		return nil, err
	}
	return gangs, s.End()
}

// each creates gangs, waits until they start and deletes them, one after the other, and returns their times. Come
// starts a gang and returns the start of the measurement.
func (m idle) each(ctx context.Context, bed *testbed.Bed, pause time.Duration, come func(context.Context, testbed.Gang) (time.Time, error)) (*starts, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	gangs := newStarts()
	if err := bed.WatchPods(ctx, testbed.Sights{Bound: func(pod *corev1.Pod) { gangs.see(pod, time.Now()) }}); err != nil {
		return nil, err
	}
	for i := range m.gangs {
		if err := m.once(ctx, bed, testbed.Gang{Name: fmt.Sprintf("gang-%04d", i), Size: m.size, GPUs: m.gpus}, gangs, come); err != nil {
			return nil, err
		}
		time.Sleep(pause)
	}
	return gangs, nil
}

func (m idle) once(ctx context.Context, bed *testbed.Bed, gang testbed.Gang, gangs *starts, come func(context.Context, testbed.Gang) (time.Time, error)) error {
	ctx, cancel := context.WithTimeout(ctx, idleTimeout)
	defer cancel()
	over := gangs.expect(gang)
	at, err := come(ctx, gang)
	if err != nil {
		return err
	}
	gangs.created(gang, at)
	select {
	case <-over:
	case <-ctx.Done():
		return fmt.Errorf("gang %s has not started: %w", gang.Name, context.Cause(ctx))
	}
	if err := m.inspect(ctx, bed, gang); err != nil {
		return err
	}
	return bed.Remove(ctx, gang)
}

func (m idle) inspect(ctx context.Context, bed *testbed.Bed, gang testbed.Gang) error {
	found, err := bed.Inspect(ctx, []testbed.Gang{gang})
	if err != nil {
		return err
	}
	if problem := found.Problem(); problem != "" {
		return errors.New(problem)
	}
	return nil
}
