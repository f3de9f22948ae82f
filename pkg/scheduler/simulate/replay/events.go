// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"container/heap"
	"time"
)

// rank is the order of events of the same time.
type rank int8

const (
	nodeDown  rank = iota
	podGone        // the grace period of an evicted pod has passed
	podEnd         // of another scheduler
	podsReady      // the containers of a gang have started
	jobEnd
	nodeUp
	queueChanged
	podOfOthers // another scheduler has bound it
	submitted
	cancelled
)

// event is something that happens outside of the scheduler.
type event struct {
	at       time.Duration
	rank     rank
	sequence int // the order of events of the same time and rank
	apply    func()
}

// agenda holds the events that have not happened yet.
type agenda struct {
	queue    eventQueue
	sequence int
}

func (a *agenda) add(at time.Duration, r rank, apply func()) {
	a.sequence++
	heap.Push(&a.queue, event{at, r, a.sequence, apply})
}

// next returns the time of the next event, and whether there is one.
func (a *agenda) next() (time.Duration, bool) {
	if len(a.queue) == 0 {
		return 0, false
	}
	return a.queue[0].at, true
}

// pop removes and returns the next event.
func (a *agenda) pop() event { return heap.Pop(&a.queue).(event) }

// eventQueue implements heap.Interface.
type eventQueue []event

func (q eventQueue) Len() int      { return len(q) }
func (q eventQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

func (q eventQueue) Less(i, j int) bool {
	switch a, b := &q[i], &q[j]; {
	case a.at != b.at:
		return a.at < b.at
	case a.rank != b.rank:
		return a.rank < b.rank
	default:
		return a.sequence < b.sequence
	}
}

// Push implements heap.Interface.
func (q *eventQueue) Push(e any) { *q = append(*q, e.(event)) }

// Pop implements heap.Interface.
func (q *eventQueue) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	(*q)[last] = event{}
	*q = (*q)[:last]
	return e
}
