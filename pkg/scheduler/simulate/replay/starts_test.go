// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/builtin"
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
			l.latest[j.Key] = at
			l.seen++
		})
	})
}

func (*latestStarts) OnSessionClose(*framework.Session) {}

// TestStartsAreKept replays random traces in which most jobs declare a limit, which is longer than their run, and many an
// expected run time, which may be anything. No priorities and no failures move starts, so a start by limits never becomes
// later, and each job starts by then.
func TestStartsAreKept(t *testing.T) {
	t.Parallel()
	seen := 0
	rapid.Check(t, func(t *rapid.T) {
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
		registry, err := builtin.NewRegistry()
		if err != nil {
			t.Fatal(err)
		}
		starts := &latestStarts{latest: map[string]time.Duration{}, fail: t.Fatalf}
		component := framework.ComponentSpec{Name: starts.Name(), New: func(framework.Environment) (framework.Plugin, framework.Action) {
			return starts, nil
		}}
		if err = registry.AddComponent(component); err != nil {
			t.Fatal(err)
		}
		config, err := conf.Default(registry.Catalog())
		if err != nil {
			t.Fatal(err)
		}
		nodes, err := trace.Nodes("count=3,cpu=3")
		if err != nil {
			t.Fatal(err)
		}
		config.StarvationAfter = 0
		config.Reservations = conf.Reservations{
			Depth:  rapid.SampledFrom([]int{1, 2, -1}).Draw(t, "depth"),
			Total:  rapid.SampledFrom([]int{1, 3, 100}).Draw(t, "total"),
			Margin: time.Duration(rapid.IntRange(0, 2).Draw(t, "margin")) * time.Second,
			Window: 24 * time.Hour,
		}
		r, err := newReplay(Input{Trace: tr, Nodes: nodes, Config: config, Registry: registry}, Options{DefaultQueue: "default", EvictionGrace: 5 * time.Second, Record: true})
		if err != nil {
			t.Fatal(err)
		}
		starts.now = func() time.Duration { return r.clock.at }
		r.Progress = func(p Progress) {
			if complaint := compareWithModel(r); complaint != "" {
				t.Fatalf("at %v: %s", p.At, complaint)
			}
		}
		if err := r.play(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i, j := range r.result().Jobs {
			key := fmt.Sprintf("%s/job-%08d", namespace, i)
			if by, known := starts.latest[key]; known && (j.Runs == 0 && j.State != Cancelled || j.Runs > 0 && j.Start > by) {
				t.Fatalf("job %s is %s, starts at %v, and was to start at %v at the latest", key, j.State, j.Start, by)
			}
		}
		seen += starts.seen
	})
	if seen == 0 {
		t.Error("no start was planned")
	}
}
