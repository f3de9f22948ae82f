// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
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

	"github.com/batch-scheduler/batch-scheduler/test/soak/internal/checker"
)

// watch passes every change to the checker; informers would merge some of them.
func (s *Harness) watch(ctx context.Context) error {
	ctx, s.stop = context.WithCancel(ctx)
	core, batch := s.client.CoreV1(), s.batch.SchedulingV1alpha1()
	return firstOf(
		follow(ctx, s, core.Nodes().List, core.Nodes().Watch, (*checker.Checker).Node),
		follow(ctx, s, batch.Queues().List, batch.Queues().Watch, (*checker.Checker).Queue),
		follow(ctx, s, batch.PodGroups("").List, batch.PodGroups("").Watch, (*checker.Checker).Group),
		follow(ctx, s, core.Pods("").List, core.Pods("").Watch, func(c *checker.Checker, at time.Time, p *corev1.Pod, gone bool) {
			key := p.Namespace + "/" + p.Name
			if gone {
				delete(s.pods, key)
			} else {
				s.pods[key] = p
			}
			c.Pod(at, p, gone)
		}),
		follow(ctx, s, s.client.EventsV1().Events("").List, s.client.EventsV1().Events("").Watch,
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
	ctx context.Context, s *Harness,
	list func(context.Context, metav1.ListOptions) (L, error), begin func(context.Context, metav1.ListOptions) (watch.Interface, error),
	show func(*checker.Checker, time.Time, T, bool),
) error {
	first, err := list(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing what to watch: %w", err)
	}
	err = meta.EachListItem(first, func(o runtime.Object) error {
		s.Check(func(c *checker.Checker, now time.Time) { show(c, now, o.(T), false) })
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
	s.watching.Go(func() {
		defer w.Stop()
		for e := range w.ResultChan() {
			switch e.Type {
			case watch.Added, watch.Modified, watch.Deleted:
				s.Check(func(c *checker.Checker, now time.Time) { show(c, now, e.Object.(T), e.Type == watch.Deleted) })
			case watch.Error:
				s.lost <- fmt.Errorf("watch ended: %w", apierrors.FromObject(e.Object))
				return
			}
		}
		if ctx.Err() == nil {
			s.lost <- fmt.Errorf("watch ended")
		}
	})
	return nil
}

// Lost receives an error when a watch has ended unexpectedly.
func (s *Harness) Lost() <-chan error { return s.lost }

// Ticks advances the time of the checker until ctx ends.
func (s *Harness) Ticks(ctx context.Context) {
	ticker := time.NewTicker(500 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.Check((*checker.Checker).Tick)
		}
	}
}
