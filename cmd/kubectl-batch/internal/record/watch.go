// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/client/clientset/versioned"
	"github.com/batch-scheduler/batch-scheduler/pkg/client/informers/externalversions"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/groupapi"
)

// Source is where events come from.
type Source struct {
	Core  kubernetes.Interface
	Batch versioned.Interface
	Other dynamic.Interface
	// Served are the APIs of other PodGroups that are watched.
	Served []*groupapi.API
	Clock  clock.WithTicker
}

// Check lists one object of each kind that a record needs, and returns the first error. APIs of other PodGroups that may not
// be read are removed from Served, with a warning.
func (s *Source) Check(ctx context.Context, warn func(string)) error {
	one := metav1.ListOptions{Limit: 1}
	_, nodes := s.Core.CoreV1().Nodes().List(ctx, one)
	_, pods := s.Core.CoreV1().Pods("").List(ctx, one)
	_, classes := s.Core.SchedulingV1().PriorityClasses().List(ctx, one)
	_, podGroups := s.Batch.SchedulingV1alpha1().PodGroups("").List(ctx, one)
	_, queues := s.Batch.SchedulingV1alpha1().Queues().List(ctx, one)
	if err := cmp.Or(nodes, pods, classes, podGroups, queues); err != nil {
		return err
	}
	var readable []*groupapi.API
	for _, a := range s.Served {
		switch _, err := s.Other.Resource(a.Resource).List(ctx, one); {
		case apierrors.IsForbidden(err):
			warn(fmt.Sprintf("the PodGroups of %s are not recorded: %v", a.Resource.Group, err))
		case err != nil:
			return err
		default:
			readable = append(readable, a)
		}
	}
	s.Served = readable
	return nil
}

// Sources returns the sources of the APIs that are watched.
func (s *Source) Sources() (sources api.GroupSources) {
	for _, a := range s.Served {
		switch a.Source {
		case api.SourceNative:
			sources.Native = true
		case api.SourceSchedulerPlugins:
			sources.SchedulerPlugins = true
		case api.SourceVolcano:
			sources.Volcano = true
		case api.SourceKAI:
			sources.KAI = true
		}
	}
	return sources
}

// event is a change of an object.
type event struct {
	at    time.Time
	rank  rank
	apply func(*Builder, time.Duration)
}

// rank is the order in which the objects that are there at the beginning are recorded.
type rank int

const (
	rankClass rank = iota
	rankQueue
	rankNode
	rankGroup
	rankPod
)

// feed collects the events of all watches.
type feed struct {
	clock  clock.PassiveClock
	mu     sync.Mutex
	events []event
	some   chan struct{} // holds a value if there are events
	failed chan error
	warn   func(string)
}

func (f *feed) add(r rank, apply func(*Builder, time.Duration)) {
	f.mu.Lock()
	f.events = append(f.events, event{f.clock.Now(), r, apply})
	f.mu.Unlock()
	select {
	case f.some <- struct{}{}:
	default:
	}
}

// take returns the events since the last call.
func (f *feed) take() []event {
	f.mu.Lock()
	defer f.mu.Unlock()
	events := f.events
	f.events = nil
	return events
}

// interrupted is called when a watch fails. It is tried again, unless the right to it is missing.
func (f *feed) interrupted(what string) cache.WatchErrorHandlerWithContext {
	return func(ctx context.Context, _ *cache.Reflector, err error) {
		switch {
		case apierrors.IsForbidden(err):
			select {
			case f.failed <- err:
			default:
			}
		case ctx.Err() == nil && !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err):
			f.warn(fmt.Sprintf("the watch of %s is interrupted, and resumes: %v", what, err))
		}
	}
}

// follow adds the events of an informer to the feed, and returns a function that reports whether it has delivered what was
// there at the beginning.
func follow[T any](f *feed, what string, r rank, informer cache.SharedIndexInformer, set, gone func(*Builder, T, time.Duration)) (cache.InformerSynced, error) {
	if err := informer.SetWatchErrorHandlerWithContext(f.interrupted(what)); err != nil {
		return nil, err
	}
	add := func(object any, apply func(*Builder, T, time.Duration)) {
		if last, missed := object.(cache.DeletedFinalStateUnknown); missed {
			object = last.Obj
		}
		if typed, ok := object.(T); ok {
			f.add(r, func(b *Builder, at time.Duration) { apply(b, typed, at) })
		}
	}
	registered, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { add(object, set) },
		UpdateFunc: func(_, object any) { add(object, set) },
		DeleteFunc: func(object any) { add(object, gone) },
	})
	if err != nil {
		return nil, err
	}
	return registered.HasSynced, nil
}

