// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// listen registers a handler with every informer. Kinds of the model get a handler of their own;
// objects that only plugins read cause an externalChange.
func (c *Cache) listen() error {
	core := c.options.Informers.Core().V1()
	storage := c.options.Informers.Storage().V1()
	resources := c.options.Informers.Resource().V1()
	groups := c.groupInformers.Scheduling().V1alpha1()
	return errors.Join(
		listenTo(c, "pods", core.Pods().Informer(), podKind(c.options.SchedulerNames)),
		c.attach("nodes", core.Nodes().Informer(), c.devices.nodesAfter(handler(c, nodeKind()))),
		listenTo(c, "namespaces", core.Namespaces().Informer(), namespaceKind()),
		listenTo(c, "priorityclasses", c.options.Informers.Scheduling().V1().PriorityClasses().Informer(), priorityClassKind()),
		listenTo(c, "podgroups", groups.PodGroups().Informer(), podGroupKind()),
		listenTo(c, "queues", groups.Queues().Informer(), queueKind()),
		listenTo(c, "poddisruptionbudgets", c.options.Informers.Policy().V1().PodDisruptionBudgets().Informer(), budgetKind()),
		c.attach("persistentvolumes", core.PersistentVolumes().Informer(), c.externalHandler()),
		c.attach("persistentvolumeclaims", core.PersistentVolumeClaims().Informer(), c.externalHandler()),
		c.attach("storageclasses", storage.StorageClasses().Informer(), c.externalHandler()),
		c.attach("csinodes", storage.CSINodes().Informer(), c.externalHandler()),
		c.attach("csidrivers", storage.CSIDrivers().Informer(), c.externalHandler()),
		c.attach("csistoragecapacities", storage.CSIStorageCapacities().Informer(), c.externalHandler()),
		c.attach("volumeattachments", storage.VolumeAttachments().Informer(), c.externalHandler()),
		c.attach("deviceclasses", resources.DeviceClasses().Informer(), c.devices.classesAfter(c.externalHandler())),
		c.attach("resourceclaims", resources.ResourceClaims().Informer(), c.devices.claimsAfter(c.externalHandler())),
		c.attach("resourceslices", resources.ResourceSlices().Informer(), c.devices.slicesAfter(c.externalHandler())),
	)
}

func listenTo[T object](c *Cache, resource string, informer toolscache.SharedIndexInformer, k *kind[T]) error {
	return c.attach(resource, informer, handler(c, k))
}

// attach prepares an informer and registers a handler with it.
func (c *Cache) attach(resource string, informer toolscache.SharedIndexInformer, handler toolscache.ResourceEventHandler) error {
	s := &source{
		name: resource, custom: resource == "podgroups" || resource == "queues",
		log: c.log.WithValues("resource", resource), failures: c.failures, metrics: c.options.Metrics,
	}
	s.metrics.WatchFailed(resource, 0)
	if err := informer.SetTransform(c.trimmer.trim); err != nil {
		return fmt.Errorf("informer of %s: %w; create the cache before the informers are started", resource, err)
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

// handler turns what an informer of a kind shows into events. It ignores updates that change
// nothing, as resyncs cause them. An object that was deleted and created again between two looks
// becomes two events.
func handler[T object](c *Cache, k *kind[T]) toolscache.ResourceEventHandler {
	var none T
	show := func(before, after T) {
		e := objectEvent[T]{kind: k, obj: after}
		if after == none {
			e.obj, e.deleted = before, true
		}
		if log := c.log.V(6); log.Enabled() {
			log.Info("Event received", "kind", k.name, "object", klog.KObj(e.obj), "added", before == none, "deleted", e.deleted)
		}
		c.queue.add(e)
		if k.observe != nil {
			k.observe(c, e.obj, e.deleted)
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
			case before.GetUID() != after.GetUID():
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

// unchanged reports whether both are the same version of the same object.
func unchanged(before, after metav1.Object) bool {
	return before.GetResourceVersion() != "" && before.GetResourceVersion() == after.GetResourceVersion() &&
		before.GetUID() == after.GetUID()
}

// assert returns an object of an informer with its type. If the informer has missed a deletion, obj is
// a tombstone with the last known state.
func assert[T object](c *Cache, kind string, obj any) (T, bool) {
	if tombstone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	typed, ok := obj.(T)
	var none T
	if !ok || typed == none {
		c.log.Error(nil, "Unexpected object type", "expected", kind, "type", fmt.Sprintf("%T", obj))
		return none, false
	}
	return typed, true
}

// NotifyExternalChange causes a session because of a change of an object that only plugins read. It may be called from any
// goroutine.
func (c *Cache) NotifyExternalChange() {
	c.queue.add(externalChange{})
	c.wakeUp()
}

// externalHandler returns a handler for objects that only plugins read.
func (c *Cache) externalHandler() toolscache.ResourceEventHandler {
	notify := c.NotifyExternalChange
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { notify() },
		UpdateFunc: func(old, obj any) {
			before, err := meta.Accessor(old)
			after, also := meta.Accessor(obj)
			if err == nil && also == nil && !unchanged(before, after) {
				notify()
			}
		},
		DeleteFunc: func(any) { notify() },
	}
}

// Start starts the informers, also those that plugins have requested from the shared factory, and
// returns when all have synced. If ctx ends before, the error names those that have not, and why.
// The informers stop with ctx. Start may be called again to start informers that were requested
// later.
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
	if !c.synced.Load() {
		if err := c.topologies.start(ctx); err != nil {
			return fmt.Errorf("topologies: %w", err)
		}
		c.EnableGroupSources(ctx, c.options.GroupSources)
		c.EnableGrouping(ctx, c.options.Grouping)
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
		if err := s.lastError(); err != "" {
			missing = append(missing, s.name+" ("+err+")")
		} else {
			missing = append(missing, s.name)
		}
	}
	return fmt.Errorf("not synced with the API server: %s: %w", strings.Join(missing, ", "), context.Cause(ctx))
}
