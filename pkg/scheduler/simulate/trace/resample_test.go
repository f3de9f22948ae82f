// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package trace_test

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/trace"
)

func TestResample(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	tr := &trace.Trace{Cancels: []trace.Cancel{{At: 3*day + time.Hour, Job: "job-3"}}}
	for i := range 21 { // three weeks, a job per day, three users with different run times
		tr.Jobs = append(tr.Jobs, trace.Job{
			ID: fmt.Sprintf("job-%d", i), User: strconv.Itoa(i % 3), Submit: time.Duration(i) * day, Run: time.Duration(i%3+1) * time.Minute, Min: 1, Replicas: 1,
		})
	}
	text := func(seed uint64) string {
		var b bytes.Buffer
		if err := tr.Resample(seed).WriteJSONL(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	if diff := cmp.Diff(text(1), text(1)); diff != "" {
		t.Errorf("one seed gives two traces:\n%s", diff)
	}
	if text(1) == text(2) && text(2) == text(3) {
		t.Error("all seeds give the same trace")
	}
	weekday := func(j trace.Job) string { return fmt.Sprint(j.User, " ", j.Submit%(7*day)) }
	var known []string
	for _, j := range tr.Jobs {
		known = append(known, weekday(j))
	}
	for seed := range uint64(20) {
		got := tr.Resample(seed)
		names, copies := map[string]bool{}, map[string]int{}
		for i, j := range got.Jobs {
			if names[j.ID] {
				t.Fatalf("seed %d: two jobs %s", seed, j.ID)
			}
			names[j.ID] = true
			copies[j.User]++
			if !slices.Contains(known, weekday(j)) {
				t.Errorf("seed %d: job %s arrives at %v, another time of the week", seed, j.ID, j.Submit)
			}
			if i > 0 && j.Submit < got.Jobs[i-1].Submit {
				t.Errorf("seed %d: the jobs are not in the order of submission", seed)
			}
		}
		if len(got.Jobs) != 21 {
			t.Errorf("seed %d: %d jobs, want 21: three users, each with 7", seed, len(got.Jobs))
		}
		for user, n := range copies {
			if n%7 != 0 {
				t.Errorf("seed %d: user %s has %d jobs, want all 7 of each copy", seed, user, n)
			}
		}
		for _, c := range got.Cancels {
			i := slices.IndexFunc(got.Jobs, func(j trace.Job) bool { return j.ID == c.Job })
			if i < 0 || c.At-got.Jobs[i].Submit != time.Hour || !strings.HasPrefix(c.Job, "job-3") {
				t.Errorf("seed %d: %v does not cancel a copy of job-3 an hour after its submission", seed, c)
			}
		}
	}
}
