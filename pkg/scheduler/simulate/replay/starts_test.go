// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/trace"
)

// latestStarts follows when waiting jobs start at the latest, as each session says at its end.
type latestStarts struct {
	now    func() time.Duration
	latest map[string]time.Duration
	fail   func(format string, args ...any)
	seen   int

	estimates map[string][]time.Duration // one after the other; nil: they are not followed
}

func (*latestStarts) Name() string { return "latest-starts" }

func (l *latestStarts) OnSessionOpen(ssn *framework.Session) {
	ssn.AddClosedFn("latest-starts", func() {
		ssn.EachExplained(func(j *api.JobInfo, o *framework.Outcome) {
			if o.Job == nil || o.Job.Start.Latest == 0 {
				return
			}
			at := time.Unix(0, o.Job.Start.Latest).Sub(epoch)
			if before, known := l.latest[j.Key]; known && at > before {
				l.fail("at %v: job %s was to start at %v at the latest, and now at %v", l.now(), j.Key, before, at)
			}
			if estimate := time.Unix(0, o.Job.Start.Estimated).Sub(epoch); l.estimates != nil && !slices.Contains(l.estimates[j.Key], estimate) {
				l.estimates[j.Key] = append(l.estimates[j.Key], estimate)
			}
			l.latest[j.Key] = at
			l.seen++
		})
	})
}

func (*latestStarts) OnSessionClose(*framework.Session) {}

// replay makes a replay that it follows.
func (l *latestStarts) replay(tr *trace.Trace, nodes string, reservations conf.Reservations) (*replay, error) {
	in, err := newInput(tr, nodes)
	if err != nil {
		return nil, err
	}
	return l.replayOf(in, reservations)
}

func (l *latestStarts) replayOf(in Input, reservations conf.Reservations) (*replay, error) {
	component := framework.ComponentSpec{Name: l.Name(), New: func(framework.Environment) (framework.Plugin, framework.Action) {
		return l, nil
	}}
	if err := in.Registry.AddComponent(component); err != nil {
		return nil, err
	}
	reservations.Window = 24 * time.Hour
	in.Config.StarvationAfter, in.Config.Reservations = 0, reservations
	r, err := newReplay(in, Options{DefaultQueue: "default", EvictionGrace: 5 * time.Second, Record: true})
	if err == nil {
		l.now = func() time.Duration { return r.clock.at }
	}
	return r, err
}

// TestStartsAreKept replays random traces in which most jobs declare a limit, which is longer than their run, and many an
// expected run time, which may be anything. No priorities and no failures move starts, so a start by limits never becomes
// later, and each job starts by then.
func TestStartsAreKept(t *testing.T) {
	t.Parallel()
	seen := 0
	rapid.Check(t, func(t *rapid.T) {
		starts := &latestStarts{latest: map[string]time.Duration{}, fail: t.Fatalf}
		r, err := starts.replay(declaringTrace(t), "count=3,cpu=3", randomReservations(t))
		if err != nil {
			t.Fatal(err)
		}
		r.Progress = func(p Progress) {
			if complaint := compareWithModel(r); complaint != "" {
				t.Fatalf("at %v: %s", p.At, complaint)
			}
		}
		starts.play(t, r)
		seen += starts.seen
	})
	if seen == 0 {
		t.Error("no start was planned")
	}
}

// declaringTrace is a random trace of jobs most of which declare run times.
func declaringTrace(t *rapid.T) *trace.Trace {
	tr := randomTrace(t)
	tr.Nodes, tr.Record = nil, trace.Record{}
	for i := range tr.Jobs {
		j := &tr.Jobs[i]
		j.Priority = 0
		if rapid.IntRange(0, 5).Draw(t, "declares") > 0 {
			j.Limit = j.Run + time.Duration(rapid.IntRange(1, 20).Draw(t, "more"))*time.Second
			j.Expected = time.Duration(rapid.Int64Range(0, int64(j.Limit/time.Second)).Draw(t, "expected")) * time.Second
		}
	}
	return tr
}

func randomReservations(t *rapid.T) conf.Reservations {
	return conf.Reservations{
		Depth:  rapid.SampledFrom([]int{1, 2, -1}).Draw(t, "depth"),
		Total:  rapid.SampledFrom([]int{1, 3, 100}).Draw(t, "total"),
		Margin: time.Duration(rapid.IntRange(0, 2).Draw(t, "margin")) * time.Second,
	}
}

