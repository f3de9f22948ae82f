// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// staticInformers returns informers that serve the objects and do not change by themselves. They need not be started. For other
// kinds they serve no objects.
func staticInformers(objects []Object) informers.SharedInformerFactory {
	byKind := map[reflect.Type][]Object{}
	for _, obj := range objects {
		byKind[reflect.TypeOf(obj)] = append(byKind[reflect.TypeOf(obj)], obj)
	}
	factory := informers.NewSharedInformerFactory(nil, 0)
	for _, k := range kinds() {
		list := byKind[reflect.TypeOf(k.example)]
		factory.InformerFor(runtime.Object(k.example), func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer {
			return newStaticInformer(list)
		})
	}
	return factory
}

// staticInformer is an informer whose objects are all present from the beginning. It is never run, and only one goroutine uses it.
type staticInformer struct {
	cache.SharedIndexInformer // nil: the methods not defined below are only for running informers
	objects                   []Object
	indexer                   cache.Indexer
	handlers                  []cache.ResourceEventHandler
	done                      chan struct{}
}

func newStaticInformer(objects []Object) *staticInformer {
	s := &staticInformer{
		objects: objects, done: make(chan struct{}),
		indexer: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}),
	}
	close(s.done)
	for _, obj := range objects {
		_ = s.indexer.Add(obj) // fails for objects without metadata
	}
	return s
}

// AddEventHandler calls the handler for all objects before it returns.
func (s *staticInformer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	for _, obj := range s.objects {
		handler.OnAdd(obj, true)
	}
	s.handlers = append(s.handlers, handler)
	return s, nil
}

// replace shows another version of an object. Handlers see a deletion and a new object, because the versions of objects
// in files cannot be compared.
func (s *staticInformer) replace(before, after Object) {
	_ = s.indexer.Update(after) // fails for objects without metadata
	for _, handler := range s.handlers {
		handler.OnDelete(before)
		handler.OnAdd(after, false)
	}
}

// AddEventHandlerWithResyncPeriod is AddEventHandler without resync.
func (s *staticInformer) AddEventHandlerWithResyncPeriod(handler cache.ResourceEventHandler, _ time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return s.AddEventHandler(handler)
}

// AddEventHandlerWithOptions is AddEventHandler.
func (s *staticInformer) AddEventHandlerWithOptions(handler cache.ResourceEventHandler, _ cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return s.AddEventHandler(handler)
}

// RemoveEventHandler does nothing.
func (s *staticInformer) RemoveEventHandler(cache.ResourceEventHandlerRegistration) error { return nil }

// AddIndexers implements cache.SharedIndexInformer.
func (s *staticInformer) AddIndexers(indexers cache.Indexers) error {
	return s.indexer.AddIndexers(indexers)
}

// GetIndexer implements cache.SharedIndexInformer.
func (s *staticInformer) GetIndexer() cache.Indexer { return s.indexer }

// GetStore implements cache.SharedInformer.
func (s *staticInformer) GetStore() cache.Store { return s.indexer }

// HasSynced is true from the beginning.
func (s *staticInformer) HasSynced() bool { return true }

// HasSyncedChecker is done from the beginning.
func (s *staticInformer) HasSyncedChecker() cache.DoneChecker { return s }

// Name implements cache.DoneChecker.
func (s *staticInformer) Name() string { return "objects of a simulation" }

// Done implements cache.DoneChecker.
func (s *staticInformer) Done() <-chan struct{} { return s.done }

// IsStopped implements cache.SharedInformer.
func (s *staticInformer) IsStopped() bool { return false }
