// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/batch-scheduler/batch-scheduler/cmd/localcluster/annotation"
	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/test/cluster"
	"github.com/batch-scheduler/batch-scheduler/test/perf/figures"
	"github.com/batch-scheduler/batch-scheduler/test/perf/testbed"
)

// stream is a sequence of gangs that arrive, run for a while, end, and are deleted. First plain clients measure how
// many pod lifecycles per second this cluster sustains: they create pods that end as soon as they run, bind them, and
// delete them when their kubelets have run and ended them. Gangs then arrive at a fraction of that rate.
type stream struct {
	nodes, lives, seconds int
	share                 float64
}

const (
	// runTime is how long the pods of the stream run.
	runTime = 10 * time.Second
	// window is the number of pods that plain clients have at a time.
	window = 512
	// deleters is the number of concurrent deletions.
	deleters = 8
	// lastTimeout is the maximum time for the last gangs to start.
	lastTimeout = 30 * time.Second
	// sampling is the period of backlog samples.
	sampling = 100 * time.Millisecond
)

// sizes are the sizes of the gangs, in rotation.
func sizes() []int { return []int{4, 8, 16, 32} }

func (m stream) measure(ctx context.Context, b bench) ([]figures.Figure, error) {
	var list []figures.Figure
	o := testbed.Options{
		Cluster:  cluster.Options{Nodes: m.nodes, NodeSpecs: []string{"cpu=32,memory=256Gi,pods=110"}},
		Profiles: b.profiles, Progress: b.say,
	}
	err := testbed.Use(ctx, o, func(bed *testbed.Bed) error {
		ceiling, err := m.ceiling(ctx, bed, b)
		if err != nil {
			return err
		}
		b.say("plain clients sustain %.0f lives of pods per second", ceiling)
		s, err := bed.StartScheduler(ctx)
		if err != nil {
			return err
		}
		defer s.Kill() // unless it has been stopped
		if err = s.Ready(ctx); err != nil {
			return err
		}
		profiled := s.Profile(ctx, "stream", time.Duration(m.seconds/2)*time.Second)
		f := &flow{bed: bed, starts: newStarts(), rate: m.share * ceiling, left: map[string]int{}, prefix: "gang"}
		if list, err = f.measure(ctx, time.Duration(m.seconds)*time.Second, b); err != nil {
			return err
		}
		list = append([]figures.Figure{unbounded("ceiling", ceiling, "lives/s")}, list...)
		if err = profiled(); err != nil {
			return err
		}
		return s.End()
	})
	return list, err
}

