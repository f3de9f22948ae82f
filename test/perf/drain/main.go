// Drain measures how fast the scheduler empties a queue of waiting gangs on a real API server.
//
//	go run ./test/perf/drain -nodes 500 -gangs 100 -size 50
//
// It starts a local cluster, installs config/, creates the gangs, and only then starts the
// scheduler, as its own process under its own service account. It watches until every pod has
// a node, then looks for gangs that are not whole and nodes that hold more than they have. The
// result goes to standard output, what happens meanwhile to standard error. The exit code is 1
// if not everything is bound in time, or if something is bound that must not be.
//
// The API server, the simulated kubelets, the scheduler and the watch share the machine, so
// figures compare only with figures from the same machine and the same settings; the result
// carries the settings. With -at-least the exit code is 1 below that rate too. With -json the rate is added to the
// figures in a file, and the table of all of them is printed. With -ceiling the same pods are then bound on another
// cluster by plain clients that do not think, which is the best that any scheduler could do there.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/batch-scheduler/batch-scheduler/test/perf/figures"
)

// options are the flags as given.
type options struct {
	nodes, gangs, size int
	nodeSpec           string
	kubelets           bool
	kubeletParallelism int
	unthrottled        bool
	ceiling            bool
	atLeast            float64
	timeout            time.Duration
	json               string
}

func (o options) pods() int { return o.gangs * o.size }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if err == flag.ErrHelp {
		return 0
	}
	if err != nil {
		fmt.Fprintln(stderr, "drain:", err)
		return 1
	}
	result, err := measure(ctx, o, func(format string, args ...any) {
		fmt.Fprintf(stderr, "drain: "+format+"\n", args...)
	})
	if err != nil {
		fmt.Fprintln(stderr, "drain:", err)
		return 1
	}
	if err := result.print(stdout, o); err != nil {
		fmt.Fprintln(stderr, "drain:", err)
		return 1
	}
	if problem := result.problem(o.atLeast); problem != "" {
		fmt.Fprintln(stderr, "drain: failed:", problem)
		return 1
	}
	return 0
}

func parse(args []string, output io.Writer) (options, error) {
	var o options
	fs := flag.NewFlagSet("drain", flag.ContinueOnError)
	fs.SetOutput(output)
	fs.IntVar(&o.nodes, "nodes", 500, "number of nodes")
	fs.IntVar(&o.gangs, "gangs", 100, "number of gangs")
	fs.IntVar(&o.size, "size", 50, "number of 1-cpu pods in each gang, all of which start together")
	fs.StringVar(&o.nodeSpec, "node", "cpu=32,memory=256Gi,pods=110", "what a node has, as localcluster --node takes it")
	fs.BoolVar(&o.kubelets, "kubelets", true, "run simulated kubelets, which take a share of the API server")
	fs.IntVar(&o.kubeletParallelism, "kubelet-parallelism", 1, "how many pods the simulated kubelets start at the same time")
	fs.BoolVar(&o.unthrottled, "unthrottled", false, "switch the flow control of the API server off")
	fs.BoolVar(&o.ceiling, "ceiling", false, "then measure how fast plain clients bind as many pods")
	fs.Float64Var(&o.atLeast, "at-least", 0, "fail if fewer pods are bound per second")
	fs.DurationVar(&o.timeout, "timeout", 10*time.Minute, "time to have everything bound")
	fs.StringVar(&o.json, "json", "", "add the rate to the JSON array of figures in this file, and print all of them")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	switch {
	case fs.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	case o.nodes < 1 || o.gangs < 1 || o.size < 1:
		return o, fmt.Errorf("-nodes, -gangs and -size must be at least 1")
	case !(o.atLeast >= 0):
		return o, fmt.Errorf("-at-least must not be negative")
	case o.kubeletParallelism < 1:
		return o, fmt.Errorf("-kubelet-parallelism must be at least 1")
	}
	return o, nil
}

// result is what was measured, and with which settings. Times are in seconds.
type result struct {
	Pods          int     `json:"pods"`
	Seconds       float64 `json:"seconds"` // from the first binding seen to the last
	PodsPerSecond float64 `json:"pods_per_second"`

	Bound              int `json:"bound"`
	PartialGangs       int `json:"partial_gangs"`
	OvercommittedNodes int `json:"overcommitted_nodes"`
	RejectedPods       int `json:"rejected_pods"` // by kubelets

	FirstBindSeconds float64 `json:"first_bind_seconds"` // from the start of the scheduler's process
	LastBindSeconds  float64 `json:"last_bind_seconds"`
	SchedulerCPU     float64 `json:"scheduler_cpu_seconds"`
	SchedulerMaxRSS  int64   `json:"scheduler_max_rss_bytes"`

	Nodes              int  `json:"nodes"`
	Gangs              int  `json:"gangs"`
	GangSize           int  `json:"gang_size"`
	Kubelets           bool `json:"kubelets"`
	KubeletParallelism int  `json:"kubelet_parallelism"`
	Unthrottled        bool `json:"unthrottled"`
	CPUs               int  `json:"cpus"` // of this machine

	CeilingPodsPerSecond float64 `json:"ceiling_pods_per_second,omitempty"`
	CeilingRatio         float64 `json:"ceiling_ratio,omitempty"` // pods_per_second in relation to it
}

func (r *result) print(w io.Writer, o options) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(r); err != nil || o.json == "" {
		return err
	}
	all, err := figures.Add(o.json, []figures.Figure{r.figure(o.atLeast)})
	if err != nil {
		return err
	}
	return figures.Table(w, all)
}

// figure is the rate, which must be at least that many pods per second.
func (r *result) figure(atLeast float64) figures.Figure {
	f := figures.Figure{Name: "drain", Value: r.PodsPerSecond, Unit: "pods/s", OK: r.problem(atLeast) == ""}
	if atLeast > 0 {
		f.Bound = &atLeast
	}
	return f
}

// problem says what was bound wrongly, not at all, or slower than atLeast pods per second; empty
// if all is well.
func (r *result) problem(atLeast float64) string {
	switch {
	case r.PartialGangs > 0:
		return fmt.Sprintf("%d gangs are bound in part", r.PartialGangs)
	case r.OvercommittedNodes > 0:
		return fmt.Sprintf("%d nodes hold more than they have", r.OvercommittedNodes)
	case r.RejectedPods > 0:
		return fmt.Sprintf("%d pods were rejected by their nodes", r.RejectedPods)
	case r.Bound < r.Pods:
		return fmt.Sprintf("only %d of %d pods were bound in time", r.Bound, r.Pods)
	case r.PodsPerSecond < atLeast:
		return fmt.Sprintf("%.0f pods were bound per second, which is less than %.0f", r.PodsPerSecond, atLeast)
	}
	return ""
}
