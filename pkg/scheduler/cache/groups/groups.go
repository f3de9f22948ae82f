// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package groups watches the PodGroups of other APIs.
//
// A Watcher asks the API server every minute which APIs of the enabled sources it serves. It starts an informer for each
// API that is served, and stops it when the API is gone, with all its groups. If no source is enabled, it does nothing.
package groups

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/groupapi"
)

// askEvery is the time between two questions which APIs are served.
const askEvery = time.Minute

// Options are the parts of a Watcher; all are required.
type Options struct {
	Dynamic   dynamic.Interface
	Discovery discovery.ServerResourcesInterface
	// Handler receives *groupapi.Object.
	Handler toolscache.ResourceEventHandler
	// Failed is called with the name of the resource when a list or a watch fails.
	Failed func(ctx context.Context, resource string, err error)
	Clock  clock.WithTicker
	Log    logr.Logger
}

// Watcher runs an informer for each API of the enabled sources that is served.
type Watcher struct {
	Options
	ask chan struct{} // signals that the enabled sources have changed

	mu      sync.Mutex // held while informers are started and stopped
	enabled api.GroupSources
	looping bool
	feeds   map[api.GroupSource]*feed
}

// feed is the informer of one API.
type feed struct {
	api      *groupapi.API
	informer toolscache.SharedIndexInformer
	synced   toolscache.DoneChecker
	denied   chan struct{} // closed when a list is forbidden
	stop     context.CancelFunc
	stopped  chan struct{}
}

// New returns a watcher without sources.
func New(o Options) *Watcher {
	o.Log = o.Log.WithName("groups")
	return &Watcher{Options: o, ask: make(chan struct{}, 1), feeds: map[api.GroupSource]*feed{}}
}

// Enable adds sources, and returns when the groups of those that are served are known. It does not wait for sources that
// are not served or that the scheduler must not read. The informers stop with ctx.
func (w *Watcher) Enable(ctx context.Context, sources api.GroupSources) {
	if !sources.Any() {
		return
	}
	w.mu.Lock()
	w.enabled = api.GroupSources{
		Native: w.enabled.Native || sources.Native, SchedulerPlugins: w.enabled.SchedulerPlugins || sources.SchedulerPlugins,
		Volcano: w.enabled.Volcano || sources.Volcano,
	}
	w.mu.Unlock()
	w.discover(ctx)
	w.mu.Lock()
	var started []*feed
	for _, f := range w.feeds {
		started = append(started, f)
	}
	if !w.looping {
		w.looping = true
		go w.loop(ctx)
	}
	w.mu.Unlock()
	for _, f := range started {
		select {
		case <-f.synced.Done():
		case <-f.denied:
		case <-f.stopped:
		case <-ctx.Done():
		}
	}
}

// Keep drops all sources but these. It returns at once.
func (w *Watcher) Keep(sources api.GroupSources) {
	w.mu.Lock()
	w.enabled = sources
	w.mu.Unlock()
	w.askNow()
}

func (w *Watcher) askNow() {
	select {
	case w.ask <- struct{}{}:
	default:
	}
}

func (w *Watcher) loop(ctx context.Context) {
	ticker := w.Clock.NewTicker(askEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		case <-w.ask:
		}
		w.discover(ctx)
	}
}

// discover asks which APIs are served, and starts and stops informers. If the API server does not answer, everything stays
// as it is.
func (w *Watcher) discover(ctx context.Context) {
	w.mu.Lock()
	enabled := w.enabled
	w.mu.Unlock()
	served := w.servedAPIs(enabled) // without the lock: it can take long
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range groupapi.All() {
		source, f := a.Source, w.feeds[a.Source]
		found, known := served[source]
		switch {
		case !w.enabled.Has(source):
			w.remove(source)
		case !known: // stays as it is
		case found == nil:
			w.remove(source)
		case f == nil || f.api.Resource != found.Resource:
			w.remove(source)
			w.start(ctx, found)
		}
	}
}

