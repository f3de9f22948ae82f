// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// refusalCounters keeps the counter of each pair of labels: each cycle counts, and must not allocate for it.
type refusalCounters struct {
	vec   *prometheus.CounterVec
	mu    *sync.Mutex
	known map[[2]string]prometheus.Counter // by plugin and reason
}

func newRefusalCounters(vec *prometheus.CounterVec) refusalCounters {
	return refusalCounters{vec: vec, mu: &sync.Mutex{}, known: map[[2]string]prometheus.Counter{}}
}

func (c *refusalCounters) of(plugin, reason string) prometheus.Counter {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := [2]string{plugin, reason}
	counter := c.known[key]
	if counter == nil {
		counter = c.vec.WithLabelValues(plugin, reason)
		c.known[key] = counter
	}
	return counter
}
