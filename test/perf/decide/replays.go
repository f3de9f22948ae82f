// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"

	"github.com/batch-scheduler/batch-scheduler/cmd/batch-scheduler/app"
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
		m := month{nodes, jobs, queues}
		list = append(list, benchmark{
			name:   fmt.Sprintf("replay/month-%d", queues),
			about:  fmt.Sprintf("simulate --trace: %d jobs in a month on %d nodes with %d GPUs, load %.1f, %d queues", jobs, nodes, gpusPerNode, monthLoad, queues),
			build:  func() *fixture { return &fixture{} },
			whole:  m.replay,
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
		return replay(ctx, easyPolicy, "--trace", file, "--nodes", "256")
	}
	return append(list, lublin)
}

// month is a month of jobs of 1 to 64 GPUs, which arrive at any time. Most of them are short.
type month struct{ nodes, jobs, queues int }

const (
	monthLoad    = 1.1
	monthSeconds = 30 * 86_400
)

// monthSizes are the numbers of jobs, of 2,000, by GPUs.
func monthSizes() (sizes []int) {
	for _, s := range [...]struct{ gpus, jobs int }{{1, 975}, {2, 47}, {4, 321}, {8, 543}, {16, 106}, {32, 6}, {64, 2}} {
		sizes = append(sizes, slices.Repeat([]int{s.gpus}, s.jobs)...)
	}
	return sizes
}

type monthJob struct {
	at, seconds float64
	gpus, queue int
}

func (m month) draw() []monthJob {
	random := rand.New(rand.NewPCG(7, 0)) //nolint:gosec // the jobs are the same each time
	sizes, list, work := monthSizes(), make([]monthJob, m.jobs), 0.0
	for i := range list {
		list[i] = monthJob{
			at: random.Float64() * monthSeconds, gpus: sizes[random.IntN(len(sizes))], queue: random.IntN(m.queues),
			seconds: min(math.Exp(8.5+1.5*random.NormFloat64()), 7*86_400),
		}
		work += float64(list[i].gpus) * list[i].seconds
	}
	scale := monthLoad * float64(m.nodes*gpusPerNode) * monthSeconds / work
	for i := range list {
		list[i].seconds = max(list[i].seconds*scale, 1)
	}
	slices.SortFunc(list, func(a, b monthJob) int { return cmp.Compare(a.at, b.at) })
	return list
}

// trace returns the month in the format jsonl.
func (m month) trace() ([]byte, error) {
	type object = map[string]any
	var text bytes.Buffer
	lines := json.NewEncoder(&text)
	for q := range m.queues {
		if err := lines.Encode(object{"t": 0, "queue": object{"name": fmt.Sprintf("vc%d", q), "spec": object{"weight": 1 + q%3}}}); err != nil {
			return nil, err
		}
	}
	for i, j := range m.draw() {
		perPod := min(j.gpus, gpusPerNode)
		err := lines.Encode(object{"t": int(j.at), "submit": object{
			"name": fmt.Sprintf("j%d", i), "queue": fmt.Sprintf("vc%d", j.queue), "min": j.gpus / perPod, "duration": int(j.seconds),
			"request": object{"cpu": fmt.Sprint(4 * perPod), "nvidia.com/gpu": fmt.Sprint(perPod)},
		}})
		if err != nil {
			return nil, err
		}
	}
	return text.Bytes(), nil
}

func (m month) replay(ctx context.Context, _ *fixture) (cost, error) {
	dir, err := os.MkdirTemp("", "decide-")
	if err != nil {
		return cost{}, err
	}
	defer os.RemoveAll(dir)
	text, err := m.trace()
	if err != nil {
		return cost{}, err
	}
	file := filepath.Join(dir, "month.jsonl")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return cost{}, err
	}
	return replay(ctx, "", "--trace", file, "--nodes", fmt.Sprintf("count=%d,cpu=64,memory=512Gi,nvidia.com/gpu=%d", m.nodes, gpusPerNode))
}

// allCompleted matches the first line of the summary if all jobs have completed.
var allCompleted = regexp.MustCompile(`(?m)^Jobs +(\d+): (\d+) completed, 0 running, 0 pending, 0 cancelled$`)

// replay measures the command on one processor, with a policy, or the built-in one if it is empty.
func replay(ctx context.Context, policy string, args ...string) (cost, error) {
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
	var summary, said bytes.Buffer
	command := app.NewSchedulerCommand()
	command.SetContext(ctx)
	command.SetOut(&summary)
	command.SetErr(&said)
	command.SetArgs(append([]string{"simulate"}, args...))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	runtime.GC()
	took, code := newCost(), 0
	took.measure("replay", func() { code = app.Execute(command) })
	switch {
	case code != 0:
		return took, fmt.Errorf("simulate: exit code %d: %s", code, said.String())
	case !allCompleted.Match(summary.Bytes()):
		return took, fmt.Errorf("simulate: not all jobs have completed:\n%s", summary.String())
	}
	return took, nil
}
