// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/batch-scheduler/batch-scheduler/test/cluster"
	"github.com/batch-scheduler/batch-scheduler/test/perf/figures"
	"github.com/batch-scheduler/batch-scheduler/test/perf/testbed"
)

// memory is a large cluster full of gangs. Each round deletes and creates gangs with churned pods in total; there are
// at least two rounds, and as many as fit into a time.
type memory struct {
	nodes, pods, churned int
	during               time.Duration
}

const (
	mebibyte = 1 << 20
	// memoryGang is the size of the gangs, memoryChunk the number of gangs created at once, which limits the memory
	// of the test.
	memoryGang, memoryChunk = 50, 400
	// memoryPause is the idle time before the memory of the scheduler is read.
	memoryPause = 5 * time.Second
)

// limit is the memory limit of the scheduler in MiB: 700 for 5,000 nodes and 100,000 pods, and proportionally less
// above the base size for smaller clusters.
func (m memory) limit() float64 {
	return 100 + 600*max(float64(m.nodes)/5000, float64(m.pods)/100_000)
}

func (m memory) measure(ctx context.Context, b bench) ([]figures.Figure, error) {
	var list []figures.Figure
	o := testbed.Options{
		Cluster: cluster.Options{Nodes: m.nodes, NodeSpecs: []string{"cpu=32,memory=256Gi,pods=110"}, NoKubelets: true}, Profiles: b.profiles, Progress: b.say,
	}
	err := testbed.Use(ctx, o, func(bed *testbed.Bed) (err error) {
		list, err = m.on(ctx, bed, b)
		return err
	})
	return list, err
}

func (m memory) on(ctx context.Context, bed *testbed.Bed, b bench) ([]figures.Figure, error) {
	gangs, err := m.fill(ctx, bed, b)
	if err != nil {
		return nil, err
	}
	s, err := bed.StartScheduler(ctx)
	if err != nil {
		return nil, err
	}
	defer s.Kill() // if it has not been stopped
	if err = s.Ready(ctx); err != nil {
		return nil, err
	}
	profiled := s.Profile(ctx, "memory", memoryPause)
	full, err := m.look(ctx, s, b)
	if err != nil {
		return nil, err
	}
	// Memory is compared with that after the first round, which includes one-time allocations. In long runs it is
	// compared with that after half of the time: maps grow for a while when their keys change, at most to twice their
	// size, but a leak continues.
	var first, last taken
	rounds := 0
	for began := time.Now(); rounds < 2 || time.Since(began) < m.during; rounds++ {
		if gangs, err = m.churn(ctx, bed, fmt.Sprintf("round-%d-", rounds), gangs, s.Done(), b); err != nil {
			return nil, err
		}
		if last, err = m.look(ctx, s, b); err != nil {
			return nil, err
		}
		if rounds == 0 || time.Since(began) < m.during/2 {
			first = last
		}
	}
	if err = profiled(); err != nil {
		return nil, err
	}
	growth := 100 * (last.inUse - first.inUse) / first.inUse
	return []figures.Figure{
		atMost("resident", full.resident, "MiB", m.limit()),
		atMost("resident-peak", last.peak, "MiB", m.limit()),
		unbounded("in-use", full.inUse, "MiB"),
		atMost("in-use-growth", growth, "%", 5),
		unbounded("churned", float64(rounds*m.churned), "pods"),
	}, s.End()
}

// fill lets a scheduler bind the gangs of a full cluster, so that its pods are in the state that a scheduler leaves.
// The measured scheduler starts after it.
func (m memory) fill(ctx context.Context, bed *testbed.Bed, b bench) ([]testbed.Gang, error) {
	gangs := testbed.Gangs(m.pods/memoryGang, memoryGang)
	for i := range gangs {
		gangs[i].Furnished = true
	}
	b.say("creating %d pods, and having a scheduler bind them", m.pods)
	s, err := bed.StartScheduler(ctx)
	if err != nil {
		return nil, err
	}
	defer s.Kill() // if it has not been stopped
	for some := range slices.Chunk(gangs, memoryChunk) {
		if err := m.start(ctx, bed, some, s.Done()); err != nil {
			return nil, err
		}
	}
	return gangs, s.End()
}

// start creates gangs and waits until all of them have started.
func (m memory) start(ctx context.Context, bed *testbed.Bed, gangs []testbed.Gang, ended <-chan struct{}) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	binds, err := bed.WatchBinds(ctx)
	if err != nil {
		return err
	}
	if err := bed.Submit(ctx, gangs...); err != nil {
		return err
	}
	return binds.Wait(ctx, memoryGang*len(gangs), ended)
}

// taken is the memory of the scheduler in MiB.
type taken struct {
	resident, peak float64 // of the process
	inUse          float64 // after a garbage collection
}

// look reads the memory of the scheduler once it is idle.
func (m memory) look(ctx context.Context, s *testbed.Scheduler, b bench) (taken, error) {
	time.Sleep(memoryPause)
	usage, err := s.Usage()
	if err != nil {
		return taken{}, err
	}
	heap, err := s.LiveHeap(ctx)
	t := taken{float64(usage.Resident) / mebibyte, float64(usage.Peak) / mebibyte, float64(heap) / mebibyte}
	b.say("it takes %.0f MiB, %.0f at most; %.0f are in use", t.resident, t.peak, t.inUse)
	return t, err
}

// churn deletes the first gangs, creates as many others at the end, waits until they start, and returns the current
// gangs.
func (m memory) churn(ctx context.Context, bed *testbed.Bed, prefix string, gangs []testbed.Gang, ended <-chan struct{}, b bench) ([]testbed.Gang, error) {
	gone, stay := gangs[:m.churned/memoryGang], gangs[m.churned/memoryGang:]
	b.say("removing %d pods", m.churned)
	if err := bed.Remove(ctx, gone...); err != nil {
		return nil, err
	}
	come := make([]testbed.Gang, len(gone))
	for i, gang := range gone {
		come[i] = testbed.Gang{Name: fmt.Sprint(prefix, i), Size: gang.Size, Furnished: true}
	}
	b.say("creating as many")
	return append(stay, come...), m.start(ctx, bed, come, ended)
}
