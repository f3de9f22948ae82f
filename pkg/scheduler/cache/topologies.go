// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/cache/internal/kindwatch"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

// topologyFeed shows the model the topologies, from the first job with a topology constraint on, or the first session
// with a plugin that reads them. Until then it requests nothing, so the custom resource need not be installed.
type topologyFeed struct {
	cache   *Cache
	watcher *kindwatch.Watcher // nil if there is no client
	needed  chan struct{}      // signals that the model needs the topologies
	// These belong to the scheduling goroutine.
	asked  bool
	unread bool // the model may lack topologies that exist
}

func newTopologyFeed(c *Cache) *topologyFeed {
	f := &topologyFeed{cache: c, needed: make(chan struct{}, 1), unread: c.options.Dynamic != nil}
	if c.options.Dynamic != nil {
		o := kindOptions(c, handler(c, topologyKind()), "")
		o.Log = o.Log.WithName("topologies")
		o.Unreadable = apierrors.IsForbidden
		f.watcher = kindwatch.New(o)
	}
	return f
}

// start watches the topologies and returns when they are known, if a group needs them. Otherwise it returns at once, and
// the watch begins after need was called.
func (f *topologyFeed) start(ctx context.Context) error {
	if f.watcher == nil {
		return nil
	}
	groups, err := f.cache.groupInformers.Scheduling().V1alpha1().PodGroups().Lister().List(labels.Everything())
	if err != nil {
		return err
	}
	if slices.ContainsFunc(groups, func(g *v1alpha1.PodGroup) bool { return g.Spec.TopologyConstraint != nil }) {
		f.enable(ctx)
		return nil
	}
	go func() {
		select {
		case <-ctx.Done():
		case <-f.needed:
			f.enable(ctx)
		}
	}()
	return nil
}

// enable watches the topologies, and tells the model when it has all of them.
func (f *topologyFeed) enable(ctx context.Context) {
	f.watcher.Enable(ctx, topologyKinds())
	f.cache.queue.add(topologiesRead{})
	f.cache.wakeUp()
}

// topologiesRead follows the events about all topologies that exist.
type topologiesRead struct{ notAboutObject }

func (topologiesRead) String() string { return "topologies read" }

func (topologiesRead) apply(c *Cache) {
	c.topologies.unread = false
	model.TopologiesOf(c.model).Complete()
}

// need starts the watch if a job in the model has a constraint, or a plugin has asked for a topology. Only the scheduling goroutine may call it.
func (f *topologyFeed) need() {
	if !f.asked && model.TopologiesOf(f.cache.model).Needed() {
		f.asked = true
		f.needed <- struct{}{}
	}
}

// Topology implements status.Topologies.
func (f *topologyFeed) Topology(name string) *v1alpha1.Topology {
	if f.watcher == nil {
		return nil
	}
	_, feed := f.watcher.Find(topologyKindName)
	if feed == nil {
		return nil
	}
	object, found := feed.Get("", name)
	topology, ok := object.(*v1alpha1.Topology)
	if !found || !ok {
		return nil
	}
	return topology
}

const topologyKindName = "Topology"

func topologyKinds() []*kindwatch.Kind {
	return []*kindwatch.Kind{{Name: topologyKindName, Versions: []kindwatch.Version{{
		Resource: v1alpha1.SchemeGroupVersion.WithResource("topologies"), Read: readTopology,
	}}}}
}

// readTopology returns a topology without what scheduling does not read. One that cannot be read has no levels.
func readTopology(u *unstructured.Unstructured) metav1.Object {
	t := &v1alpha1.Topology{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, t); err != nil {
		t = &v1alpha1.Topology{ObjectMeta: metav1.ObjectMeta{Name: u.GetName(), UID: u.GetUID(), ResourceVersion: u.GetResourceVersion()}}
	}
	t.ManagedFields, t.Annotations = nil, nil
	return t
}

func topologyKind() *kind[*v1alpha1.Topology] {
	return &kind[*v1alpha1.Topology]{
		name: "topology", rank: rankTopology,
		set:    func(c *Cache, t *v1alpha1.Topology) { model.TopologiesOf(c.model).Set(t) },
		remove: func(c *Cache, t *v1alpha1.Topology) { model.TopologiesOf(c.model).Delete(t.Name) },
		wakes: func(before, after *v1alpha1.Topology) bool {
			return before == nil || after == nil || !equality.Semantic.DeepEqual(before.Spec, after.Spec)
		},
		observe: func(c *Cache, t *v1alpha1.Topology, deleted bool) { c.statuses.ObserveTopology(t.UID, deleted) },
	}
}
