// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"fmt"
	"math"
	"math/rand"
	"slices"
	"strconv"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/replay"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/trace"
)

// TestQueueingTheory is Q1 to Q3: jobs of one pod arrive at random on some servers (M/M/c). Each start is compared with
// that of the earliest free server. With -whole, so many jobs arrive that the means are those of Erlang's formula.
func TestQueueingTheory(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		servers              int
		load                 float64
		waitingPart, meanRun float64 // the part of jobs that wait, and the mean wait in mean run times
	}{
		{1, .8, .8, 4},
		{8, .8, .4576, .2860},
		{8, .9, .7015, .8769},
		{64, .95, .5880, .1838},
	} {
		t.Run(fmt.Sprintf("%d servers at %v", tc.servers, tc.load), func(t *testing.T) {
			t.Parallel()
			jobs := 2000
			if *whole {
				jobs = 200_000
			}
			const mean = 1000 * time.Second
			random := rand.New(rand.NewSource(1))
			tr := &trace.Trace{Jobs: make([]trace.Job, jobs)}
			one := v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")}
			at := time.Duration(0)
			for i := range tr.Jobs {
				at += time.Duration(random.ExpFloat64() * float64(mean) / tc.load / float64(tc.servers))
				run := time.Duration(random.ExpFloat64() * float64(mean))
				tr.Jobs[i] = trace.Job{ID: strconv.Itoa(i), Submit: at, Run: run, Min: 1, Replicas: 1, Request: one}
			}
			r, err := replay.Run(t.Context(), inputOf(t, tr, strconv.Itoa(tc.servers), ""), options())
			if err != nil {
				t.Fatal(err)
			}
			free, waiting := make([]time.Duration, tc.servers), 0
			for i, j := range tr.Jobs {
				first := slices.Index(free, slices.Min(free))
				start := max(j.Submit, free[first])
				free[first] = start + j.Run
				if r.Jobs[i].Start != start {
					t.Fatalf("job %d starts at %v, want %v", i, r.Jobs[i].Start, start)
				}
				if start > j.Submit {
					waiting++
				}
			}
			if !*whole {
				return
			}
			for name, c := range map[string]struct{ got, want float64 }{
				"the part of jobs that wait":         {float64(waiting) / float64(jobs), tc.waitingPart},
				"the mean wait, relative to the run": {r.Summary.Wait.Mean / mean.Seconds(), tc.meanRun},
			} {
				t.Logf("%s: %.4f, by Erlang's formula %.4f", name, c.got, c.want)
				if math.Abs(c.got/c.want-1) > .05 {
					t.Errorf("%s is %.4f, more than 5 %% from %.4f", name, c.got, c.want)
				}
			}
		})
	}
}
