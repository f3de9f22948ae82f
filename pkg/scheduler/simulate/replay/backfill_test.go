// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"fmt"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/replay"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/trace"
)

// Policies of reservations with exact times.
const (
	easy         = "starvationAfter: 0\nreservations: {depth: 1, margin: 0s}\n"
	conservative = "starvationAfter: 0\nreservations: {depth: -1, total: 1000, margin: 0s}\n"
	// strict is for jobs that do not declare run times: all that is free is reserved for the first one that does not fit.
	strict = "starvationAfter: 0\nreservations: {}\n"
)

// TestBackfillVectors are the vectors B-1 to B-5: jobs that run until some minute, and jobs that wait, with their nodes
// and minutes, and the minutes in which these start.
func TestBackfillVectors(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		nodes                    int
		running, waiting         [][2]int
		strict, easy, conserving []int
	}{
		"B-1": {10, [][2]int{{6, 10}, {2, 4}}, [][2]int{{8, 10}, {2, 8}, {2, 20}, {1, 4}, {2, 2}},
			[]int{10, 10, 18, 20, 20}, []int{10, 0, 4, 20, 8}, []int{10, 0, 4, 20, 8}},
		"B-2": {8, [][2]int{{4, 3}}, [][2]int{{6, 4}, {5, 3}, {3, 6}, {2, 2}, {4, 5}},
			[]int{3, 7, 7, 10, 12}, []int{3, 7, 7, 0, 10}, []int{3, 7, 7, 0, 10}},
		"B-3": {10, [][2]int{{5, 5}, {3, 12}}, [][2]int{{7, 10}, {6, 4}, {2, 30}, {1, 3}},
			[]int{5, 15, 15, 15}, []int{5, 15, 12, 0}, []int{5, 15, 12, 0}},
		"B-4": {4, [][2]int{{2, 2}}, [][2]int{{3, 1}, {4, 1}, {1, 4}},
			[]int{2, 3, 4}, []int{2, 4, 0}, []int{2, 3, 4}},
		"B-5": {4, [][2]int{{3, 3}}, [][2]int{{2, 1}, {2, 1}, {1, 4}},
			[]int{3, 3, 4}, []int{3, 4, 0}, []int{3, 3, 4}},
	} {
		for policy, want := range map[string][]int{strict: tc.strict, easy: tc.easy, conservative: tc.conserving} {
			t.Run(name+" "+policy, func(t *testing.T) {
				t.Parallel()
				tr := &trace.Trace{}
				for i, j := range append(append([][2]int{}, tc.running...), tc.waiting...) {
					tr.Jobs = append(tr.Jobs, unitJob(fmt.Sprintf("job-%d", i), 0, j[0], time.Duration(j[1])*time.Minute))
				}
				if policy == strict {
					undeclare(tr)
				}
				r, err := replay.Run(t.Context(), inputOf(t, tr, strconv.Itoa(tc.nodes), policy), options())
				if err != nil {
					t.Fatal(err)
				}
				var got []int
				for _, j := range r.Jobs[len(tc.running):] {
					got = append(got, int(j.Start/time.Minute))
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("starts (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// unitJob is a job of pods with one CPU that declares its run time exactly.
func unitJob(id string, submit time.Duration, size int, run time.Duration) trace.Job {
	return trace.Job{
		ID: id, Submit: submit, Run: run, Limit: run, Min: size, Replicas: size,
		Request: v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")},
	}
}

// undeclare removes the limits of jobs.
func undeclare(tr *trace.Trace) {
	for i := range tr.Jobs {
		tr.Jobs[i].Limit = 0
	}
}

// TestBackfillEqualsThatOfASimpleTwin compares the start of each job under strict order, EASY and conservative
// backfilling with simulations that have no code of the scheduler.
func TestBackfillEqualsThatOfASimpleTwin(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		policy string
		starts func([]trace.Job, int) []time.Duration
	}{
		"strict":       {strict, func(jobs []trace.Job, nodes int) []time.Duration { return backfilled(jobs, nodes, 0) }},
		"EASY":         {easy, func(jobs []trace.Job, nodes int) []time.Duration { return backfilled(jobs, nodes, 1) }},
		"conservative": {conservative, conserved},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				nodes := rapid.IntRange(1, 8).Draw(t, "nodes")
				tr := &trace.Trace{}
				at := time.Duration(0)
				for i := range rapid.IntRange(1, 30).Draw(t, "jobs") {
					at += time.Duration(rapid.IntRange(0, 20).Draw(t, "pause")) * time.Second
					size := rapid.IntRange(1, nodes).Draw(t, "size")
					run := time.Duration(rapid.IntRange(1, 60).Draw(t, "run")) * time.Second
					tr.Jobs = append(tr.Jobs, unitJob(fmt.Sprintf("job-%02d", i), at, size, run))
				}
				if tc.policy == strict {
					undeclare(tr)
				}
				r, err := replay.Run(t.Context(), inputOf(t, tr, strconv.Itoa(nodes), tc.policy), options())
				if err != nil {
					t.Fatal(err)
				}
				if diff := compareWithTwin(t, r, tc.starts(tr.Jobs, nodes)); diff != "" {
					t.Fatalf("starts (-twin +replay):\n%s", diff)
				}
			})
		})
	}
}

// backfilled starts jobs in the order of arrival; with EASY, depth 1, others that do not delay the first one that does not
// fit. It is the algorithm of Lifka, "The ANL/IBM SP scheduling system", JSSPP 1995.
func backfilled(jobs []trace.Job, nodes, depth int) []time.Duration {
	starts, started := make([]time.Duration, len(jobs)), make([]bool, len(jobs))
	for now := time.Duration(0); now < math.MaxInt64; {
		free := func(at time.Duration) int { // if nothing else starts
			n := nodes
			for i, j := range jobs {
				if started[i] && starts[i]+j.Run > at {
					n -= j.Min
				}
			}
			return n
		}
		first, shadow, extra := -1, time.Duration(0), 0
		for i, j := range jobs {
			switch {
			case started[i] || j.Submit > now:
			case first < 0 && j.Min <= free(now):
				started[i], starts[i] = true, now
			case first < 0:
				first, shadow = i, now
				for free(shadow) < j.Min {
					shadow = nextEnd(jobs, started, starts, shadow)
				}
				extra = free(shadow) - j.Min
			case depth > 0 && j.Min <= free(now) && (now+j.Run <= shadow || j.Min <= extra):
				started[i], starts[i] = true, now
				if now+j.Run > shadow {
					extra -= j.Min
				}
			}
		}
		next := nextEnd(jobs, started, starts, now)
		for i, j := range jobs {
			if !started[i] && j.Submit > now {
				next = min(next, j.Submit)
			}
		}
		now = next
	}
	return starts
}

// nextEnd returns the first end of a started job after a time.
func nextEnd(jobs []trace.Job, started []bool, starts []time.Duration, after time.Duration) time.Duration {
	next := time.Duration(math.MaxInt64)
	for i, j := range jobs {
		if end := starts[i] + j.Run; started[i] && end > after {
			next = min(next, end)
		}
	}
	return next
}

// conserved gives each job, when it arrives, the earliest start that delays no job before it. Run times are exact, so
// starts do not change any more.
func conserved(jobs []trace.Job, nodes int) []time.Duration {
	starts := make([]time.Duration, 0, len(jobs))
	for i, j := range jobs {
		at := j.Submit
		for !fits(jobs[:i], starts, nodes-j.Min, at, at+j.Run) {
			at += time.Second
		}
		starts = append(starts, at)
	}
	return starts
}

// fits reports whether jobs with these starts never need more than some nodes in a period. All times are in seconds.
func fits(jobs []trace.Job, starts []time.Duration, nodes int, from, until time.Duration) bool {
	for at := from; at < until; at += time.Second {
		used := 0
		for i, j := range jobs {
			if starts[i] <= at && at < starts[i]+j.Run {
				used += j.Min
			}
		}
		if used > nodes {
			return false
		}
	}
	return true
}
