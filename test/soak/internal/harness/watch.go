// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/batch-scheduler/batch-scheduler/test/scheduler"
	"github.com/batch-scheduler/batch-scheduler/test/soak/internal/checker"
)

// observer passes what watches show to the checker, and keeps the pods that exist.
type observer struct {
	watching sync.WaitGroup     // also what else must end with the soak
	stop     context.CancelFunc // of the watches
	lost     chan error         // receives the error of a watch that ended

	mu      sync.Mutex
	checker *checker.Checker
	pods    map[string]*corev1.Pod // by namespace/name
}

func newObserver() *observer {
	return &observer{
		checker: checker.New(scheduler.Name, defaultQueue), pods: map[string]*corev1.Pod{},
		lost: make(chan error, 8), stop: func() {},
	}
}

// Check calls a function with exclusive access to the checker.
func (o *observer) Check(do func(c *checker.Checker, now time.Time)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	do(o.checker, time.Now())
}

// fail records a violation.
func (o *observer) fail(check checker.Check, format string, args ...any) {
	o.Check(func(c *checker.Checker, now time.Time) { c.Fail(now, check, nil, fmt.Sprintf(format, args...)) })
}

// watch passes every change to the checker; informers would merge some of them.
func (o *observer) watch(ctx context.Context, c clients) error {
	ctx, o.stop = context.WithCancel(ctx)
	core, batch := c.client.CoreV1(), c.batch.SchedulingV1alpha1()
	return firstOf(
		follow(ctx, o, core.Nodes().List, core.Nodes().Watch, (*checker.Checker).Node),
		follow(ctx, o, batch.Queues().List, batch.Queues().Watch, (*checker.Checker).Queue),
		follow(ctx, o, batch.PodGroups("").List, batch.PodGroups("").Watch, (*checker.Checker).Group),
		follow(ctx, o, core.Pods("").List, core.Pods("").Watch, func(c *checker.Checker, at time.Time, p *corev1.Pod, gone bool) {
			key := p.Namespace + "/" + p.Name
			if gone {
				delete(o.pods, key)
			} else {
				o.pods[key] = p
			}
			c.Pod(at, p, gone)
		}),
		follow(ctx, o, c.client.EventsV1().Events("").List, c.client.EventsV1().Events("").Watch,
			func(c *checker.Checker, at time.Time, e *eventsv1.Event, gone bool) {
				if !gone {
					c.Note(at, e)
				}
			}),
	)
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// follow lists the objects of a kind and passes all later changes to the checker.
func follow[L runtime.Object, T runtime.Object](
	ctx context.Context, o *observer,
	list func(context.Context, metav1.ListOptions) (L, error), begin func(context.Context, metav1.ListOptions) (watch.Interface, error),
	show func(*checker.Checker, time.Time, T, bool),
) error {
	first, err := list(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing what to watch: %w", err)
	}
	err = meta.EachListItem(first, func(object runtime.Object) error {
		o.Check(func(c *checker.Checker, now time.Time) { show(c, now, object.(T), false) })
		return nil
	})
	if err != nil {
		return err
	}
	version, err := meta.NewAccessor().ResourceVersion(first)
	if err != nil {
		return err
	}
	w, err := watchtools.NewRetryWatcherWithContext(ctx, version, &cache.ListWatch{WatchFuncWithContext: begin})
	if err != nil {
		return fmt.Errorf("watching: %w", err)
	}
	o.watching.Go(func() {
		defer w.Stop()
		for e := range w.ResultChan() {
			switch e.Type {
			case watch.Added, watch.Modified, watch.Deleted:
				o.Check(func(c *checker.Checker, now time.Time) { show(c, now, e.Object.(T), e.Type == watch.Deleted) })
			case watch.Error:
				o.lost <- fmt.Errorf("watch ended: %w", apierrors.FromObject(e.Object))
				return
			}
		}
		if ctx.Err() == nil {
			o.lost <- fmt.Errorf("watch ended")
		}
	})
	return nil
}

// Lost receives an error when a watch has ended unexpectedly.
func (o *observer) Lost() <-chan error { return o.lost }

// Ticks advances the time of the checker until ctx ends.
func (o *observer) Ticks(ctx context.Context) {
	ticker := time.NewTicker(500 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			o.Check((*checker.Checker).Tick)
		}
	}
}

// podsOn returns the pods on a node.
func (o *observer) podsOn(node string) []*corev1.Pod {
	o.mu.Lock()
	defer o.mu.Unlock()
	var pods []*corev1.Pod
	for _, p := range o.pods {
		if p.Spec.NodeName == node {
			pods = append(pods, p)
		}
	}
	return pods
}
