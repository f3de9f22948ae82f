package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
)

// source is one informer that the model is fed from.
type source struct {
	name    string // the resource, as kubectl names it
	custom  bool   // it comes with this scheduler
	log     logr.Logger
	metrics Metrics

	synced toolscache.DoneChecker // also every object has been handed to the handler

	mu      sync.Mutex
	trouble string // why the last list or watch failed, and what to do; empty if none did
}

// listen registers handlers with all informers.
func (c *Cache) listen() error {
	core := c.options.Informers.Core().V1()
	storage := c.options.Informers.Storage().V1()
	resources := c.options.Informers.Resource().V1()
	groups := c.groupInformers.Scheduling().V1alpha1()
	return errors.Join(
		listenTo(c, "pods", core.Pods().Informer(), c.podKind()),
		listenTo(c, "nodes", core.Nodes().Informer(), nodeKind()),
		listenTo(c, "namespaces", core.Namespaces().Informer(), namespaceKind()),
		listenTo(c, "priorityclasses", c.options.Informers.Scheduling().V1().PriorityClasses().Informer(), priorityClassKind()),
		listenTo(c, "podgroups", groups.PodGroups().Informer(), podGroupKind()),
		listenTo(c, "queues", groups.Queues().Informer(), queueKind()),
		listenTo(c, "poddisruptionbudgets", c.options.Informers.Policy().V1().PodDisruptionBudgets().Informer(), budgetKind()),
		c.attach("persistentvolumes", core.PersistentVolumes().Informer(), c.bumper()),
		c.attach("persistentvolumeclaims", core.PersistentVolumeClaims().Informer(), c.bumper()),
		c.attach("storageclasses", storage.StorageClasses().Informer(), c.bumper()),
		c.attach("csinodes", storage.CSINodes().Informer(), c.bumper()),
		c.attach("csidrivers", storage.CSIDrivers().Informer(), c.bumper()),
		c.attach("csistoragecapacities", storage.CSIStorageCapacities().Informer(), c.bumper()),
		c.attach("volumeattachments", storage.VolumeAttachments().Informer(), c.bumper()),
		c.attach("deviceclasses", resources.DeviceClasses().Informer(), c.bumper()),
		c.attach("resourceclaims", resources.ResourceClaims().Informer(), c.bumper()),
		c.attach("resourceslices", resources.ResourceSlices().Informer(), c.bumper()),
	)
}

func listenTo[T object](c *Cache, resource string, informer toolscache.SharedIndexInformer, k *kind[T]) error {
	return c.attach(resource, informer, handler(c, k))
}

func (c *Cache) attach(resource string, informer toolscache.SharedIndexInformer, handler toolscache.ResourceEventHandler) error {
	s := &source{name: resource, log: c.log.WithValues("resource", resource), metrics: c.options.Metrics, custom: resource == "podgroups" || resource == "queues"}
	s.metrics.WatchFailed(resource, 0)
	if err := informer.SetTransform(c.trimmer.trim); err != nil {
		return fmt.Errorf("informer of %s: %w; make the cache before the informers are started", resource, err)
	}
	if err := informer.SetWatchErrorHandlerWithContext(s.failed); err != nil {
		return fmt.Errorf("informer of %s: %w", resource, err)
	}
	registration, err := informer.AddEventHandler(handler)
	if err != nil {
		return fmt.Errorf("informer of %s: %w", resource, err)
	}
	s.synced = registration.HasSyncedChecker()
	c.sources = append(c.sources, s)
	return nil
}

// handler turns what an informer of a kind shows into changes.
func handler[T object](c *Cache, k *kind[T]) toolscache.ResourceEventHandler {
	var none T
	show := func(before, after T) {
		s := seen[T]{kind: k, obj: after}
		if after == none {
			s.obj, s.gone = before, true
		}
		if log := c.log.V(6); log.Enabled() {
			log.Info("Seen", "object", s.String(), "new", before == none, "gone", s.gone)
		}
		c.changes.add(s)
		if k.noticed != nil {
			k.noticed(c, s.obj, s.gone)
		}
		if k.wakes(before, after) {
			c.wakeUp()
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if after, ok := assert[T](c, k.name, obj); ok {
				show(none, after)
			}
		},
		UpdateFunc: func(old, obj any) {
			before, ok := assert[T](c, k.name, old)
			after, also := assert[T](c, k.name, obj)
			switch {
			case !ok || !also || unchanged(before, after):
			case before.GetUID() != after.GetUID(): // deleted and made again between two looks
				show(before, none)
				show(none, after)
			default:
				show(before, after)
			}
		},
		DeleteFunc: func(obj any) {
			if before, ok := assert[T](c, k.name, obj); ok {
				show(before, none)
			}
		},
	}
}

