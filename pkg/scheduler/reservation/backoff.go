// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package reservation

import (
	"time"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// A job whose evictions had no effect evicts again after a backoff, which doubles each time.
const (
	backoffBase  = time.Second
	backoffLimit = 64 * time.Second
)

// backoff is how long a job must not evict.
type backoff struct {
	length time.Duration
	until  time.Time
}

// backoffs are those of jobs whose last evictions had no effect.
type backoffs map[api.JobID]backoff

// failed records that the evictions of a job had no effect.
func (b backoffs) failed(id api.JobID, now time.Time) {
	length := min(max(2*b[id].length, backoffBase), backoffLimit)
	b[id] = backoff{length, now.Add(length)}
}

// succeeded ends the backoff of a job.
func (b backoffs) succeeded(id api.JobID) { delete(b, id) }

// until returns when a job may evict again; zero if it may now.
func (b backoffs) until(id api.JobID, now time.Time) time.Time {
	if until := b[id].until; now.Before(until) {
		return until
	}
	return time.Time{}
}

// drop drops jobs that do not exist any more.
func (b backoffs) drop(c api.ClusterView) {
	for id := range b {
		if c.Jobs()[id] == nil {
			delete(b, id)
		}
	}
}
