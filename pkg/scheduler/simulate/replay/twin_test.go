// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"bytes"
	"errors"
	"flag"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/replay"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/trace"
)

var (
	traces = flag.String("traces", "../../../../../shared/data", "directory with lublin_256.swf; without it, tests that need it are skipped")
	whole  = flag.Bool("whole", false, "replay all of lublin_256 instead of its first 1,000 jobs")
)

// startsOf is a simulation without any code of the scheduler: one resource of which each pod needs one unit; at every event,
// all waiting jobs in the order of arrival, and each that fits starts.
func startsOf(jobs []trace.Job, free int) []time.Duration {
	starts := make([]time.Duration, len(jobs))
	started, ended := make([]bool, len(jobs)), make([]bool, len(jobs))
	for left := len(jobs); left > 0; {
		now := time.Duration(math.MaxInt64)
		for i, j := range jobs {
			switch {
			case started[i] && !ended[i]:
				now = min(now, starts[i]+j.Run)
			case !started[i] && free >= j.Min:
				now = min(now, j.Submit)
			}
		}
		// Arrivals that have to wait change nothing, so only ends and starts are events.
		for i, j := range jobs {
			if started[i] && !ended[i] && starts[i]+j.Run <= now {
				ended[i] = true
				free += j.Min
				left--
			}
		}
		for i, j := range jobs {
			if !started[i] && j.Submit <= now && j.Min <= free {
				started[i], starts[i] = true, now
				free -= j.Min
			}
		}
	}
	return starts
}

func compareWithTwin(t fataler, r *replay.Result, want []time.Duration) string {
	t.Helper()
	got := make([]time.Duration, len(r.Jobs))
	for i := range r.Jobs {
		got[i] = r.Jobs[i].Start
	}
	return cmp.Diff(want, got)
}

func TestStartsEqualThoseOfASimpleTwin(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.IntRange(1, 8).Draw(t, "nodes")
		tr := &trace.Trace{}
		at := time.Duration(0)
		for range rapid.IntRange(1, 30).Draw(t, "jobs") {
			at += time.Duration(rapid.IntRange(0, 20).Draw(t, "pause")) * time.Second
			size := rapid.IntRange(1, nodes).Draw(t, "size")
			tr.Jobs = append(tr.Jobs, trace.Job{
				ID: "job", Submit: at, Run: time.Duration(rapid.IntRange(1, 60).Draw(t, "run")) * time.Second, Min: size, Replicas: size,
				Request: v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")},
			})
		}
		r, err := replay.Run(t.Context(), inputOf(t, tr, strconv.Itoa(nodes), noReservation), options())
		if err != nil {
			t.Fatal(err)
		}
		if diff := compareWithTwin(t, r, startsOf(tr.Jobs, nodes)); diff != "" {
			t.Fatalf("starts (-twin +replay):\n%s", diff)
		}
	})
}

// readLublin returns the first jobs of lublin_256, or all.
func readLublin(t *testing.T, jobs int) *trace.Trace {
	t.Helper()
	file, err := os.Open(filepath.Join(*traces, "lublin_256.swf"))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("%v; -traces says where the trace is", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	tr, err := trace.Read("swf", file.Name(), file, trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if jobs > 0 {
		tr.Jobs = tr.Jobs[:jobs]
	}
	return tr
}

// TestLublin compares 256 nodes of one CPU with the twin, and the whole trace also with the figures of another simulator.
func TestLublin(t *testing.T) {
	jobs := 1000
	if *whole {
		jobs = 0
	}
	tr := readLublin(t, jobs)
	r, err := replay.Run(t.Context(), inputOf(t, tr, "256", noReservation), options())
	if err != nil {
		t.Fatal(err)
	}
	if diff := compareWithTwin(t, r, startsOf(tr.Jobs, 256)); diff != "" {
		t.Errorf("starts (-twin +replay):\n%s", diff)
	}
	if !*whole {
		return
	}
	for name, c := range map[string]struct{ got, want float64 }{
		"mean bounded slowdown":        {r.Summary.MeanBoundedSlowdown, 764.4},
		"mean wait":                    {r.Summary.Wait.Mean, 63_773},
		"utilisation":                  {r.Summary.Utilisation[0].Part, .912},
		"longest wait of 128 and more": {r.Summary.LongestLargeWait, 3_084_527},
	} {
		if math.Abs(c.got/c.want-1) > .01 {
			t.Errorf("%s: %v, more than 1 %% from %v", name, c.got, c.want)
		}
	}
}

// TestEqualInputGivesEqualFiles is SI2. It replays with evictions and starvation reservations: twice, on one processor and on many, and
// from the trace converted to jsonl.
func TestEqualInputGivesEqualFiles(t *testing.T) {
	var given strings.Builder
	for i := range 300 {
		size := 1 + i*i%7
		given.WriteString(strings.Replace(submit(i*7, "job-"+strconv.Itoa(i), size, 20+i*37%300), `"min"`, `"priority": `+strconv.Itoa(i%3)+`, "min"`, 1))
	}
	tr := read(t, given.String())
	run := func(tr *trace.Trace) string {
		r, err := replay.Run(t.Context(), inputOf(t, tr, "count=4,cpu=3", "starvationAfter: 1m\n"+evicting), recorded())
		if err != nil {
			t.Fatal(err)
		}
		if r.Summary.Evictions == 0 {
			t.Fatal("the scenario evicts nothing")
		}
		return files(t, r)
	}
	want := run(tr)
	var converted bytes.Buffer
	if err := tr.WriteJSONL(&converted); err != nil {
		t.Fatal(err)
	}
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	for _, processors := range []int{1, 16} {
		runtime.GOMAXPROCS(processors)
		if diff := cmp.Diff(want, run(read(t, converted.String()))); diff != "" {
			t.Errorf("with %d processors, from the converted trace (-first +second):\n%s", processors, diff)
		}
	}
}
