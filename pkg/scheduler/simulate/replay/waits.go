// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"slices"
	"strconv"
	"time"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// notTried is the reason of jobs that no action has tried to place.
const notTried = "NotTried"

// visitsPerSession is for how many waiting jobs a session pays on average when the reasons of waits are looked up. Up to so
// many are looked up after each session, more of them less often.
const visitsPerSession = 32

// reasons adds up why a job has waited.
type reasons struct {
	now   string        // the reason since the last visit
	since time.Duration // that visit
	list  []reasonTime
}

type reasonTime struct {
	reason string
	time   time.Duration
}

// until adds the time since the last visit.
func (r *reasons) until(at time.Duration) {
	if by := at - r.since; by > 0 && r.now != "" {
		i := slices.IndexFunc(r.list, func(t reasonTime) bool { return t.reason == r.now })
		if i < 0 {
			i = len(r.list)
			r.list = append(r.list, reasonTime{reason: r.now})
		}
		r.list[i].time += by
	}
	r.since = at
}

// longest returns the reason with the most time, and its part of all; empty if the job has not waited.
func (r *reasons) longest() (reason string, part float64) {
	var most reasonTime
	var all time.Duration
	for _, t := range r.list {
		all += t.time
		if t.time > most.time {
			most = t
		}
	}
	if all == 0 {
		return "", 0
	}
	return most.reason, round(most.time.Seconds() / all.Seconds())
}

// waits looks up why jobs wait for their first run.
type waits struct {
	fresh   []*job // that were submitted since the last sample
	waiting []*job
	pending int // sessions since the waiting jobs were visited
}

func (w *waits) add(j *job) { w.fresh = append(w.fresh, j) }

// sample looks up the reasons of new jobs, and those of all waiting jobs if enough sessions have passed.
func (w *waits) sample(r *replay, now time.Duration) {
	for _, j := range w.fresh {
		j.why.since = j.Submit
		if w.visit(r, j, now) {
			w.waiting = append(w.waiting, j)
		}
	}
	w.fresh = w.fresh[:0]
	if w.pending++; len(w.waiting) > visitsPerSession*w.pending {
		return
	}
	w.pending = 0
	w.waiting = slices.DeleteFunc(w.waiting, func(j *job) bool { return !w.visit(r, j, now) })
}

// visit looks up the reason of a job, and reports whether the job still waits.
func (w *waits) visit(r *replay, j *job, now time.Duration) bool {
	if j.runs > 0 || j.group == nil {
		return false
	}
	j.why.until(now)
	j.why.now = notTried
	if info := r.cluster.Jobs()[api.GroupJobID(namespace+"/"+j.group.Name)]; info != nil {
		if o := r.last.Outcome(info); o != nil && o.Job != nil {
			j.why.now = o.Job.Reason
		}
	}
	return true
}

// intervals words numbers as Batsim does: 0-3 7.
func intervals(numbers []int) string {
	slices.Sort(numbers)
	numbers = slices.Compact(numbers)
	var text []byte
	for i := 0; i < len(numbers); {
		last := i
		for last+1 < len(numbers) && numbers[last+1] == numbers[last]+1 {
			last++
		}
		if i > 0 {
			text = append(text, ' ')
		}
		text = strconv.AppendInt(text, int64(numbers[i]), 10)
		if last > i {
			text = strconv.AppendInt(append(text, '-'), int64(numbers[last]), 10)
		}
		i = last + 1
	}
	return string(text)
}