// servedAPIs returns for each of the sources the API that is served, or nil. It leaves out sources of which that is not
// known.
func (w *Watcher) servedAPIs(sources api.GroupSources) map[api.GroupSource]*groupapi.API {
	apis, unknown := map[api.GroupSource]*groupapi.API{}, map[api.GroupSource]bool{}
	for _, a := range groupapi.All() {
		if !sources.Has(a.Source) || unknown[a.Source] || apis[a.Source] != nil {
			continue
		}
		served, err := w.served(a)
		switch {
		case err != nil:
			w.Log.V(2).Info("Discovery failed", "source", a.Source, "err", err)
			delete(apis, a.Source)
			unknown[a.Source] = true
		case served:
			apis[a.Source] = a
		default:
			apis[a.Source] = nil
		}
	}
	return apis
}

func (w *Watcher) served(a *groupapi.API) (bool, error) {
	list, err := w.Discovery.ServerResourcesForGroupVersion(a.Resource.GroupVersion().String())
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for i := range list.APIResources {
		if list.APIResources[i].Name == a.Resource.Resource {
			return true, nil
		}
	}
	return false, nil
}

// start starts the informer of an API. The caller holds mu.
func (w *Watcher) start(ctx context.Context, a *groupapi.API) {
	f := &feed{api: a, denied: make(chan struct{}), stopped: make(chan struct{})}
	f.informer = dynamicinformer.NewFilteredDynamicInformer(w.Dynamic, a.Resource, metav1.NamespaceAll, 0,
		toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc}, nil).Informer()
	log := w.Log.WithValues("source", a.Source, "apiVersion", a.Resource.GroupVersion())
	if err := w.prepare(f); err != nil {
		log.Error(err, "Group source not started")
		return
	}
	var running context.Context
	running, f.stop = context.WithCancel(ctx)
	go func() {
		defer close(f.stopped)
		f.informer.RunWithContext(running)
	}()
	w.feeds[a.Source] = f
	log.Info("Group source started")
}

func (w *Watcher) prepare(f *feed) error {
	err := f.informer.SetTransform(func(obj any) (any, error) {
		if u, ok := obj.(*unstructured.Unstructured); ok {
			return f.api.Read(u), nil
		}
		return obj, nil // trimmed before
	})
	if err != nil {
		return err
	}
	var once sync.Once
	resource := f.api.Resource.GroupResource().String()
	err = f.informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, _ *toolscache.Reflector, err error) {
		if apierrors.IsNotFound(err) { // the API is gone
			w.askNow()
			return
		}
		if apierrors.IsForbidden(err) {
			once.Do(func() { close(f.denied) })
		}
		w.Failed(ctx, resource, err)
	})
	if err != nil {
		return err
	}
	registration, err := f.informer.AddEventHandler(w.Handler)
	if err != nil {
		return fmt.Errorf("informer of %s: %w", resource, err)
	}
	f.synced = registration.HasSyncedChecker()
	return nil
}

// remove stops the informer of a source, and deletes its groups. The caller holds mu.
func (w *Watcher) remove(source api.GroupSource) {
	f := w.feeds[source]
	if f == nil {
		return
	}
	delete(w.feeds, source)
	f.stop()
	<-f.stopped
	for _, obj := range f.informer.GetStore().List() {
		w.Handler.OnDelete(obj)
	}
	w.Log.Info("Group source stopped", "source", source)
}

// Get returns the group of a source with a name, or nil.
func (w *Watcher) Get(source api.GroupSource, namespace, name string) *groupapi.Object {
	w.mu.Lock()
	f := w.feeds[source]
	w.mu.Unlock()
	if f == nil {
		return nil
	}
	obj, found, err := f.informer.GetStore().GetByKey(namespace + "/" + name)
	if err != nil || !found {
		return nil
	}
	group, _ := obj.(*groupapi.Object)
	return group
}
