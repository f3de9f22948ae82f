// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Gpushares measures which part of the GPUs of a cluster can be allocated to pods that share GPUs: with the score of the paper
// (descent), with that of the plugin fragmentation, and with best fit. Package arrivals describes the experiment.
//
//	go run ./test/perf/gpushares -nodes openb_nodes.csv -pods openb_pods.csv
//
// The files are those of Alibaba's cluster-trace-gpu-v2023. The allocation in percent is written to standard output, for each
// seed and as the mean, when pods have requested 100 % and 130 % of the GPUs.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/batch-scheduler/batch-scheduler/test/perf/gpushares/arrivals"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "gpushares:", err)
		os.Exit(1)
	}
}

func run(args []string, stdout, stderr io.Writer) error {
	fs := flag.NewFlagSet("gpushares", flag.ContinueOnError)
	fs.SetOutput(stderr)
	nodeFile := fs.String("nodes", "../shared/data/openb_nodes.csv", "file with the nodes")
	podFile := fs.String("pods", "../shared/data/openb_pods.csv", "file with the pods")
	first := fs.Uint64("seed", 42, "the first seed")
	seeds := fs.Int("seeds", 10, "number of seeds")
	mix := fs.String("workload", "default", "which of the paper's workloads to approximate: "+strings.Join(arrivals.Mixes(), ", "))
	if err := fs.Parse(args); err != nil {
		return err
	}
	if *seeds < 1 {
		return errors.New("-seeds must be at least 1")
	}
	nodes, pods, err := arrivals.Read(*nodeFile, *podFile)
	if err != nil {
		return err
	}
	if pods, err = arrivals.Derive(*mix, pods); err != nil {
		return err
	}
	w, err := arrivals.New(nodes, pods)
	if err != nil {
		return err
	}
	return write(stdout, w, *first, *seeds)
}

// write runs the experiment with each seed.
func write(stdout io.Writer, w *arrivals.Workload, first uint64, seeds int) error {
	out := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "Seed\tDescent 100 %\t130 %\tPlugin 100 %\t130 %\tBest fit 100 %\t130 %")
	rules := []arrivals.Rule{arrivals.Descent, arrivals.Plugin, arrivals.BestFit}
	sums := make([]arrivals.Result, len(rules))
	for i := range seeds {
		seed := first + uint64(i)
		fmt.Fprint(out, seed)
		for r, rule := range rules {
			result := w.Run(rule, seed)
			sums[r].AtFull += result.AtFull
			sums[r].AtInflated += result.AtInflated
			fmt.Fprintf(out, "\t%.2f\t%.2f", result.AtFull, result.AtInflated)
		}
		fmt.Fprintln(out)
	}
	fmt.Fprint(out, "Mean")
	for _, sum := range sums {
		fmt.Fprintf(out, "\t%.2f\t%.2f", sum.AtFull/float64(seeds), sum.AtInflated/float64(seeds))
	}
	fmt.Fprintln(out)
	return out.Flush()
}
