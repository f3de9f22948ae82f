// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
	"k8s.io/utils/clock"

	"github.com/batch-scheduler/batch-scheduler/internal/text"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/metrics"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate"
)

const longSimulate = `simulate prints the decisions that the scheduler would make, and changes nothing: which pods
would be bound and to which node, which would be evicted and for which preemptor, which
would stay pending and why, and the allocation of the queues. It starts from a live
cluster, which it only reads; from objects in files, such as the output of
"kubectl get -o yaml"; or from the cluster with the files added, to answer what would
happen if they were applied. With --compare, it simulates two policies and prints the
differences.

simulate runs cycles until one makes no decision. After each cycle, bound pods run;
evicted and terminating pods are deleted immediately; evicted pods with a controller
are recreated as pending pods, unless the eviction makes their Job fail. The clock does
not advance: no pod completes, and no gang is pending for longer than at the start. For
objects in files, simulate sets the values that the API server and controllers would
set: it creates the first pods of a Job without pods, and resolves the priority of pods.`

const exampleSimulate = `  batch-scheduler simulate --from-cluster --kubeconfig ~/.kube/config
  batch-scheduler simulate --from-cluster --objects job.yaml
  kubectl get nodes,pods,jobs,podgroups,queues,priorityclasses -A -o yaml > cluster.yaml
  batch-scheduler simulate --objects cluster.yaml --config policy.yaml
  batch-scheduler simulate --from-cluster --compare policy.yaml --output html > report.html`

// simulation holds the flags of simulate.
type simulation struct {
	fromCluster bool
	objects     string
	config      string
	compare     []string
	output      string
	cycles      int
	progress    bool
	scheduler   *Options // some of its flags are flags of simulate too

	replaying
	writesFiles bool // --output names a directory
}

func newSimulateCommand(p *program) *cobra.Command {
	s := &simulation{scheduler: NewOptions(), output: "text", cycles: 100, replaying: newReplaying()}
	cmd := &cobra.Command{
		Use:     "simulate",
		Short:   "Print what would be bound, evicted and left pending, and change nothing",
		Long:    longSimulate + longReplay,
		Example: exampleSimulate + exampleReplay,
		Args:    exactly(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := s.validate(cmd.Flags()); err != nil {
				return usageError{cmd.CommandPath(), err}
			}
			ctx, stop := signalContext(cmd.Context(), cmd.ErrOrStderr())
			defer stop()
			if s.trace != "" {
				s.writesFiles = cmd.Flags().Changed("output")
				return s.replay(ctx, p, cmd.OutOrStdout(), s.progressTo(cmd))
			}
			return s.run(ctx, p, cmd.OutOrStdout(), s.progressTo(cmd))
		},
	}
	s.addFlags(cmd.Flags())
	cmd.Flags().SortFlags = false
	return cmd
}

func (s *simulation) addFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&s.fromCluster, "from-cluster", s.fromCluster, "Start from the objects of the cluster that --kubeconfig or --master names.")
	fs.StringVar(&s.objects, "objects", s.objects,
		"Directory with .yaml, .yml and .json files, or one file, to start from; with --from-cluster, added to the objects of the cluster.")
	fs.StringVar(&s.config, "config", s.config, "Path of the policy file. If empty, the built-in default.")
	fs.StringArrayVar(&s.compare, "compare", s.compare,
		"Path of a second policy file; the results of both are compared. With --trace, can be repeated.")
	fs.StringVarP(&s.output, "output", "o", s.output, "Output format: text, json, or html (a page for a browser). With --trace, a directory for the results.")
	fs.IntVar(&s.cycles, "cycles", s.cycles, "Maximum number of cycles.")
	fs.BoolVar(&s.progress, "progress", s.progress,
		"Print the progress on standard error once per second. On by default if standard error is a terminal.")
	s.replaying.addFlags(fs)
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	s.scheduler.AddFlags(all)
	for _, name := range []string{"kubeconfig", "master", "scheduler-name", "default-queue", "gang-grace"} {
		fs.AddFlag(all.Lookup(name))
	}
}

func (s *simulation) validate(fs *pflag.FlagSet) error {
	var errs flagErrors
	if !s.fromCluster && s.objects == "" && s.trace == "" {
		errs = append(errs, errors.New("no objects to start from: set --from-cluster, --objects, or both"))
	}
	s.replaying.validate(s, fs, &errs)
	if s.trace == "" && !slices.Contains([]string{"text", "json", "html"}, s.output) {
		errs.add("output", "must be text, json or html, not %q", s.output)
	}
	if s.trace == "" && len(s.compare) > 1 {
		errs.add("compare", "can be repeated with --trace only")
	}
	if s.cycles < 1 {
		errs.add("cycles", "must be at least 1, not %d", s.cycles)
	}
	if err := s.scheduler.Validate(); err != nil {
		errs = append(errs, err)
	}
	return errs.joined()
}

