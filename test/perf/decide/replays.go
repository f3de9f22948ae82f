// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"

	"github.com/batch-scheduler/batch-scheduler/test/perf/replay"
)

// easyPolicy is the policy with EASY backfilling whose results docs/backfilling.md compares: nothing is reserved but the start
// of the first gang.
const easyPolicy = `actions: "allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: proportion}, {name: predicates}, {name: nodeorder}]
starvationAfter: 0
reservations: {depth: 1, margin: 0s}
`

// replays run the command "batch-scheduler simulate --trace" on one processor: a month of jobs whose sizes are like those of
// the Philly trace (Jeon et al., USENIX ATC '19), and the workload lublin_256, if it is in traceDir.
func replays(nodes, jobs int, traceDir string) []benchmark {
	var list []benchmark
	for _, queues := range []int{1, 14} {
		m := &replay.Month{Nodes: nodes, Jobs: jobs, MostGPUs: 64, Load: 1.1, Queues: queues, Seed: 7}
		list = append(list, benchmark{
			name:   fmt.Sprintf("replay/month-%d", queues),
			about:  fmt.Sprintf("simulate --trace: %d jobs in a month on %d nodes with %d GPUs, load %.1f, %d queues", jobs, nodes, replay.GPUsPerNode, m.Load, queues),
			build:  func() *fixture { return &fixture{} },
			whole:  func(ctx context.Context, _ *fixture) (cost, error) { return replayMonth(ctx, m) },
			cycles: []cycle{{limits: []limit{{name: "replay", most: 30_000}}}},
		})
	}
	lublin := benchmark{
		name: "replay/lublin", about: "simulate --trace: lublin_256 with EASY backfilling", build: func() *fixture { return &fixture{} },
		cycles: []cycle{{limits: []limit{{name: "replay", most: 20_000}}}},
	}
	file := filepath.Join(traceDir, "lublin_256.swf")
	if _, err := os.Stat(file); err != nil {
		lublin.skip = fmt.Sprintf("%v; -trace says where the trace is", err)
	}
	lublin.whole = func(ctx context.Context, _ *fixture) (cost, error) {
		return measureReplay(ctx, easyPolicy, "--trace", file, "--nodes", "256")
	}
	return append(list, lublin)
}

// replayMonth measures the month under the built-in policy.
func replayMonth(ctx context.Context, m *replay.Month) (cost, error) {
	dir, err := os.MkdirTemp("", "decide-")
	if err != nil {
		return cost{}, err
	}
	defer os.RemoveAll(dir)
	text, err := m.Trace()
	if err != nil {
		return cost{}, err
	}
	file := filepath.Join(dir, "month.jsonl")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return cost{}, err
	}
	return measureReplay(ctx, "", "--trace", file, "--nodes", m.NodeSpec())
}

// allCompleted matches the first line of the summary if all jobs have completed.
var allCompleted = regexp.MustCompile(`(?m)^Jobs +(\d+): (\d+) completed, 0 running, 0 pending, 0 cancelled$`)

// measureReplay measures the command on one processor, with a policy, or the built-in one if it is empty.
func measureReplay(ctx context.Context, policy string, args ...string) (cost, error) {
	if policy != "" {
		f, err := os.CreateTemp("", "decide-*.yaml")
		if err != nil {
			return cost{}, err
		}
		defer os.Remove(f.Name())
		defer f.Close()
		if _, err := f.WriteString(policy); err != nil {
			return cost{}, err
		}
		args = append(args, "--config", f.Name())
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	runtime.GC()
	took, summary, err := newCost(), "", error(nil)
	took.measure("replay", func() { summary, err = replay.Run(ctx, args...) })
	switch {
	case err != nil:
		return took, err
	case !allCompleted.MatchString(summary):
		return took, fmt.Errorf("simulate: not all jobs have completed:\n%s", summary)
	}
	return took, nil
}