// ceiling returns the number of pod lifecycles per second of plain clients. Many more pods than clients exist at a
// time, because no client waits for a kubelet. The first and the last fifth are ignored.
func (m stream) ceiling(ctx context.Context, bed *testbed.Bed, b bench) (float64, error) {
	b.say("plain clients lead %d pods through their lives", m.lives)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	clients, err := bed.PlainClients(ctx)
	if err != nil {
		return 0, err
	}
	pods := testbed.Pods([]testbed.Gang{{Name: "life", Size: m.lives, Annotations: map[string]string{annotation.RunFor: "0s"}}})
	fresh, ended := make(chan int, len(pods)), make(chan string, len(pods))
	for i := range min(len(pods), window) {
		fresh <- i
	}
	if err = bed.WatchPods(ctx, testbed.Sights{Ended: func(pod *corev1.Pod) { ended <- pod.Name }}); err != nil {
		return 0, err
	}
	var mu sync.Mutex
	var over []time.Time
	bury := func(ctx context.Context, pod string) error {
		failed := bed.Delete(ctx, pod)
		mu.Lock()
		defer mu.Unlock()
		over = append(over, time.Now())
		if next := len(over) - 1 + window; next < len(pods) {
			fresh <- next
		}
		return failed
	}
	err = clients.Do(ctx, 2*len(pods), func(ctx context.Context, client kubernetes.Interface, _ int) error {
		select { // deletions have precedence
		case pod := <-ended:
			return bury(ctx, pod)
		default:
		}
		select {
		case pod := <-ended:
			return bury(ctx, pod)
		case i := <-fresh:
			failed := bed.Create(ctx, pods[i:i+1]) // as the user; the scheduler may not create pods
			if failed == nil {
				failed = testbed.Bind(ctx, client, pods[i].Name, fmt.Sprintf("node-%d", i%m.nodes))
			}
			return failed
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	if err != nil {
		return 0, err
	}
	first, last := len(over)/5, len(over)*4/5
	return float64(last-first) / over[last].Sub(over[first]).Seconds(), nil
}

// flow is a running stream.
type flow struct {
	bed    *testbed.Bed
	starts *starts
	rate   float64 // pods per second
	prefix string  // of the names of gangs
	ended  chan *corev1.Pod

	mu   sync.Mutex
	left map[string]int // existing pods by gang
}

// measure creates gangs for a while and returns the figures.
func (f *flow) measure(ctx context.Context, d time.Duration, b bench) ([]figures.Figure, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	f.ended = make(chan *corev1.Pod, 2*int(f.rate*d.Seconds())+100) // large enough that the watch never blocks
	err := f.bed.WatchPods(ctx, testbed.Sights{
		Bound: func(pod *corev1.Pod) { f.starts.see(pod, time.Now()) },
		Ended: func(pod *corev1.Pod) { f.ended <- pod },
	})
	if err != nil {
		return nil, err
	}
	var working sync.WaitGroup
	defer working.Wait()
	defer cancel(nil)
	for range deleters {
		working.Go(func() { f.delete(ctx, cancel) })
	}
	b.say("gangs of %v pods come for %s, %.0f pods per second", sizes(), d, f.rate)
	backlogs := make(chan []int, 1)
	working.Go(func() { backlogs <- f.sample(ctx, d) })
	count, pods, err := f.submit(ctx, d)
	if err != nil {
		return nil, err
	}
	backlog := <-backlogs
	latencies := f.starts.latencies()
	b.say("%d gangs with %d pods came; they started after %.0f ms at the median, %.0f at most", count, pods, quantile(latencies, 0.5), quantile(latencies, 1))
	growth := mean(backlog[len(backlog)*3/4:]) - mean(backlog[len(backlog)/4:len(backlog)/2])
	return []figures.Figure{
		unbounded("rate", float64(pods)/d.Seconds(), "pods/s"),
		unbounded("latency-median", quantile(latencies, 0.5), "ms"),
		atMost("latency-p99", quantile(latencies, 0.99), "ms", 500),
		unbounded("backlog", mean(backlog), "pods"),
		atMost("backlog-growth", growth, "pods", float64(sizes()[len(sizes())-1])),
	}, nil
}

// submit creates gangs at their times, whether or not earlier ones have been created, and waits until all have
// started.
func (f *flow) submit(ctx context.Context, d time.Duration) (gangs, pods int, err error) {
	var coming sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	began := time.Now()
	for ; ; gangs++ {
		size := sizes()[gangs%len(sizes())]
		due := time.Duration(float64(pods) / f.rate * float64(time.Second))
		if due >= d || ctx.Err() != nil {
			break
		}
		time.Sleep(time.Until(began.Add(due)))
		gang := testbed.Gang{Name: fmt.Sprintf("%s-%04d", f.prefix, gangs), Size: size, Annotations: map[string]string{annotation.RunFor: runTime.String()}}
		pods += size
		coming.Go(func() {
			if err := f.come(ctx, gang); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, fmt.Errorf("gang %s: %w", gang.Name, err))
			}
		})
	}
	coming.Wait()
	return gangs, pods, errors.Join(append(errs, context.Cause(ctx))...)
}

// come creates a gang and waits until it has started.
func (f *flow) come(ctx context.Context, gang testbed.Gang) error {
	f.mu.Lock()
	f.left[gang.Name] = gang.Size
	f.mu.Unlock()
	over := f.starts.expect(gang)
	if err := f.bed.Submit(ctx, gang); err != nil {
		return err
	}
	f.starts.created(gang, time.Now())
	limited, cancel := context.WithTimeout(ctx, lastTimeout)
	defer cancel()
	select {
	case <-over:
		return nil
	case <-limited.Done():
		return fmt.Errorf("has not started: %w", context.Cause(limited))
	}
}

// delete deletes pods that have ended, and with the last pod of a gang its group.
func (f *flow) delete(ctx context.Context, fail context.CancelCauseFunc) {
	for {
		select {
		case <-ctx.Done():
			return
		case pod := <-f.ended:
			err := f.bed.Delete(ctx, pod.Name)
			if gang := pod.Labels[v1alpha1.LabelPodGroup]; f.last(gang) {
				err = errors.Join(err, f.bed.DeleteGroup(ctx, gang))
			}
			if err != nil && ctx.Err() == nil {
				fail(fmt.Errorf("deleting pod %s: %w", pod.Name, err))
			}
		}
	}
}

// last reports whether a gang has no pods left.
func (f *flow) last(gang string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left[gang]--
	return f.left[gang] == 0
}

// sample reads the backlog periodically.
func (f *flow) sample(ctx context.Context, d time.Duration) []int {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	ticker := time.NewTicker(sampling)
	defer ticker.Stop()
	list := []int{}
	for {
		select {
		case <-ticker.C:
			list = append(list, f.starts.backlog())
		case <-ctx.Done():
			return list
		}
	}
}

func mean(list []int) float64 {
	if len(list) == 0 {
		return math.NaN()
	}
	sum := 0
	for _, n := range list {
		sum += n
	}
	return float64(sum) / float64(len(list))
}
