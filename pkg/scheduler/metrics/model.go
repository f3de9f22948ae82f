// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// Model is what one cycle found out about the cluster.
type Model struct {
	Nodes, Pods, Jobs int

	// Resources are the names of the dimensions of vectors; empty where queues do not share one.
	Resources []string
	Queues    []Queue

	Devices []*Devices // each of another resource
}

// Queue is what one cycle found out about one queue.
type Queue struct {
	Name   string
	Weight int64

	// Capability and Guarantee are those of the object; Deserved and Allocated are shares, and
	// Requested is what pending pods request.
	Capability, Guarantee, Deserved, Allocated, Requested api.Resource

	Groups v1alpha1.QueueGroups

	// Pending counts the pending jobs, by the reason of the PodGroupScheduled condition.
	Pending map[string]int
}

// modelCollector turns the model as published last into metrics. Queues and reasons that are gone
// leave no series behind, and a scrape never sees half of an update.
type modelCollector struct {
	latest atomic.Pointer[Model]

	// descriptors of the metrics
	objects, weight, capability, guarantee, deserved, allocated, requested, groups, pending *prometheus.Desc

	devices deviceDescs

	mu                sync.Mutex
	podGroupDuration  *prometheus.HistogramVec // by queue
	podGroupEvictions *prometheus.CounterVec   // by queue, cause and extent
	groupQueue        map[string]struct{}      // that both have series for
}

func newModelCollector(create *maker) *modelCollector {
	const unit = " (cores, bytes, or a count)."
	return &modelCollector{
		objects: create.desc("cache_objects", "Objects in the cache of the scheduler: nodes, pods of all schedulers, jobs (PodGroups, and pods without one by their owner), queues.",
			kindLabel()),
		weight:     create.desc("queue_weight", "Weight of a queue.", queueLabel()),
		capability: create.desc("queue_capability", "Upper limit of a queue; no series where the queue has no limit"+unit, queueLabel(), resourceLabel()),
		guarantee:  create.desc("queue_guarantee", "Guaranteed resources of a queue, which it can always reclaim; no series where nothing is guaranteed"+unit, queueLabel(), resourceLabel()),
		deserved:   create.desc("queue_deserved", "Deserved resources of a queue, from its weight and its requests; other queues may borrow what it does not use"+unit, queueLabel(), resourceLabel()),
		allocated:  create.desc("queue_allocated", "Resources that the pods of a queue hold"+unit, queueLabel(), resourceLabel()),
		requested:  create.desc("queue_requested", "Resources that the pending pods of a queue request"+unit, queueLabel(), resourceLabel()),
		groups:     create.desc("queue_podgroups", "PodGroups of a queue, by the phase of their status.", queueLabel(), phaseLabel()),
		pending:    create.desc("pending_podgroups", "Pending PodGroups, by the reason of their condition; pods of one owner without a PodGroup count as one.", queueLabel(), reasonLabel()),
		podGroupDuration: create.collected("podgroup_scheduling_duration_seconds",
			"Time from the creation of the last required pod of a PodGroup until all required pods are bound.", long(), queueLabel()),
		podGroupEvictions: create.counted("podgroup_evictions_total",
			"Evictions of PodGroups, by the queue of the PodGroup: of a gang, or only of surplus pods. Pods of a PodGroup that are evicted together count once.",
			queueLabel(), causeLabel(), extentLabel()),
		devices:    newDeviceDescs(create),
		groupQueue: map[string]struct{}{},
	}
}

// Publish replaces all that is reported about the model. The caller must not change it, or what it refers
// to, afterwards.
func (c *modelCollector) Publish(model *Model) {
	c.latest.Store(model)
}

// PodGroupScheduled records a PodGroup whose required pods are all bound, and the time since the last of them
// was created.
func (c *modelCollector) PodGroupScheduled(queue string, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.groupQueue[queue] = struct{}{}
	c.podGroupDuration.WithLabelValues(queue).Observe(took.Seconds())
}

// The values of the label extent.
const (
	extentGang    = "gang"
	extentSurplus = "surplus"
)

