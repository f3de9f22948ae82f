// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package kindwatch watches kinds of objects that an API server need not serve.
//
// A Watcher asks the API server every minute which of the enabled kinds it serves. It starts an informer for each of them,
// and stops it when the kind is gone or not enabled any more, with all its objects. If no kind is enabled, it does nothing.
package kindwatch

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
)

// AskEvery is the time between two questions which kinds are served.
const AskEvery = time.Minute

// Kind is a kind of objects.
type Kind struct {
	Name string
	// Rule names how the objects are read. The informer starts again if it changes.
	Rule string
	// Versions are those of its API that can be read, preferred ones first.
	Versions []Version
}

// Version is one version of the API of a kind.
type Version struct {
	Resource schema.GroupVersionResource
	// Read converts an object to what the handler receives.
	Read func(*unstructured.Unstructured) metav1.Object
}

// Options are the parts of a Watcher; all are required.
type Options struct {
	Dynamic   dynamic.Interface
	Discovery discovery.ServerResourcesInterface
	// Handler receives what Version.Read returns.
	Handler toolscache.ResourceEventHandler
	// Failed is called with the name of the resource when a list or a watch fails.
	Failed func(ctx context.Context, resource string, err error)
	// Unreadable reports whether Enable does not wait for a kind whose list has failed with an error.
	Unreadable func(error) bool
	Clock      clock.WithTicker
	Log        logr.Logger
}

// Watcher runs an informer for each kind that is enabled and served.
type Watcher struct {
	Options
	ask chan struct{} // signals that the answer to the last question may be another one now

	changing sync.Mutex // held while informers are started and stopped
	mu       sync.Mutex
	enabled  map[string]*Kind // by name
	feeds    map[string]*Feed // by the name of the kind; written with changing held too
	looping  bool
}

// Feed is the informer of one kind.
type Feed struct {
	Version

	rule       string
	informer   toolscache.SharedIndexInformer
	synced     toolscache.DoneChecker
	unreadable chan struct{} // closed when a list fails for which Enable does not wait
	stop       context.CancelFunc
	stopped    chan struct{}
}

// Synced reports whether the handler has received all objects.
func (f *Feed) Synced() bool { return toolscache.IsDone(f.synced) }

// Get returns an object as Version.Read has converted it; false if it is not known.
func (f *Feed) Get(namespace, name string) (metav1.Object, bool) {
	obj, found, err := f.informer.GetStore().GetByKey(toolscache.NewObjectName(namespace, name).String())
	if err != nil || !found {
		return nil, false
	}
	object, ok := obj.(metav1.Object)
	return object, ok
}

// New returns a watcher without kinds.
func New(o Options) *Watcher {
	return &Watcher{Options: o, ask: make(chan struct{}, 1), enabled: map[string]*Kind{}, feeds: map[string]*Feed{}}
}

// Enable adds kinds, and returns when the objects are known of those that are served. It does not wait for kinds that are not
// served or that cannot be read. The informers stop with ctx.
func (w *Watcher) Enable(ctx context.Context, kinds []*Kind) {
	if len(kinds) == 0 {
		return
	}
	w.mu.Lock()
	w.add(kinds)
	w.mu.Unlock()
	w.discover(ctx)
	w.mu.Lock()
	started := slices.Collect(maps.Values(w.feeds))
	if !w.looping {
		w.looping = true
		go w.loop(ctx)
	}
	w.mu.Unlock()
	for _, f := range started {
		select {
		case <-f.synced.Done():
		case <-f.unreadable:
		case <-f.stopped:
		case <-ctx.Done():
		}
	}
}

// Keep drops all kinds but these. It returns at once.
func (w *Watcher) Keep(kinds []*Kind) {
	w.mu.Lock()
	clear(w.enabled)
	w.add(kinds)
	w.mu.Unlock()
	w.AskNow()
}

// add enables kinds. The caller holds mu.
func (w *Watcher) add(kinds []*Kind) {
	for _, k := range kinds {
		w.enabled[k.Name] = k
	}
}

// AskNow has the watcher ask at once which kinds are served.
func (w *Watcher) AskNow() {
	select {
	case w.ask <- struct{}{}:
	default:
	}
}

// Find returns a kind, nil if it is not enabled, and its informer, nil if it is not known to be served.
func (w *Watcher) Find(name string) (*Kind, *Feed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.enabled[name], w.feeds[name]
}

func (w *Watcher) loop(ctx context.Context) {
	ticker := w.Clock.NewTicker(AskEvery)
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
	for _, name := range running {
		if enabled[name] == nil {
			w.remove(name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(enabled)) {
		k, f := enabled[name], w.feeds[name]
		served, known := w.Served(k)
		switch {
		case !known: // stays as it is
		case served == nil:
			w.remove(name)
		case f == nil || f.Resource != served.Resource || f.rule != k.Rule:
			w.remove(name)
			w.start(ctx, k, served)
		}
	}
}

// Served asks which version of a kind is served that can be read, nil if there is none. It is false if that is not known.
func (w *Watcher) Served(k *Kind) (*Version, bool) {
	for i := range k.Versions {
		version := &k.Versions[i]
		list, err := w.Discovery.ServerResourcesForGroupVersion(version.Resource.GroupVersion().String())
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			w.Log.V(2).Info("Discovery failed", "kind", k.Name, "err", err)
			return nil, false
		}
		if slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == version.Resource.Resource }) {
			return version, true
		}
	}
	return nil, true
}

// start starts the informer of a kind. The caller holds changing.
func (w *Watcher) start(ctx context.Context, k *Kind, version *Version) {
	f := &Feed{Version: *version, rule: k.Rule, unreadable: make(chan struct{}), stopped: make(chan struct{})}
	f.informer = dynamicinformer.NewFilteredDynamicInformer(w.Dynamic, f.Resource, metav1.NamespaceAll, 0, toolscache.Indexers{}, nil).Informer()
	log := w.Log.WithValues("kind", k.Name, "apiVersion", f.Resource.GroupVersion())
	if err := w.prepare(f); err != nil {
		log.Error(err, "Watch not started")
		return
	}
	var running context.Context
	running, f.stop = context.WithCancel(ctx)
	go func() {
		defer close(f.stopped)
		f.informer.RunWithContext(running)
	}()
	w.mu.Lock()
	w.feeds[k.Name] = f
	w.mu.Unlock()
	log.Info("Watch started")
}

func (w *Watcher) prepare(f *Feed) error {
	err := f.informer.SetTransform(func(obj any) (any, error) {
		if u, ok := obj.(*unstructured.Unstructured); ok {
			return f.Read(u), nil
		}
		return obj, nil // converted before
	})
	if err != nil {
		return err
	}
	var once sync.Once
	resource := f.Resource.GroupResource().String()
	err = f.informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, _ *toolscache.Reflector, err error) {
		if w.Unreadable(err) {
			once.Do(func() { close(f.unreadable) })
		}
		if apierrors.IsNotFound(err) { // the kind is gone
			w.AskNow()
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
func (w *Watcher) remove(name string) {
	f := w.feeds[name]
	if f == nil {
		return
	}
	w.mu.Lock()
	delete(w.feeds, name)
	w.mu.Unlock()
	f.stop()
	<-f.stopped
	for _, obj := range f.informer.GetStore().List() {
		w.Handler.OnDelete(obj)
	}
	w.Log.Info("Watch stopped", "kind", name)
}
