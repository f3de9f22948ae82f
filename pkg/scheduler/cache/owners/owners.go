// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package owners watches the objects that make gangs of their pods.
//
// A Watcher asks the API server every minute which of the kinds it serves that the policy lists. It starts an informer for
// each of them, and stops it when the kind is gone, with all its objects. A pod can be seen before its object, so the
// watcher also looks objects up that pods name and that no informer has shown, and reports those that do not exist. If no
// kind is listed, it does nothing.
package owners

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/ownerapi"
)

// askEvery is the time between two questions which kinds are served.
const askEvery = time.Minute

// Options are the parts of a Watcher; all are required.
type Options struct {
	Dynamic   dynamic.Interface
	Discovery discovery.ServerResourcesInterface
	// Handler receives *api.Owner.
	Handler toolscache.ResourceEventHandler
	// Gone is called when an object does not exist that pods name.
	Gone func(api.OwnerRef)
	// Failed is called with the name of the resource when a list or a watch fails.
	Failed func(ctx context.Context, resource string, err error)
	Clock  clock.WithTicker
	Log    logr.Logger
}

// Watcher runs an informer for each kind that is listed and served.
type Watcher struct {
	Options
	ask    chan struct{} // signals that the rules have changed
	wanted *lookups

	changing sync.Mutex // held while informers are started and stopped
	mu       sync.Mutex
	enabled  map[string]*ownerapi.API // by kind
	looping  bool
	feeds    map[string]*feed // by kind; written with changing held too
}

// feed is the informer of one kind.
type feed struct {
	api      *ownerapi.API
	resource schema.GroupVersionResource
	informer toolscache.SharedIndexInformer
	synced   toolscache.DoneChecker
	failed   chan struct{} // closed when a list or a watch fails
	stop     context.CancelFunc
	stopped  chan struct{}
}

// New returns a watcher without rules.
func New(o Options) *Watcher {
	o.Log = o.Log.WithName("owners")
	w := &Watcher{Options: o, ask: make(chan struct{}, 1), enabled: map[string]*ownerapi.API{}, feeds: map[string]*feed{}}
	w.wanted = newLookups(w)
	return w
}

// Enable adds rules, and returns when the objects are known of the kinds that are served. It does not wait for kinds that are
// not served or that cannot be read: their pods wait. The informers stop with ctx.
func (w *Watcher) Enable(ctx context.Context, rules *ownerapi.Rules) {
	if rules == nil {
		return
	}
	w.mu.Lock()
	for _, a := range rules.APIs() {
		w.enabled[a.Kind] = a
	}
	w.mu.Unlock()
	w.discover(ctx)
	w.mu.Lock()
	started := slices.Collect(maps.Values(w.feeds))
	if !w.looping {
		w.looping = true
		go w.loop(ctx)
		go w.wanted.run(ctx)
	}
	w.mu.Unlock()
	for _, f := range started {
		select {
		case <-f.synced.Done():
		case <-f.failed:
		case <-f.stopped:
		case <-ctx.Done():
		}
	}
}

// Keep drops all rules but these. It returns at once.
func (w *Watcher) Keep(rules *ownerapi.Rules) {
	w.mu.Lock()
	clear(w.enabled)
	for _, a := range rules.APIs() {
		w.enabled[a.Kind] = a
	}
	w.mu.Unlock()
	w.askNow()
}

// Resolve sets the objects that pods name and that are not known, in place of those of the last call.
func (w *Watcher) Resolve(refs []api.OwnerRef) { w.wanted.set(refs) }

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

// discover asks which kinds are served, and starts and stops informers. If the API server does not answer, everything stays
// as it is.
func (w *Watcher) discover(ctx context.Context) {
	w.changing.Lock()
	defer w.changing.Unlock()
	w.mu.Lock()
	enabled := maps.Clone(w.enabled)
	running := slices.Sorted(maps.Keys(w.feeds))
	w.mu.Unlock()
	for _, kind := range running {
		if enabled[kind] == nil {
			w.remove(kind)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(enabled)) {
		a, f := enabled[kind], w.feeds[kind]
		served, known := w.served(a)
		switch {
		case !known: // stays as it is
		case served == schema.GroupVersionResource{}:
			w.remove(kind)
		case f == nil || f.resource != served || f.api.Name != a.Name:
			w.remove(kind)
			w.start(ctx, &feed{api: a, resource: served})
		}
	}
}

// served returns the version of a kind that is served and that can be read; the zero value if there is none. It is false if
// that is not known.
func (w *Watcher) served(a *ownerapi.API) (schema.GroupVersionResource, bool) {
	for _, version := range a.Resources {
		list, err := w.Discovery.ServerResourcesForGroupVersion(version.GroupVersion().String())
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			w.Log.V(2).Info("Discovery failed", "kind", a.Kind, "err", err)
			return schema.GroupVersionResource{}, false
		}
		for i := range list.APIResources {
			if list.APIResources[i].Name == version.Resource {
				return version, true
			}
		}
	}
	return schema.GroupVersionResource{}, true
}

// start starts the informer of a kind. The caller holds changing.
func (w *Watcher) start(ctx context.Context, f *feed) {
	f.failed, f.stopped = make(chan struct{}), make(chan struct{})
	f.informer = dynamicinformer.NewFilteredDynamicInformer(w.Dynamic, f.resource, metav1.NamespaceAll, 0, toolscache.Indexers{}, nil).Informer()
	log := w.Log.WithValues("kind", f.api.Kind, "apiVersion", f.resource.GroupVersion())
	if err := w.prepare(f); err != nil {
		log.Error(err, "Watch of owners not started")
		return
	}
	var running context.Context
	running, f.stop = context.WithCancel(ctx)
	go func() {
		defer close(f.stopped)
		f.informer.RunWithContext(running)
	}()
	w.mu.Lock()
	w.feeds[f.api.Kind] = f
	w.mu.Unlock()
	log.Info("Watch of owners started")
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
	resource := f.resource.GroupResource().String()
	err = f.informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, _ *toolscache.Reflector, err error) {
		once.Do(func() { close(f.failed) })
		if apierrors.IsNotFound(err) { // the kind is gone
			w.askNow()
			return
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

// remove stops the informer of a kind, and deletes its objects. The caller holds changing.
func (w *Watcher) remove(kind string) {
	f := w.feeds[kind]
	if f == nil {
		return
	}
	w.mu.Lock()
	delete(w.feeds, kind)
	w.mu.Unlock()
	f.stop()
	<-f.stopped
	for _, obj := range f.informer.GetStore().List() {
		w.Handler.OnDelete(obj)
	}
	w.Log.Info("Watch of owners stopped", "kind", kind)
}

// find returns the rule about a kind, nil if there is none, and its informer, nil if it is not known to be served.
func (w *Watcher) find(kind string) (*ownerapi.API, *feed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.enabled[kind], w.feeds[kind]
}