// watch starts all watches, and returns when the feed has what was there at the beginning.
func (s *Source) watch(ctx context.Context, f *feed) error {
	core := informers.NewSharedInformerFactoryWithOptions(s.Core, 0, informers.WithTransform(Strip))
	batch := externalversions.NewSharedInformerFactory(s.Batch, 0)
	other := dynamicinformer.NewDynamicSharedInformerFactory(s.Other, 0)
	var synced []cache.InformerSynced
	var failed error
	add := func(s cache.InformerSynced, err error) {
		synced, failed = append(synced, s), cmp.Or(failed, err)
	}
	add(follow[*schedulingv1.PriorityClass](f, "priority classes", rankClass, core.Scheduling().V1().PriorityClasses().Informer(),
		(*Builder).SetPriorityClass, (*Builder).DeletePriorityClass))
	add(follow[*v1.Node](f, "nodes", rankNode, core.Core().V1().Nodes().Informer(), (*Builder).SetNode, (*Builder).DeleteNode))
	add(follow[*v1.Pod](f, "pods", rankPod, core.Core().V1().Pods().Informer(), (*Builder).SetPod,
		func(b *Builder, p *v1.Pod, at time.Duration) { b.DeletePod(p, at) }))
	add(follow[*v1alpha1.Queue](f, "queues", rankQueue, batch.Scheduling().V1alpha1().Queues().Informer(), (*Builder).SetQueue, (*Builder).DeleteQueue))
	add(follow[*v1alpha1.PodGroup](f, "PodGroups", rankGroup, batch.Scheduling().V1alpha1().PodGroups().Informer(),
		func(b *Builder, g *v1alpha1.PodGroup, at time.Duration) { b.SetGroup(api.OwnGroup(g), at) },
		func(b *Builder, g *v1alpha1.PodGroup, at time.Duration) { b.DeleteGroup(api.OwnGroup(g), at) }))
	for _, a := range s.Served {
		add(follow[*unstructured.Unstructured](f, "PodGroups of "+a.Resource.Group, rankGroup, other.ForResource(a.Resource).Informer(),
			func(b *Builder, g *unstructured.Unstructured, at time.Duration) { b.SetGroup(a.Read(g).Group, at) },
			func(b *Builder, g *unstructured.Unstructured, at time.Duration) { b.DeleteGroup(a.Read(g).Group, at) }))
	}
	if failed != nil {
		return failed
	}
	core.Start(ctx.Done())
	batch.Start(ctx.Done())
	other.Start(ctx.Done())
	all := make(chan struct{})
	go func() {
		if cache.WaitForCacheSync(ctx.Done(), synced...) {
			close(all)
		}
	}()
	select {
	case <-all:
		return nil
	case err := <-f.failed:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pause is how often jobs without pods are written, and the progress is shown.
const pause = 10 * time.Second

// Recording is the record of a time.
type Recording struct {
	Lasts time.Duration // 0: until the context ends
	New   func(began time.Time) *Builder
	Warn  func(string)
	// Shown is called at the beginning, every few seconds, and at the end.
	Shown func(at time.Duration, counts Counts)
}

// Run records until its time is over or ctx ends. Then it writes what has not ended, so that the record is complete. It
// returns the notes of the builder.
func (s *Source) Run(ctx context.Context, o Recording) ([]string, error) {
	f := &feed{clock: s.Clock, some: make(chan struct{}, 1), failed: make(chan error, 1), warn: o.Warn}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	if err := s.watch(watching, f); err != nil {
		return nil, err
	}
	began := s.Clock.Now()
	r := o.New(began)
	first := f.take()
	slices.SortStableFunc(first, func(a, b event) int { return cmp.Compare(a.rank, b.rank) })
	for _, e := range first {
		e.apply(r, 0)
	}
	o.Shown(0, r.Counts())
	over := make(<-chan time.Time) // never
	if o.Lasts > 0 {
		timer := s.Clock.NewTimer(o.Lasts)
		defer timer.Stop()
		over = timer.C()
	}
	ticker := s.Clock.NewTicker(pause)
	defer ticker.Stop()
	var failed error
	for done := false; !done && r.Err() == nil && failed == nil; {
		select {
		case <-f.some:
		case <-ticker.C():
			r.Flush(s.Clock.Since(began))
			o.Shown(s.Clock.Since(began), r.Counts())
		case failed = <-f.failed:
		case <-over:
			done = true
		case <-ctx.Done():
			done = true
		}
		for _, e := range f.take() {
			e.apply(r, max(e.at.Sub(began).Truncate(time.Microsecond), time.Microsecond))
		}
	}
	r.End(s.Clock.Since(began).Truncate(time.Microsecond))
	o.Shown(s.Clock.Since(began), r.Counts())
	return r.Notes(), cmp.Or(r.Err(), failed)
}