// unchanged tells whether an update is a mere repetition.
func unchanged(before, after metav1.Object) bool {
	return before.GetResourceVersion() != "" && before.GetResourceVersion() == after.GetResourceVersion() &&
		before.GetUID() == after.GetUID()
}

// assert is the one place where objects get their type. What an informer has missed the end of
// comes as a tombstone with its last known state.
func assert[T object](c *Cache, kind string, obj any) (T, bool) {
	if tombstone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	typed, ok := obj.(T)
	var none T
	if !ok || typed == none {
		c.log.Error(nil, "Dropped an object of an unexpected type", "expected", kind, "type", fmt.Sprintf("%T", obj))
		return none, false
	}
	return typed, true
}

// bumper handles what only plugins read.
func (c *Cache) bumper() toolscache.ResourceEventHandler {
	bump := func() {
		c.changes.add(bumped{})
		c.wakeUp()
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { bump() },
		UpdateFunc: func(old, obj any) {
			before, err := meta.Accessor(old)
			after, also := meta.Accessor(obj)
			if err == nil && also == nil && !unchanged(before, after) {
				bump()
			}
		},
		DeleteFunc: func(any) { bump() },
	}
}

// Start starts the informers, also those that plugins have asked the shared factory for, and
// returns when all of them have synced. If ctx ends before, the error names those that have not,
// and why. The informers end with ctx. It may be called again to start informers that were
// asked for later.
func (c *Cache) Start(ctx context.Context) error {
	c.options.Informers.StartWithContext(ctx)
	c.groupInformers.StartWithContext(ctx)
	checkers := make([]toolscache.DoneChecker, len(c.sources))
	for i, s := range c.sources {
		checkers[i] = s.synced
	}
	if !toolscache.WaitFor(ctx, "", checkers...) {
		return c.unsynced(ctx)
	}
	if err := c.options.Informers.WaitForCacheSyncWithContext(ctx).AsError(); err != nil {
		return fmt.Errorf("informers of plugins: %w", err)
	}
	c.synced.Store(true)
	c.wakeUp()
	return nil
}

func (c *Cache) unsynced(ctx context.Context) error {
	var missing []string
	for _, s := range c.sources {
		if toolscache.IsDone(s.synced) {
			continue
		}
		if trouble := s.lastTrouble(); trouble != "" {
			missing = append(missing, s.name+" ("+trouble+")")
		} else {
			missing = append(missing, s.name)
		}
	}
	return fmt.Errorf("not synced with the API server: %s: %w", strings.Join(missing, ", "), context.Cause(ctx))
}

// failed logs why a list or watch failed. The reflector tries again, at most every 30 s.
func (s *source) failed(_ context.Context, _ *toolscache.Reflector, err error) {
	switch {
	case apierrors.IsResourceExpired(err) || apierrors.IsGone(err):
		s.log.V(4).Info("Watch expired, listing again", "err", err)
		return
	case errors.Is(err, io.EOF):
		return
	case errors.Is(err, io.ErrUnexpectedEOF):
		s.log.V(1).Info("Watch ended unexpectedly, watching again", "err", err)
		return
	}
	s.metrics.WatchFailed(s.name, 1)
	advice := s.advice(err)
	s.mu.Lock()
	s.trouble = err.Error() + advice
	s.mu.Unlock()
	s.log.Error(err, "Cannot watch "+s.name+advice)
}

func (s *source) lastTrouble() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.trouble
}

// advice says what to do about an error, if anything is known to help.
func (s *source) advice(err error) string {
	switch {
	case apierrors.IsNotFound(err) && s.custom:
		return "; the custom resources are not installed: kubectl apply -k config/crd"
	case apierrors.IsForbidden(err):
		return "; the scheduler's ClusterRole does not allow it, or the API server has just been started and has not read it yet: kubectl apply -k config/default"
	case apierrors.IsUnauthorized(err):
		return "; the API server does not accept the credentials: check --kubeconfig or the service account"
	}
	return ""
}
