// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"slices"
	"time"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// shares adds up over time what queues hold, what they deserve, and how much less than that they hold.
type shares struct {
	recorder *recorder
	dims     []int     // of the model, by Record.Resources
	units    []float64 // of the model in one unit of the resource, by Record.Resources
	queues   []*queueShares
	scratch  []float64 // of sample
}

// queueShares are those of one queue. Sums are of the main resource, in units times seconds.
type queueShares struct {
	name                 string
	jobs                 map[State]int
	changed              bool
	held, deserved, owed float64 // now
	heldFor, deservedFor float64
	owedFor              float64
	since                time.Duration
	lastHeld             []float64 // of the last sample
}

func newShares(c *recorder, dims *api.Dimensions) *shares {
	s := &shares{recorder: c}
	for _, name := range c.Resources {
		d := dims.Index(name)
		unit := api.Quantity(d, 1)
		s.dims, s.units = append(s.dims, d), append(s.units, unit.AsApproximateFloat64())
	}
	return s
}

// of returns the shares of a queue.
func (s *shares) of(name string) *queueShares {
	i, there := slices.BinarySearchFunc(s.queues, name, func(q *queueShares, name string) int { return cmp.Compare(q.name, name) })
	if !there {
		s.queues = slices.Insert(s.queues, i, &queueShares{name: name, jobs: map[State]int{}, changed: true})
	}
	return s.queues[i]
}

// moved records that a job of a queue has changed its state.
func (s *shares) moved(j *job, from, to State) {
	q := s.of(j.queue)
	q.jobs[from]--
	q.jobs[to]++
	q.changed = true
}

// advance adds the time since the last sample.
func (q *queueShares) advance(now time.Duration) {
	by := (now - q.since).Seconds()
	q.heldFor += by * q.held
	q.deservedFor += by * q.deserved
	q.owedFor += by * q.owed
	q.since = now
}

// sample reads the queues after a session.
func (s *shares) sample(r *replay, now time.Duration) {
	for _, info := range r.cluster.SortedQueues() {
		q := s.of(string(info.ID))
		q.advance(now)
		deserved := r.last.Deserved(info)
		if main := s.recorder.Main; main >= 0 {
			q.held, q.deserved = s.amount(main, info.Allocated), s.parts(main, deserved)
			q.owed = max(0, min(q.deserved, q.held+s.amount(main, info.Requested))-q.held)
		}
		s.scratch = s.appendAmounts(s.scratch[:0], info.Allocated)
		if !q.changed && slices.Equal(s.scratch, q.lastHeld) {
			continue
		}
		held := slices.Clone(s.scratch)
		q.changed, q.lastHeld = false, held
		sample := QueueSample{At: now, Queue: q.name, Held: held, Requested: s.appendAmounts(nil, info.Requested), Pending: q.jobs[Pending], Running: q.jobs[Running]}
		for i := range s.dims {
			sample.Deserved = append(sample.Deserved, s.parts(i, deserved))
			sample.Requested[i] += held[i]
		}
		s.recorder.Queues = append(s.recorder.Queues, sample)
	}
	for _, q := range s.queues {
		if q.since < now {
			s.gone(q, now)
		}
	}
}

// gone reads a queue that does not exist, or not any more: its jobs are then those of another queue.
func (s *shares) gone(q *queueShares, now time.Duration) {
	q.advance(now)
	q.held, q.deserved, q.owed = 0, 0, 0
	if q.lastHeld == nil {
		return
	}
	q.lastHeld, q.changed = nil, true
	none := make([]float64, len(s.dims))
	s.recorder.Queues = append(s.recorder.Queues, QueueSample{At: now, Queue: q.name, Held: none, Deserved: none, Requested: none})
}

func (s *shares) amount(i int, of api.Resource) float64 {
	return float64(of.At(s.dims[i])) * s.units[i]
}

// parts returns an amount that is counted in parts of a unit, as shares are.
func (s *shares) parts(i int, of api.Resource) float64 {
	return float64(of.At(s.dims[i])) / float64(api.Parts(s.dims[i])) * s.units[i]
}

func (s *shares) appendAmounts(list []float64, of api.Resource) []float64 {
	for i := range s.dims {
		list = append(list, s.amount(i, of))
	}
	return list
}

// summaries returns the measures of the queues that had jobs, by name.
func (s *shares) summaries(now time.Duration) []QueueSummary {
	list := []QueueSummary{}
	for _, q := range s.queues {
		if q.advance(now); len(q.jobs) == 0 {
			continue
		}
		hours := func(unitSeconds float64) float64 { return round(unitSeconds / time.Hour.Seconds()) }
		list = append(list, QueueSummary{Name: q.name, HeldHours: hours(q.heldFor), DeservedHours: hours(q.deservedFor), OwedHours: hours(q.owedFor)})
	}
	return list
}

// jain returns the fairness index of Jain, Chiu and Hawe (1984) over what queues held relative to what they deserved: 1 if
// all got the same part of it, 1/n if one of n queues got everything. Queues that never deserved anything do not count. It is
// 0 if there is no queue.
func jain(queues []QueueSummary) float64 {
	var n, sum, squares float64
	for _, q := range queues {
		if q.DeservedHours > 0 {
			x := q.HeldHours / q.DeservedHours
			n, sum, squares = n+1, sum+x, squares+x*x
		}
	}
	if squares == 0 {
		return 0
	}
	return round(sum * sum / (n * squares))
}
