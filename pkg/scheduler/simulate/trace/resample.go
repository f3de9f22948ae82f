// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Resample returns a trace like this one. It shifts the jobs by a random number of whole weeks, or of days if the trace has
// less than two weeks, and what moves beyond its end moves to its beginning; and it draws as many users as there are, with
// replacement, each with all its jobs. A job without a user is drawn on its own. What a
// record has besides jobs stays, but no job runs at its beginning. Equal seeds give equal traces.
func (t *Trace) Resample(seed uint64) *Trace {
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:forbidigo // the seed decides
	length, by := t.period()
	if by > 0 {
		by *= time.Duration(random.Int64N(int64(length / by))) //nolint:forbidigo // the seed decides
	}
	users := map[string][]int{}
	var names []string
	for i := range t.Jobs {
		user := "user " + t.Jobs[i].User
		if t.Jobs[i].User == "" {
			user = "job " + t.Jobs[i].ID
		}
		if users[user] == nil {
			names = append(names, user)
		}
		users[user] = append(users[user], i)
	}
	cancels := map[string][]time.Duration{}
	for _, c := range t.Cancels {
		cancels[c.Job] = append(cancels[c.Job], c.At)
	}
	drawn := make([]int, len(names))
	for range names {
		drawn[random.IntN(len(names))]++ //nolint:forbidigo // the seed decides
	}
	result := &Trace{Nodes: t.Nodes, Record: t.Record, Notes: t.Notes}
	for n, name := range names {
		for copied := range drawn[n] {
			for _, i := range users[name] {
				job := t.Jobs[i]
				job.Age, job.Nodes = 0, nil
				if copied > 0 {
					job.ID = fmt.Sprintf("%s.%d", job.ID, copied+1)
				}
				job.Submit = job.Submit + by
				if length > 0 {
					job.Submit %= length
				}
				for _, at := range cancels[t.Jobs[i].ID] {
					result.Cancels = append(result.Cancels, Cancel{At: max(0, job.Submit+at-t.Jobs[i].Submit), Job: job.ID})
				}
				result.Jobs = append(result.Jobs, job)
			}
		}
	}
	slices.SortStableFunc(result.Jobs, func(a, b Job) int { return cmp.Or(cmp.Compare(a.Submit, b.Submit), cmp.Compare(a.ID, b.ID)) })
	slices.SortStableFunc(result.Cancels, func(a, b Cancel) int { return cmp.Compare(a.At, b.At) })
	return result
}

// period returns the length of the trace in whole units of a week or a day, and the unit; both are 0 if the trace is shorter
// than two days.
func (t *Trace) period() (length, unit time.Duration) {
	const day = 24 * time.Hour
	last := t.Jobs[len(t.Jobs)-1].Submit
	for _, unit := range []time.Duration{7 * day, day} {
		if last >= unit {
			return (last/unit + 1) * unit, unit
		}
	}
	return 0, 0
}
