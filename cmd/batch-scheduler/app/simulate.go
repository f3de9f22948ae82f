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

const longSimulate = `simulate tells what the scheduler would do, and does nothing: which pods would get a node,
which would be evicted and for whom, which would be left waiting and why, and what queues
would hold. It begins with a live cluster, which it only reads; with objects in files, as
"kubectl get -o yaml" writes them or as you wrote them; or with the cluster and the files on
top of it: what if I submitted this? With --compare it does so for two policies and tells
what is different.

Cycles are run until one decides nothing. After each, pods that are bound run and stay;
pods that are evicted or were being deleted are gone at once; those that were evicted come
back, as pods that wait, if they have a controller. Time stands still: nothing ends, and no
gang waits for longer than it has at the start. In files, what the API server and
controllers would fill in is filled in: a Job without pods gets those it begins with, and
pods get their priority.`

const exampleSimulate = `  batch-scheduler simulate --from-cluster --kubeconfig ~/.kube/config
  batch-scheduler simulate --from-cluster --objects job.yaml
  kubectl get nodes,pods,podgroups,queues,priorityclasses -A -o yaml > cluster.yaml
  batch-scheduler simulate --objects cluster.yaml --config policy.yaml
  batch-scheduler simulate --from-cluster --compare policy.yaml --output html > report.html`

// simulation is the flags of simulate.
type simulation struct {
	fromCluster     bool
	objects         string
	config, compare string
	output          string
	cycles          int
	progress        bool
	scheduler       *Options // of which some are flags here too
}

func newSimulateCommand(p *program) *cobra.Command {
	s := &simulation{scheduler: NewOptions(), output: "text", cycles: 100}
	cmd := &cobra.Command{
		Use:     "simulate",
		Short:   "Tell what would be bound, evicted and left waiting, and change nothing",
		Long:    longSimulate,
		Example: exampleSimulate,
		Args:    exactly(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := s.validate(); err != nil {
				return usageError{cmd.CommandPath(), err}
			}
			ctx, stop := signalContext(cmd.Context(), cmd.ErrOrStderr())
			defer stop()
			return s.run(ctx, p, cmd.OutOrStdout(), s.follow(cmd))
		},
	}
	s.addFlags(cmd.Flags())
	cmd.Flags().SortFlags = false
	return cmd
}

func (s *simulation) addFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&s.fromCluster, "from-cluster", s.fromCluster, "Begin with what is in the cluster that --kubeconfig or --master names.")
	fs.StringVar(&s.objects, "objects", s.objects,
		"Directory with .yaml, .yml and .json files, or one file, to begin with; with --from-cluster, on top of what is there.")
	fs.StringVar(&s.config, "config", s.config, "Path of the policy file. If empty, the built-in default.")
	fs.StringVar(&s.compare, "compare", s.compare, "Path of a second policy file, to compare what comes of both.")
	fs.StringVarP(&s.output, "output", "o", s.output, "How to print the outcome: text, json, or html, a page for a browser.")
	fs.IntVar(&s.cycles, "cycles", s.cycles, "How many cycles are run at most.")
	fs.BoolVar(&s.progress, "progress", s.progress,
		"Tell on standard error how far it is, once it has taken a second. Done by default if standard error is a terminal.")
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	s.scheduler.AddFlags(all)
	for _, name := range []string{"kubeconfig", "master", "scheduler-name", "default-queue", "gang-grace"} {
		fs.AddFlag(all.Lookup(name))
	}
}

func (s *simulation) validate() error {
	var errs flagErrors
	if !s.fromCluster && s.objects == "" {
		errs = append(errs, errors.New("nothing to begin with: give --from-cluster, --objects, or both"))
	}
	if !slices.Contains([]string{"text", "json", "html"}, s.output) {
		errs.add("output", "must be text, json or html, not %q", s.output)
	}
	if s.cycles < 1 {
		errs.add("cycles", "must be at least 1, not %d", s.cycles)
	}
	if err := s.scheduler.Validate(); err != nil {
		errs = append(errs, err)
	}
	return errs.joined()
}

// run reads, simulates and prints.
func (s *simulation) run(ctx context.Context, p *program, stdout io.Writer, say follower) error {
	policies, err := s.policies(p)
	if err != nil {
		return err
	}
	objects, err := s.read(ctx, say)
	if err != nil {
		return err
	}
	var now time.Time // of files it is as of the youngest object, so that they give the same every day
	if s.fromCluster {
		now = p.clock.Now()
	}
	world, err := simulate.NewSnapshot(objects, now)
	if err != nil {
		return err
	}
	options := simulate.Options{
		SchedulerName: s.scheduler.SchedulerName, DefaultQueue: s.scheduler.DefaultQueue, GangGrace: s.scheduler.GangGrace, Cycles: s.cycles,
		Progress: func(cycle, bound, evicted int) {
			say("cycle %d: %s bound, %d evicted so far", cycle, text.Count(bound, "pod", "pods"), evicted)
		},
	}
	results := make([]*simulate.Result, len(policies))
	for i, policy := range policies {
		if results[i], err = world.Run(ctx, policy, options); err != nil {
			return err
		}
	}
	if s.compare == "" {
		return s.print(stdout, results[0])
	}
	return s.print(stdout, simulate.Compare(results[0], results[1]))
}

// policies are the one of --config, and the one of --compare if it is given.
func (s *simulation) policies(p *program) ([]simulate.Policy, error) {
	first, err := s.policy(p, s.config)
	if err != nil || s.compare == "" {
		return []simulate.Policy{first}, err
	}
	second, err := s.policy(p, s.compare)
	return []simulate.Policy{first, second}, err
}

// policy reads a policy file; an empty path stands for the built-in default.
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

// read collects the objects to begin with.
func (s *simulation) read(ctx context.Context, say follower) (*simulate.Objects, error) {
	progress := func(objects int) { say("%s read", text.Count(objects, "object", "objects")) }
	if !s.fromCluster {
		return simulate.FromDir(s.objects, progress)
	}
	api, err := newClients(s.scheduler, metrics.New(prometheus.NewRegistry()))
	if err != nil {
		return nil, err
	}
	objects, err := simulate.FromCluster(ctx, api.kube, api.batch, progress)
	if err != nil || s.objects == "" {
		return objects, err
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

// follower says how far something is.
type follower func(format string, args ...any)

// follow returns a follower that says something at most once a second, and nothing in the first one.
func (s *simulation) follow(cmd *cobra.Command) follower {
	if !cmd.Flags().Changed("progress") {
		file, isFile := cmd.ErrOrStderr().(*os.File)
		s.progress = isFile && term.IsTerminal(int(file.Fd()))
	}
	if !s.progress {
		return func(string, ...any) {}
	}
	return onceASecond(clock.RealClock{}, cmd.ErrOrStderr())
}

func onceASecond(c clock.PassiveClock, w io.Writer) follower {
	last := c.Now()
	return func(format string, args ...any) {
		if c.Since(last) < time.Second {
			return
		}
		last = c.Now()
		fmt.Fprintf(w, "simulate: "+format+"\n", args...)
	}
}
