// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package status writes the status of PodGroups, Queues, Topologies and pending pods.
//
// A cycle publishes the desired status of objects; the watch delivers the observed one. Each resource has a
// writer that compares both and writes the difference; see writer for the order of its checks. A
// writer has workers of its own, so that thousands of pending pods do not delay the status of their
// PodGroup.
package status

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/utils/clock"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/client/clientset/versioned"
	batchlisters "github.com/batch-scheduler/batch-scheduler/pkg/client/listers/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// EventSink records events about PodGroups.
type EventSink interface {
	// NotScheduled is called after a PodGroup got a condition that says why it is not scheduled.
	NotScheduled(g *api.Group, reason, message string)
}

// Topologies are the Topologies that the scheduler reads.
type Topologies interface {
	// Topology returns the topology with a name, or nil.
	Topology(name string) *v1alpha1.Topology
}

// Options are the parts of Writers. All are required, except for Dynamic and OtherGroups if no other APIs are read.
type Options struct {
	Kube    kubernetes.Interface
	Batch   versioned.Interface
	Dynamic dynamic.Interface

	PodGroups   batchlisters.PodGroupLister
	OtherGroups OtherGroups
	Queues      batchlisters.QueueLister
	Topologies  Topologies
	Pods        corelisters.PodLister

	Events EventSink
	// Yield returns when no bind and no eviction is queued or being sent, or after the given time.
	Yield func(context.Context, time.Duration)
	Clock clock.WithTicker
	Log   logr.Logger
}

// Writers write the status of all resources. All methods but Run return at once and may be called
// from any goroutine.
type Writers struct {
	Options
	podGroups  *writer[api.PodGroupReport]
	others     *writer[api.PodGroupReport] // of other APIs
	queues     *writer[api.QueueReport]
	topologies *writer[api.TopologyReport]
	pods       *writer[api.PodReport]
	evicted    evictions
}

// New returns writers that write nothing before Run.
func New(o Options) *Writers {
	o.Log = o.Log.WithName("status")
	w := &Writers{Options: o, evicted: evictions{known: map[types.UID]*eviction{}}}
	w.podGroups = newWriter(o, &writer[api.PodGroupReport]{
		resource: "podgroups/status",
		equal:    equalValues[api.PodGroupReport], patch: w.podGroupPatch,
		reason: func(g api.PodGroupReport) string { return g.Reason },
	})
	w.others = newWriter(o, &writer[api.PodGroupReport]{
		resource: "podgroups of other APIs",
		equal:    equalValues[api.PodGroupReport], patch: (&otherGroups{o}).patch,
		reason: func(g api.PodGroupReport) string { return g.Reason },
	})
	w.queues = newWriter(o, &writer[api.QueueReport]{
		resource: "queues/status",
		equal:    equalQueueReports, patch: w.queuePatch,
		reason: func(api.QueueReport) string { return "" },
	})
	w.topologies = newWriter(o, &writer[api.TopologyReport]{
		resource: "topologies/status",
		equal:    equalTopologyReports, patch: w.topologyPatch,
		reason: func(api.TopologyReport) string { return "" },
	})
	w.pods = newWriter(o, &writer[api.PodReport]{
		resource: "pods/status",
		equal:    equalValues[api.PodReport], patch: w.podPatch,
		reason: func(p api.PodReport) string { return p.Reason },
	})
	return w
}

// newWriter completes w, which has the fields that differ between resources.
func newWriter[W any](o Options, w *writer[W]) *writer[W] {
	w.clock, w.debounce, w.yield = o.Clock, reasonDebounce, o.Yield
	w.log = o.Log.WithValues("resource", w.resource)
	w.objects = map[types.UID]*desired[W]{}
	return w
}

func equalValues[W comparable](a, b W) bool { return a == b }

func equalQueueReports(a, b api.QueueReport) bool { return equality.Semantic.DeepEqual(a, b) }

func equalTopologyReports(a, b api.TopologyReport) bool { return equality.Semantic.DeepEqual(a, b) }

// Publish sets the desired status of the objects in a report.
func (w *Writers) Publish(report *api.Report) {
	w.evicted.observe(report.PodGroups, w.Clock.Now())
	for _, g := range report.PodGroups {
		if g.Source == api.SourceOwn {
			w.podGroups.set(g.UID, g)
		} else {
			w.others.set(g.UID, g)
		}
	}
	for _, q := range report.Queues {
		w.queues.set(q.UID, q)
	}
	for _, t := range report.Topologies {
		w.topologies.set(t.UID, t)
	}
	for _, p := range report.Pods {
		w.pods.set(p.UID, p)
	}
}

// ObservePodGroup is called when the watch shows a PodGroup, or its deletion.
func (w *Writers) ObservePodGroup(uid types.UID, deleted bool) {
	if deleted {
		w.evicted.forget(uid)
	}
	w.podGroups.observe(uid, deleted)
}

// ObserveOtherGroup is called when the watch shows a PodGroup of another API, or its deletion.
func (w *Writers) ObserveOtherGroup(uid types.UID, deleted bool) { w.others.observe(uid, deleted) }

// ObserveQueue is called when the watch shows a Queue, or its deletion.
func (w *Writers) ObserveQueue(uid types.UID, deleted bool) { w.queues.observe(uid, deleted) }

// ObserveTopology is called when the watch shows a Topology, or its deletion.
func (w *Writers) ObserveTopology(uid types.UID, deleted bool) { w.topologies.observe(uid, deleted) }

// ObservePod is called when the watch shows a pod, or its deletion.
func (w *Writers) ObservePod(pod *v1.Pod, deleted bool) {
	w.pods.observe(pod.UID, deleted || !pending(pod))
}

// ForgetPod drops the desired status of a pod, which is about to be bound.
func (w *Writers) ForgetPod(uid types.UID) { w.pods.forget(uid) }

// Run writes until ctx is done.
func (w *Writers) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, run := range []func(context.Context){w.podGroups.run, w.others.run, w.queues.run, w.topologies.run, w.pods.run} {
		running.Go(func() { run(ctx) })
	}
	running.Wait()
}
