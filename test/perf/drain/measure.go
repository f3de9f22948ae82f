package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/batch-scheduler/batch-scheduler/test/cluster"
	"github.com/batch-scheduler/batch-scheduler/test/scheduler"
)

// stopPatience is how long the scheduler may take to stop.
const stopPatience = time.Minute

// progress reports what is going on.
type progress func(format string, args ...any)

// measure does the whole measurement.
func measure(ctx context.Context, o options, say progress) (*result, error) {
	r := &result{
		Pods: o.pods(), Nodes: o.nodes, Gangs: o.gangs, GangSize: o.size,
		Kubelets: o.kubelets, KubeletParallelism: o.kubeletParallelism, Unthrottled: o.unthrottled,
		CPUs: runtime.GOMAXPROCS(0),
	}
	if _, err := scheduler.Build(ctx, false); err != nil {
		return nil, err
	}
	if err := withCluster(ctx, o, say, func(c *cluster.Cluster) error { return drain(ctx, c, o, r, say) }); err != nil {
		return nil, err
	}
	if !o.ceiling {
		return r, nil
	}
	return r, withCluster(ctx, o, say, func(c *cluster.Cluster) error {
		rate, err := ceiling(ctx, c, o, say)
		r.CeilingPodsPerSecond, r.CeilingRatio = rate, r.PodsPerSecond/rate
		return err
	})
}

// withCluster starts a cluster for a measurement, installs config/ there, and stops it.
func withCluster(ctx context.Context, o options, say progress, use func(*cluster.Cluster) error) (err error) {
	say("starting a local cluster of %d nodes", o.nodes)
	c, err := cluster.Start(ctx, cluster.Options{
		Nodes: o.nodes, NodeSpecs: []string{o.nodeSpec},
		NoKubelets: !o.kubelets, KubeletParallelism: o.kubeletParallelism, Unthrottled: o.unthrottled,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	if err := scheduler.Install(ctx, c); err != nil {
		return err
	}
	return use(c)
}

// drain creates the gangs, starts the scheduler, and watches until all pods have nodes.
func drain(ctx context.Context, c *cluster.Cluster, o options, r *result, say progress) error {
	client, err := kubernetes.NewForConfig(fast(c.RESTConfig()))
	if err != nil {
		return err
	}
	say("creating %d gangs of %d pods", o.gangs, o.size)
	began := time.Now()
	if err = createGangs(ctx, c, client, o); err != nil {
		return err
	}
	say("created in %s", time.Since(began).Round(100*time.Millisecond))

	dir, err := os.MkdirTemp("", "drain-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	limited, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	w, err := newBindWatch(limited, client)
	if err != nil {
		return err
	}
	started := time.Now()
	s, err := scheduler.Start(ctx, c, scheduler.Options{Dir: dir})
	if err != nil {
		return err
	}
	defer s.Kill() // unless it has been stopped
	waited := w.wait(limited, o.pods(), s.Done(), say)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	r.times(w, started)
	if err := inspect(ctx, client, o, r); err != nil {
		return err
	}
	if err := s.Stop(stopPatience); err != nil {
		return err
	}
	r.process(s.State())
	if waited != nil {
		say("%v", waited) // the result says the rest
	}
	return faultless(s)
}

func (r *result) times(w *bindWatch, started time.Time) {
	if r.Bound = w.count; r.Bound == 0 {
		return
	}
	r.Seconds = w.last.Sub(w.first).Seconds()
	if r.Seconds > 0 {
		r.PodsPerSecond = float64(r.Bound) / r.Seconds
	}
	r.FirstBindSeconds, r.LastBindSeconds = w.first.Sub(started).Seconds(), w.last.Sub(started).Seconds()
}

func (r *result) process(state *os.ProcessState) {
	r.SchedulerCPU = (state.UserTime() + state.SystemTime()).Seconds()
	if usage, ok := state.SysUsage().(*syscall.Rusage); ok {
		r.SchedulerMaxRSS = usage.Maxrss * 1024 // KiB on Linux
	}
}

func faultless(s *scheduler.Scheduler) error {
	faults, err := s.Faults()
	if err != nil {
		return err
	}
	if len(faults) > 0 {
		return fmt.Errorf("the scheduler's log tells of %d faults, first: %s", len(faults), faults[0])
	}
	return nil
}

// fast has a client of the core API speak protobuf.
func fast(config *rest.Config) *rest.Config {
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = config.ContentType + ",application/json"
	return config
}

// inspect looks at what was bound.
func inspect(ctx context.Context, client kubernetes.Interface, o options, r *result) error {
	pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing pods: %w", err)
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	r.PartialGangs = partialGangs(pods.Items, o.size)
	r.OvercommittedNodes = overcommitted(nodes.Items, pods.Items)
	for i := range pods.Items {
		if pods.Items[i].Status.Phase == corev1.PodFailed {
			r.RejectedPods++
		}
	}
	return nil
}
