// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"strconv"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/trace"
)

func TestLongestReason(t *testing.T) {
	t.Parallel()
	r := reasons{now: "A"}
	r.until(10 * time.Second)
	r.now = "B"
	r.until(40 * time.Second)
	r.now = "A"
	r.until(50 * time.Second)
	if reason, part := r.longest(); reason != "B" || part != .6 {
		t.Errorf("the longest reason is %s for %v of the wait, want B for 0.6", reason, part)
	}
	if reason, part := (&reasons{}).longest(); reason != "" || part != 0 {
		t.Errorf("without a wait, the reason is %q for %v", reason, part)
	}
}

// TestReasonsOfManyJobs lets more jobs wait than sessions look up. All of a wait has a reason, and a session does not pay for
// more than its part of the lookups.
func TestReasonsOfManyJobs(t *testing.T) {
	t.Parallel()
	const jobs = 10 * visitsPerSession
	tr := &trace.Trace{}
	for i := range jobs {
		tr.Jobs = append(tr.Jobs, trace.Job{
			ID: strconv.Itoa(i), Submit: time.Duration(i) * time.Millisecond, Run: time.Minute, Min: 1, Replicas: 1,
			Request: v1.ResourceList{v1.ResourceCPU: *resource.NewQuantity(1, resource.DecimalSI)},
		})
	}
	in, err := newInput(tr, "1")
	if err != nil {
		t.Fatal(err)
	}
	r, err := newReplay(in, Options{DefaultQueue: "default", Record: true})
	if err != nil {
		t.Fatal(err)
	}
	w := &r.recorder.waits
	samples, visits, lists := 0, 0, 0
	r.Progress = func(Progress) {
		samples++
		visits += len(w.waiting)
		if w.pending == 0 {
			lists += len(w.waiting)
		}
	}
	if err := r.play(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, j := range r.jobs {
		var all time.Duration
		for _, of := range j.why.list {
			all += of.time
		}
		if wait := j.first - j.Submit; all != wait {
			t.Fatalf("job %s waits for %v, and %v have a reason", j.ID, wait, all)
		}
	}
	if most := (visitsPerSession + 1) * samples; lists > most || visits < 2*most {
		t.Errorf("%d samples look up %d reasons, want at most %d; if each looked up all, they were %d", samples, lists, most, visits)
	}
}