// PodGroupEvicted records that a PodGroup has lost its gang, or only surplus pods.
func (c *modelCollector) PodGroupEvicted(queue, cause string, gang bool) {
	extent := extentSurplus
	if gang {
		extent = extentGang
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.groupQueue[queue] = struct{}{}
	c.podGroupEvictions.WithLabelValues(queue, cause, extent).Inc()
}

// Describe implements prometheus.Collector.
func (c *modelCollector) Describe(descs chan<- *prometheus.Desc) {
	own := []*prometheus.Desc{c.objects, c.weight, c.capability, c.guarantee, c.deserved, c.allocated, c.requested, c.groups, c.pending}
	for _, d := range append(own, c.devices.all()...) {
		descs <- d
	}
	c.podGroupDuration.Describe(descs)
	c.podGroupEvictions.Describe(descs)
}

// Collect implements prometheus.Collector.
func (c *modelCollector) Collect(metrics chan<- prometheus.Metric) {
	model := c.latest.Load()
	if model == nil {
		return
	}
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	gauge(c.objects, float64(model.Nodes), "node")
	gauge(c.objects, float64(model.Pods), "pod")
	gauge(c.objects, float64(model.Jobs), "job")
	gauge(c.objects, float64(len(model.Queues)), "queue")
	for _, q := range model.Queues {
		gauge(c.weight, float64(q.Weight), q.Name)
		gauge(c.groups, float64(q.Groups.Pending), q.Name, string(v1alpha1.PodGroupPending))
		gauge(c.groups, float64(q.Groups.Running), q.Name, string(v1alpha1.PodGroupRunning))
		gauge(c.groups, float64(q.Groups.Unknown), q.Name, string(v1alpha1.PodGroupUnknown))
		gauge(c.groups, float64(q.Groups.Finished), q.Name, string(v1alpha1.PodGroupFinished))
		gauge(c.groups, float64(q.Groups.Failed), q.Name, string(v1alpha1.PodGroupFailed))
		for reason, jobs := range q.Pending {
			gauge(c.pending, float64(jobs), q.Name, reason)
		}
		for i, resource := range model.Resources {
			if resource == "" {
				continue
			}
			gauge(c.deserved, amount(i, q.Deserved.At(i)), q.Name, resource)
			gauge(c.allocated, amount(i, q.Allocated.At(i)), q.Name, resource)
			gauge(c.requested, amount(i, q.Requested.At(i)), q.Name, resource)
			if i < len(q.Capability) && q.Capability[i] != api.Unlimited {
				gauge(c.capability, amount(i, q.Capability[i]), q.Name, resource)
			}
			if guarantee := q.Guarantee.At(i); guarantee > 0 {
				gauge(c.guarantee, amount(i, guarantee), q.Name, resource)
			}
		}
	}
	for _, d := range model.Devices {
		c.devices.collect(d, gauge)
	}
	c.collectPodGroups(model, metrics)
}

// collectPodGroups forgets deleted queues, and begins with zero for new ones.
func (c *modelCollector) collectPodGroups(model *Model, metrics chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	exists := make(map[string]bool, len(model.Queues))
	for _, q := range model.Queues {
		exists[q.Name] = true
		c.groupQueue[q.Name] = struct{}{}
		c.podGroupDuration.WithLabelValues(q.Name)
		each([]Label{causeLabel(), extentLabel()}, func(values []string) {
			c.podGroupEvictions.WithLabelValues(q.Name, values[0], values[1])
		})
	}
	for queue := range c.groupQueue {
		if !exists[queue] {
			delete(c.groupQueue, queue)
			c.podGroupDuration.DeleteLabelValues(queue)
			c.podGroupEvictions.DeletePartialMatch(prometheus.Labels{queueLabel().Name: queue})
		}
	}
	c.podGroupDuration.Collect(metrics)
	c.podGroupEvictions.Collect(metrics)
}

// amount of a resource in its base unit.
func amount(dimension int, n int64) float64 {
	if dimension == api.CPU {
		return float64(n) / 1000
	}
	return float64(n)
}
