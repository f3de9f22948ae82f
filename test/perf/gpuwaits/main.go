// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Gpuwaits compares how long jobs of 8 GPUs or more wait under policies for GPUs. Each seed is a random month of jobs for 100
// nodes of 8 GPUs with a load of 90 %, which "batch-scheduler simulate" replays with each policy.
//
//	go run ./test/perf/gpuwaits -seeds 20
//
// The mean waits are written to standard output, in seconds, and the differences to the policy before with their standard
// errors.
package main

import (
	"context"
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/batch-scheduler/batch-scheduler/test/perf/replay"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "gpuwaits:", err)
		os.Exit(1)
	}
}

// spread is the policy that spreads GPUs over nodes: the built-in one without the score that packs them.
const spread = `actions: "allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder, arguments: {extendedpacking.weight: 0}}]
`

// policy is a policy file; the empty file is the built-in policy.
type policy struct{ name, file string }

func run(args []string, stdout, stderr io.Writer) error {
	fs := flag.NewFlagSet("gpuwaits", flag.ContinueOnError)
	fs.SetOutput(stderr)
	gpuPolicy := fs.String("config", "config/samples/policies/gpu.yaml", "the policy to compare with the others")
	first := fs.Uint64("seed", 1, "the first seed")
	seeds := fs.Int("seeds", 20, "number of seeds")
	nodes := fs.Int("nodes", 100, "number of nodes")
	jobs := fs.Int("jobs", 12_000, "number of jobs")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if *seeds < 2 || *nodes < 2 || *jobs < 1 {
		return errors.New("-seeds and -nodes must be at least 2, and -jobs at least 1")
	}
	dir, err := os.MkdirTemp("", "gpuwaits-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	spreadFile := filepath.Join(dir, "spread.yaml")
	if err := os.WriteFile(spreadFile, []byte(spread), 0o600); err != nil {
		return err
	}
	policies := []policy{{"spread", spreadFile}, {"built-in", ""}, {filepath.Base(*gpuPolicy), *gpuPolicy}}
	t := newTable(stdout, policies)
	for i := range *seeds {
		m := &replay.Month{Nodes: *nodes, Jobs: *jobs, MostGPUs: 16, Load: 0.9, Seed: *first + uint64(i)} //nolint:gosec // not negative
		waits, err := waitsIn(m, dir, policies)
		if err != nil {
			return err
		}
		t.add(m.Seed, waits)
	}
	return t.end()
}

// waitsIn returns the mean wait of the large jobs of a month under each policy, in seconds.
func waitsIn(m *replay.Month, dir string, policies []policy) (waits []float64, err error) {
	text, err := m.Trace()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "month.jsonl")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, err
	}
	for _, p := range policies {
		out := filepath.Join(dir, "results")
		args := []string{"--trace", file, "--nodes", m.NodeSpec(), "-o", out}
		if p.file != "" {
			args = append(args, "--config", p.file)
		}
		if _, err := replay.Run(context.Background(), args...); err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		wait, err := meanWait(filepath.Join(out, "jobs.csv"))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		waits = append(waits, wait)
		if err := os.RemoveAll(out); err != nil {
			return nil, err
		}
	}
	return waits, nil
}

// meanWait returns the mean wait of the large jobs of a result file, in seconds.
func meanWait(file string) (float64, error) {
	f, err := os.Open(file)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return 0, err
	}
	columns := map[string]int{}
	for i, name := range rows[0] {
		columns[name] = i
	}
	var sum float64
	count := 0
	for _, row := range rows[1:] {
		if !strings.HasPrefix(row[columns["job_id"]], replay.Large) {
			continue
		}
		submitted, err := strconv.ParseFloat(row[columns["submission_time"]], 64)
		if err != nil {
			return 0, err
		}
		started, err := strconv.ParseFloat(row[columns["starting_time"]], 64)
		if err != nil {
			return 0, err
		}
		sum += started - submitted
		count++
	}
	if count == 0 {
		return 0, errors.New("there are no large jobs")
	}
	return sum / float64(count), nil
}

// table writes waits, and keeps them for the means.
type table struct {
	out      *tabwriter.Writer
	policies []policy
	waits    [][]float64
}

func newTable(stdout io.Writer, policies []policy) *table {
	t := &table{out: tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0), policies: policies}
	fmt.Fprint(t.out, "Seed")
	for _, p := range policies {
		fmt.Fprint(t.out, "\t", p.name)
	}
	fmt.Fprintln(t.out)
	return t
}

func (t *table) add(seed uint64, waits []float64) {
	t.waits = append(t.waits, waits)
	fmt.Fprint(t.out, seed)
	for _, wait := range waits {
		fmt.Fprintf(t.out, "\t%.0f", wait)
	}
	fmt.Fprintln(t.out)
}

// end writes the means with standard deviations, and the differences to the policy before with standard errors.
func (t *table) end() error {
	fmt.Fprint(t.out, "Mean")
	for i := range t.policies {
		mean, deviation := spreadOf(t.waits, func(w []float64) float64 { return w[i] })
		fmt.Fprintf(t.out, "\t%.0f ± %.0f", mean, deviation)
	}
	fmt.Fprint(t.out, "\nDifference\t")
	for i := 1; i < len(t.policies); i++ {
		less := 0
		for _, w := range t.waits {
			if w[i] < w[i-1] {
				less++
			}
		}
		mean, deviation := spreadOf(t.waits, func(w []float64) float64 { return w[i] - w[i-1] })
		fmt.Fprintf(t.out, "\t%.1f ± %.1f (%d less)", mean, deviation/math.Sqrt(float64(len(t.waits))), less)
	}
	fmt.Fprintln(t.out)
	return t.out.Flush()
}

// spreadOf returns the mean and the standard deviation of a value of at least two samples.
func spreadOf(samples [][]float64, value func([]float64) float64) (mean, deviation float64) {
	for _, s := range samples {
		mean += value(s) / float64(len(samples))
	}
	for _, s := range samples {
		deviation += (value(s) - mean) * (value(s) - mean) / float64(len(samples)-1)
	}
	return mean, math.Sqrt(deviation)
}
