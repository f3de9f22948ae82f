// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// reportPeriod is how often progress is reported.
const reportPeriod = 5 * time.Second

// Sights are called once for each pod when a watch shows an event; events before the start of the watch are not
// reported. Nil callbacks are skipped.
type Sights struct {
	Bound func(*corev1.Pod) // it has a node
	Ended func(*corev1.Pod) // its containers have ended
}

// WatchPods watches until ctx ends. It returns when all existing pods have been received. It uses a single informer,
// the minimum that a scheduler needs.
func (w *Workload) WatchPods(ctx context.Context, sights Sights) error {
	factory := informers.NewSharedInformerFactory(w.Client, 0)
	informer := factory.Core().V1().Pods().Informer()
	var synced atomic.Bool
	transition := func(before, after *corev1.Pod) {
		if !synced.Load() {
			return
		}
		if sights.Bound != nil && after.Spec.NodeName != "" && (before == nil || before.Spec.NodeName == "") {
			sights.Bound(after)
		}
		if sights.Ended != nil && ended(after) && (before == nil || !ended(before)) {
			sights.Ended(after)
		}
	}
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { transition(nil, obj.(*corev1.Pod)) },
		UpdateFunc: func(old, obj any) { transition(old.(*corev1.Pod), obj.(*corev1.Pod)) },
	})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return fmt.Errorf("watching pods: %w", context.Cause(ctx))
	}
	synced.Store(true)
	return nil
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// Binds counts binds as a watch shows them.
type Binds struct {
	say Progress

	mu      sync.Mutex
	counts  BindCounts
	changed chan struct{}
}

// BindCounts is the number of bound pods, and the times of the first and the last bind.
type BindCounts struct {
	Count       int
	First, Last time.Time
}

// PerSecond is the rate from the first bind to the last.
func (t BindCounts) PerSecond() float64 {
	if seconds := t.Last.Sub(t.First).Seconds(); seconds > 0 {
		return float64(t.Count) / seconds
	}
	return 0
}

// WatchBinds counts from now on, until ctx ends.
func (w *Workload) WatchBinds(ctx context.Context) (*Binds, error) {
	binds := &Binds{say: w.progress, changed: make(chan struct{}, 1)}
	return binds, w.WatchPods(ctx, Sights{Bound: func(*corev1.Pod) { binds.add(time.Now()) }})
}

func (w *Binds) add(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts.Last = now
	if w.counts.Count == 0 {
		w.counts.First = now
	}
	w.counts.Count++
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// Counts returns the current counts.
func (w *Binds) Counts() BindCounts {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.counts
}

// Wait returns when count pods have nodes, or an error when ctx ends or ended is closed.
func (w *Binds) Wait(ctx context.Context, count int, ended <-chan struct{}) error {
	report := time.NewTicker(reportPeriod)
	defer report.Stop()
	for {
		now := w.Counts()
		if now.Count >= count {
			return nil
		}
		select {
		case <-w.changed:
		case <-report.C:
			w.say("%d of %d pods are bound", now.Count, count)
		case <-ended:
			return errors.New("the scheduler has ended")
		case <-ctx.Done():
			return fmt.Errorf("%d of %d pods are bound: %w", now.Count, count, context.Cause(ctx))
		}
	}
}
