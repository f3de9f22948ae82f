// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/builtin"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/replay"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/results"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/trace"
)

// noReservation is the built-in policy without starvation reservations: any job that fits starts.
const noReservation = "starvationAfter: 0\n"

// evicting is a policy that evicts for a job of higher priority, too.
const evicting = `actions: "reclaim, allocate, backfill, preempt"` + "\n"

// fataler is the part of a test that inputs need.
type fataler interface {
	Helper()
	Fatal(args ...any)
}

// inputOf returns a trace on nodes with the built-in policy and changes of its fields.
func inputOf(t fataler, tr *trace.Trace, nodes, changes string) replay.Input {
	t.Helper()
	registry, err := builtin.NewRegistry()
	if err != nil {
		t.Fatal(err)
	}
	policy := conf.DefaultYAML()
	for line := range strings.Lines(changes) {
		key, _, _ := strings.Cut(line, ":")
		kept := ""
		for old := range strings.Lines(policy) {
			if !strings.HasPrefix(old, key+":") {
				kept += old
			}
		}
		policy = kept + "\n" + line
	}
	config, _, err := conf.Parse("the policy of the test", []byte(policy), registry.Catalog())
	if err != nil {
		t.Fatal(err)
	}
	in := replay.Input{Trace: tr, Config: config, Registry: registry}
	if in.Nodes, err = trace.Nodes(nodes); err != nil {
		t.Fatal(err)
	}
	return in
}

func options() replay.Options {
	return replay.Options{DefaultQueue: "default", EvictionGrace: 30 * time.Second}
}

// read returns a trace in the format jsonl.
func read(t fataler, lines string) *trace.Trace {
	t.Helper()
	tr, err := trace.Read("jsonl", "the trace of the test", strings.NewReader(lines), trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// submit is a line that submits a gang of pods with one CPU.
func submit(at int, name string, size, duration int) string {
	return fmt.Sprintf(`{"t": %d, "submit": {"name": %q, "min": %d, "request": {"cpu": "1"}, "duration": %d}}`+"\n", at, name, size, duration)
}

// files returns the result files of a replay, one after the other.
func files(t *testing.T, r *replay.Result) string {
	t.Helper()
	var all bytes.Buffer
	for _, f := range (&results.Run{Workload: "test", Result: r}).Files() {
		fmt.Fprintln(&all, f.Name)
		if err := f.Write(&all); err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}
