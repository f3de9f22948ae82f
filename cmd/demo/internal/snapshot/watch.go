// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/client/clientset/versioned"
	"github.com/batch-scheduler/batch-scheduler/pkg/client/informers/externalversions"
)

// Watcher follows a cluster.
type Watcher struct {
	schedulerName, defaultQueue string

	nodes, pods, jobs, deployments, groups, queues cache.SharedIndexInformer

	core    informers.SharedInformerFactory
	own     externalversions.SharedInformerFactory
	changed chan struct{}
}

// Watch starts to follow a cluster and returns when it has seen all there is. It ends with the
// context; call Close after that.
func Watch(ctx context.Context, config *rest.Config, schedulerName, defaultQueue string) (*Watcher, error) {
	coreClient, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("creating a client: %w", err)
	}
	ownClient, err := versioned.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("creating a client: %w", err)
	}
	core := informers.NewSharedInformerFactory(coreClient, 0)
	own := externalversions.NewSharedInformerFactory(ownClient, 0)
	w := &Watcher{
		schedulerName: schedulerName,
		defaultQueue:  defaultQueue,
		nodes:         core.Core().V1().Nodes().Informer(),
		pods:          core.Core().V1().Pods().Informer(),
		jobs:          core.Batch().V1().Jobs().Informer(),
		deployments:   core.Apps().V1().Deployments().Informer(),
		groups:        own.Scheduling().V1alpha1().PodGroups().Informer(),
		queues:        own.Scheduling().V1alpha1().Queues().Informer(),
		core:          core,
		own:           own,
		changed:       make(chan struct{}, 1),
	}
	if err := w.start(ctx); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

func (w *Watcher) start(ctx context.Context) error {
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { w.notify() },
		UpdateFunc: func(any, any) { w.notify() },
		DeleteFunc: func(any) { w.notify() },
	}
	all := []cache.SharedIndexInformer{w.nodes, w.pods, w.jobs, w.deployments, w.groups, w.queues}
	var synced []cache.InformerSynced
	for _, informer := range all {
		registration, err := informer.AddEventHandler(handler)
		if err != nil {
			return fmt.Errorf("watching the cluster: %w", err)
		}
		synced = append(synced, registration.HasSynced)
	}
	w.core.Start(ctx.Done())
	w.own.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return fmt.Errorf("watching the cluster: %w", context.Cause(ctx))
	}
	return nil
}

func (w *Watcher) notify() {
	select {
	case w.changed <- struct{}{}:
	default: // a notification is pending already
	}
}

// Changed receives a value after something has changed; several changes may make one value.
func (w *Watcher) Changed() <-chan struct{} { return w.changed }

// Close waits until nothing is left that Watch started. The context must have ended.
func (w *Watcher) Close() {
	w.core.Shutdown()
	w.own.Shutdown()
}

// Snapshot returns the cluster as it was last seen.
func (w *Watcher) Snapshot() Snapshot {
	return Of(Objects{
		Nodes:       list[*corev1.Node](w.nodes),
		Pods:        list[*corev1.Pod](w.pods),
		Jobs:        list[*batchv1.Job](w.jobs),
		Deployments: list[*appsv1.Deployment](w.deployments),
		Groups:      list[*v1alpha1.PodGroup](w.groups),
		Queues:      list[*v1alpha1.Queue](w.queues),
	}, w.schedulerName, w.defaultQueue)
}

func list[T any](informer cache.SharedIndexInformer) []T {
	var objects []T
	for _, object := range informer.GetStore().List() {
		objects = append(objects, object.(T))
	}
	return objects
}
