// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// eventQueue holds events from the handlers until the scheduling goroutine drains it.
//
// A scheduler that is not the leader never drains it, while its informers keep adding events. So
// the queue compacts itself: its length is bounded by the number of objects, not by what happens
// to them. Compaction keeps
//
//   - the last event of each object, for it makes the earlier ones superfluous;
//   - no event of an object that was added and deleted since the last drain, unless something was
//     drained before: then the model may know the object and needs the deletion;
//   - all events that are not about an object.
//
// The first compaction is at 16,384 events, the next at twice the length after the last one, so
// each event is copied a constant number of times on average.
type eventQueue struct {
	clock clock.PassiveClock

	mu      sync.Mutex
	list    []event
	since   time.Time // when the first of list was added
	limit   int       // length at which list is compacted next
	drained bool      // the model may know objects
}

// compactFrom is the least length at which the queue is compacted.
const compactFrom = 1 << 14

func (q *eventQueue) add(e event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.list) == 0 {
		q.since = q.clock.Now()
	}
	if len(q.list) >= max(q.limit, compactFrom) {
		q.compact()
	}
	q.list = append(q.list, e)
}

// drain empties the queue. It returns the events and when the first of them was added.
func (q *eventQueue) drain() ([]event, time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	list := q.list
	q.list, q.limit = nil, 0
	q.drained = q.drained || len(list) > 0
	return list, q.since
}

// compact drops superfluous events. The caller holds mu.
func (q *eventQueue) compact() {
	last := make(map[objectKey]int, len(q.list))
	for i, e := range q.list {
		if key, ok := e.key(); ok {
			last[key] = i
		}
	}
	kept := make([]event, 0, len(last))
	for i, e := range q.list {
		key, ok := e.key()
		if !ok || last[key] == i && (q.drained || !e.deletes()) {
			kept = append(kept, e)
		}
	}
	q.list, q.limit = kept, 2*len(kept)
}