// play runs a replay, and asserts that each job starts by the time that was known.
func (l *latestStarts) play(t *rapid.T, r *replay) {
	if err := r.play(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, j := range r.result().Jobs {
		key := fmt.Sprintf("%s/job-%08d", namespace, i)
		if by, known := l.latest[key]; known && (j.Runs == 0 && j.State != Cancelled || j.Runs > 0 && j.Start > by) {
			t.Fatalf("job %s is %s, starts at %v, and was to start at %v at the latest", key, j.State, j.Start, by)
		}
	}
}

// limitedJob is a job of pods of 1 cpu.
func limitedJob(id string, at time.Duration, pods int, run, limit time.Duration) trace.Job {
	return trace.Job{
		ID: id, Submit: at, Run: run, Limit: limit, Min: pods, Replicas: pods,
		Request: v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")},
	}
}

// TestStreamsDoNotDelayGangs is TI8 and TI18: all nodes are in use, and a stream of small jobs takes each that becomes free. A
// gang that needs all of them starts by the time that its status had at first. Without a planned start it waits for long.
func TestStreamsDoNotDelayGangs(t *testing.T) {
	t.Parallel()
	const nodes, begin = 8, 10 * time.Minute
	tr := func() *trace.Trace {
		tr := &trace.Trace{}
		random := rand.New(rand.NewPCG(1, 2))
		for i := range 1000 {
			at := time.Duration(i) * 4 * time.Second
			run := time.Duration(1+random.IntN(60)) * time.Second
			tr.Jobs = append(tr.Jobs, limitedJob(fmt.Sprint("small-", i), at, 1+random.IntN(2), run, run+time.Duration(random.IntN(60))*time.Second))
			if at == begin {
				tr.Jobs = append(tr.Jobs, limitedJob("gang", at, nodes, time.Minute, time.Minute))
			}
		}
		return tr
	}
	gangStart := func(reservations conf.Reservations) (start, latest time.Duration) {
		l := &latestStarts{latest: map[string]time.Duration{}, fail: t.Fatalf}
		r, err := l.replay(tr(), fmt.Sprintf("count=%d,cpu=1", nodes), reservations)
		if err == nil {
			err = r.play(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		for i, j := range r.result().Jobs {
			if j.ID == "gang" {
				return j.Start, l.latest[fmt.Sprintf("%s/job-%08d", namespace, i)]
			}
		}
		t.Fatal("there is no gang")
		return 0, 0
	}
	start, latest := gangStart(conf.Reservations{Depth: 1, Total: 8})
	if start > latest {
		t.Errorf("the gang starts at %v, and was to start at %v at the latest", start, latest)
	}
	if without, _ := gangStart(conf.Reservations{}); without < start+10*time.Minute {
		t.Errorf("the gang starts at %v, and without a planned start at %v: the stream is too thin", start, without)
	}
}

// TestEstimatesFollow is TI14: a job that is expected to run for 10 minutes runs for 27, within its limit. What is expected of
// the gang behind it follows step by step, and never lies in the past; when it starts at the latest stays.
func TestEstimatesFollow(t *testing.T) {
	t.Parallel()
	long := limitedJob("long", 0, 2, 27*time.Minute, time.Hour)
	long.Expected = 10 * time.Minute
	tr := &trace.Trace{Jobs: []trace.Job{long, limitedJob("gang", time.Minute, 2, time.Minute, time.Minute)}}
	l := &latestStarts{latest: map[string]time.Duration{}, estimates: map[string][]time.Duration{}, fail: t.Fatalf}
	r, err := l.replay(tr, "count=2,cpu=1", conf.Reservations{Depth: 1, Total: 8})
	if err == nil {
		err = r.play(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	const gang = namespace + "/job-00000001"
	want := []time.Duration{10 * time.Minute, 11 * time.Minute, 15 * time.Minute, 25 * time.Minute, 40 * time.Minute}
	if diff := cmp.Diff(want, l.estimates[gang]); diff != "" {
		t.Errorf("estimates (-want +got):\n%s", diff)
	}
	if l.latest[gang] != time.Hour || r.result().Jobs[1].Start != 27*time.Minute {
		t.Errorf("the gang was to start at %v at the latest, and starts at %v", l.latest[gang], r.result().Jobs[1].Start)
	}
}
