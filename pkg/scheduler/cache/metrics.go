// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"time"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/cache/bind"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/cache/evict"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/metrics"
)

// Metrics receives measurements of the cache and of the packages below it; *metrics.Metrics is
// one. It is called from many goroutines at the same time and must return at once.
type Metrics interface {
	bind.Metrics
	evict.Metrics
	// EventsApplied is called when Apply has applied events; oldest is how long the first of them
	// was queued.
	EventsApplied(oldest time.Duration)
	// WatchFailed is called when a list or watch has failed, and with 0 times before the first.
	WatchFailed(resource string, times int)
	// PodsBoundByOthers is called when another client has bound a pod with a name of this scheduler, and with 0 pods before
	// the first.
	PodsBoundByOthers(schedulerName string, pods int)
}

// noMetrics is the default: it drops all measurements.
type noMetrics struct{}

func (noMetrics) EventsApplied(time.Duration)             {}
func (noMetrics) Eviction(string, metrics.EvictionResult) {}
func (noMetrics) PodGroupEvicted(string, string, bool)    {}
func (noMetrics) Bind(metrics.BindResult, time.Duration)  {}
func (noMetrics) PodBound(time.Duration)                  {}
func (noMetrics) PodGroupScheduled(string, time.Duration) {}
func (noMetrics) WatchFailed(string, int)                 {}
func (noMetrics) PodsBoundByOthers(string, int)           {}
