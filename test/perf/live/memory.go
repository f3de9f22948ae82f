package main

import (
	"context"
	"time"

	"github.com/batch-scheduler/batch-scheduler/test/cluster"
	"github.com/batch-scheduler/batch-scheduler/test/perf/figures"
	"github.com/batch-scheduler/batch-scheduler/test/perf/testbed"
)

// memory is a big cluster full of gangs. Some of them go and others come, as many as churned pods.
type memory struct{ nodes, pods, churned int }

const (
	mebibyte = 1 << 20
	// memoryGang is the size of the gangs.
	memoryGang = 50
	// memoryPause is how long the scheduler is left alone before its memory is looked at.
	memoryPause = 5 * time.Second
)

// limit is how much memory the scheduler may take, in MiB: 700 for 5,000 nodes and 100,000 pods, and
// for less a part of what is above its size without any.
func (m memory) limit() float64 {
	return 100 + 600*max(float64(m.nodes)/5000, float64(m.pods)/100_000)
}

func (m memory) measure(ctx context.Context, b bench) ([]figures.Figure, error) {
	var list []figures.Figure
	o := testbed.Options{
		Cluster: cluster.Options{Nodes: m.nodes, NodeSpecs: []string{"cpu=32,memory=256Gi,pods=110"}, NoKubelets: true}, Profiles: b.profiles, Say: b.say,
	}
	err := testbed.Use(ctx, o, func(bed *testbed.Bed) (err error) {
		list, err = m.on(ctx, bed, b)
		return err
	})
	return list, err
}

func (m memory) on(ctx context.Context, bed *testbed.Bed, b bench) ([]figures.Figure, error) {
	gangs := testbed.Gangs(m.pods/memoryGang, memoryGang)
	b.say("creating %d pods that have nodes already", m.pods)
	if err := bed.SubmitBound(ctx, gangs...); err != nil {
		return nil, err
	}
	s, err := bed.StartScheduler(ctx)
	if err != nil {
		return nil, err
	}
	defer s.Kill() // unless it has been stopped
	if err = s.Ready(ctx); err != nil {
		return nil, err
	}
	before, heapBefore, err := m.look(ctx, s)
	if err != nil {
		return nil, err
	}
	b.say("it takes %d MiB, %d at most, of which %d are in use", before.Resident/mebibyte, before.Peak/mebibyte, heapBefore/mebibyte)
	profiled := s.Profile(ctx, "memory", time.Second)
	if err = m.churn(ctx, bed, gangs, s.Done(), b); err != nil {
		return nil, err
	}
	after, heapAfter, err := m.look(ctx, s)
	if err != nil {
		return nil, err
	}
	b.say("now it takes %d MiB, %d at most, of which %d are in use", after.Resident/mebibyte, after.Peak/mebibyte, heapAfter/mebibyte)
	if err = profiled(); err != nil {
		return nil, err
	}
	return []figures.Figure{
		atMost("resident", float64(before.Resident)/mebibyte, "MiB", m.limit()),
		atMost("resident-peak", float64(max(before.Peak, after.Peak))/mebibyte, "MiB", m.limit()),
		told("in-use", float64(heapBefore)/mebibyte, "MiB"),
		atMost("in-use-growth", 100*float64(heapAfter-heapBefore)/float64(heapBefore), "%", 5),
	}, s.End()
}

// look reads what the scheduler takes once it has come to rest.
func (m memory) look(ctx context.Context, s *testbed.Scheduler) (testbed.Usage, int64, error) {
	time.Sleep(memoryPause)
	usage, err := s.Usage()
	if err != nil {
		return usage, 0, err
	}
	heap, err := s.LiveHeap(ctx)
	return usage, heap, err
}

// churn removes some gangs and has the scheduler start others in their place.
func (m memory) churn(ctx context.Context, bed *testbed.Bed, gangs []testbed.Gang, ended <-chan struct{}, b bench) error {
	some := gangs[:m.churned/memoryGang]
	b.say("removing %d pods", m.churned)
	if err := bed.Remove(ctx, some...); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	binds, err := bed.WatchBinds(ctx)
	if err != nil {
		return err
	}
	fresh := make([]testbed.Gang, len(some))
	for i, gang := range some {
		fresh[i] = testbed.Gang{Name: "new-" + gang.Name, Size: gang.Size}
	}
	b.say("creating as many")
	if err := bed.Submit(ctx, fresh...); err != nil {
		return err
	}
	return binds.Wait(ctx, m.churned, ended)
}