// run reads the objects, simulates, and prints the result.
func (s *simulation) run(ctx context.Context, p *program, stdout io.Writer, printf progressPrinter) error {
	policies, err := s.policies(p)
	if err != nil {
		return err
	}
	objects, err := s.read(ctx, policies, printf)
	if err != nil {
		return err
	}
	var now time.Time // zero: the time of the youngest object, so that the result of files does not depend on the day
	if s.fromCluster {
		now = p.clock.Now()
	}
	snapshot, err := simulate.NewSnapshot(objects, now)
	if err != nil {
		return err
	}
	options := simulate.Options{
		SchedulerNames: s.scheduler.SchedulerNames, DefaultQueue: s.scheduler.DefaultQueue, GangGrace: s.scheduler.GangGrace, Cycles: s.cycles,
		Progress: func(cycle, bound, evicted int) {
			printf("cycle %d: %s bound, %d evicted so far", cycle, text.Count(bound, "pod", "pods"), evicted)
		},
	}
	results := make([]*simulate.Result, len(policies))
	for i, policy := range policies {
		if results[i], err = snapshot.Run(ctx, policy, options); err != nil {
			return err
		}
	}
	if len(s.compare) == 0 {
		return s.print(stdout, results[0])
	}
	return s.print(stdout, simulate.Compare(results[0], results[1]))
}

// policies returns that of --config and, if it is set, that of --compare.
func (s *simulation) policies(p *program) ([]simulate.Policy, error) {
	first, err := s.policy(p, s.config)
	if err != nil || len(s.compare) == 0 {
		return []simulate.Policy{first}, err
	}
	second, err := s.policy(p, s.compare[0])
	return []simulate.Policy{first, second}, err
}

// policy reads a policy file; for an empty path, it returns the built-in default.
func (s *simulation) policy(p *program, path string) (simulate.Policy, error) {
	registry, err := p.registry()
	if err != nil {
		return simulate.Policy{}, err
	}
	policy := simulate.Policy{Name: path, Registry: registry}
	if path == "" {
		policy.Name = conf.DefaultSource
		policy.Configuration, err = conf.Default(registry.Catalog())
	} else {
		policy.Configuration, policy.Warnings, err = conf.Load(path, registry.Catalog())
	}
	return policy, err
}

// read returns the objects to start from.
func (s *simulation) read(ctx context.Context, policies []simulate.Policy, printf progressPrinter) (*simulate.Objects, error) {
	progress := func(objects int) { printf("%s read", text.Count(objects, "object", "objects")) }
	if !s.fromCluster {
		return simulate.FromDir(s.objects, progress)
	}
	api, err := newClients(s.scheduler, metrics.New(prometheus.NewRegistry()))
	if err != nil {
		return nil, err
	}
	objects, err := simulate.FromCluster(ctx, api.kube, api.batch, progress)
	if err != nil {
		return nil, err
	}
	for _, policy := range policies {
		if err = objects.AddOtherGroups(ctx, api.dynamic, policy.GroupSources); err != nil {
			return nil, err
		}
		if err = simulate.AddOwners(ctx, objects, api.dynamic, policy.Grouping); err != nil {
			return nil, err
		}
	}
	if s.objects == "" {
		return objects, nil
	}
	files, err := simulate.FromDir(s.objects, progress)
	if err != nil {
		return nil, err
	}
	objects.Overlay(files)
	return objects, nil
}

// outcome is a result or a comparison.
type outcome interface {
	WriteText(io.Writer) error
	WriteHTML(io.Writer) error
}

func (s *simulation) print(stdout io.Writer, o outcome) error {
	switch s.output {
	case "json":
		encoder := json.NewEncoder(stdout)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		return encoder.Encode(o)
	case "html":
		return o.WriteHTML(stdout)
	default:
		return o.WriteText(stdout)
	}
}

// progressPrinter prints one line of progress.
type progressPrinter func(format string, args ...any)

// progressTo returns a printer that prints at most one line per second, and none in the first second.
func (s *simulation) progressTo(cmd *cobra.Command) progressPrinter {
	if !cmd.Flags().Changed("progress") {
		file, isFile := cmd.ErrOrStderr().(*os.File)
		s.progress = isFile && term.IsTerminal(int(file.Fd()))
	}
	if !s.progress {
		return func(string, ...any) {}
	}
	return oncePerSecond(clock.RealClock{}, cmd.ErrOrStderr())
}

func oncePerSecond(c clock.PassiveClock, w io.Writer) progressPrinter {
	last := c.Now()
	return func(format string, args ...any) {
		if c.Since(last) < time.Second {
			return
		}
		last = c.Now()
		fmt.Fprintf(w, "simulate: "+format+"\n", args...)
	}
}
