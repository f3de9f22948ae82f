package simulate

import (
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// still returns informers that show the objects and never change. They need not be started, and of other kinds they
// show nothing.
func still(objects []Object) informers.SharedInformerFactory {
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

// staticInformer is an informer of objects that are all there from the beginning. Nobody runs it.
type staticInformer struct {
	cache.SharedIndexInformer // nil: what is not below is only for those who run informers
	objects                   []Object
	indexer                   cache.Indexer
	done                      chan struct{}
}

func newStaticInformer(objects []Object) *staticInformer {
	s := &staticInformer{
		objects: objects, done: make(chan struct{}),
		indexer: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}),
	}
	close(s.done)
	for _, obj := range objects {
		_ = s.indexer.Add(obj) // fails for what has no metadata
	}
	return s
}

// AddEventHandler tells the handler of all objects before it returns.
func (s *staticInformer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	for _, obj := range s.objects {
		handler.OnAdd(obj, true)
	}
	return s, nil
}

// AddEventHandlerWithResyncPeriod is AddEventHandler: nothing is told twice.
func (s *staticInformer) AddEventHandlerWithResyncPeriod(handler cache.ResourceEventHandler, _ time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return s.AddEventHandler(handler)
}

// AddEventHandlerWithOptions is AddEventHandler.
func (s *staticInformer) AddEventHandlerWithOptions(handler cache.ResourceEventHandler, _ cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return s.AddEventHandler(handler)
}

// RemoveEventHandler has nothing to do.
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
