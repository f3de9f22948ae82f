// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package harness runs a soak: a local cluster with the scheduler, a controller that carries out the steps of a
// scenario and creates the pods of jobs, and a checker that receives all changes from watches.
package harness

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/batch-scheduler/batch-scheduler/pkg/client/clientset/versioned"
	"github.com/batch-scheduler/batch-scheduler/test/cluster"
	"github.com/batch-scheduler/batch-scheduler/test/scheduler"
	"github.com/batch-scheduler/batch-scheduler/test/soak/internal/checker"
	"github.com/batch-scheduler/batch-scheduler/test/soak/internal/scenario"
)

// policy has all four actions, and starvation reservations and degraded gangs are handled soon.
const policy = `
actions: "reclaim, allocate, backfill, preempt"
starvationAfter: 30s
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
`

// gangGrace is how long a gang may have too few members before it is degraded.
const gangGrace = 10 * time.Second

const defaultQueue = "default"

// Options configure a Harness.
type Options struct {
	// Dir receives the logs.
	Dir string
	// Race runs the scheduler with the race detector and with the audits of its model.
	Race bool
	// Say reports progress.
	Say func(format string, args ...any)
}

// Harness is a running soak.
type Harness struct {
	options    Options
	cluster    *cluster.Cluster
	client     kubernetes.Interface
	batch      versioned.Interface
	supervisor *supervisor

	watching sync.WaitGroup
	stop     context.CancelFunc // of the watches
	lost     chan error         // receives the error of a watch that ended

	mu      sync.Mutex
	checker *checker.Checker
	pods    map[string]*corev1.Pod // by namespace/name

	jobs  []*job                  // in the order of their creation
	nodes map[string]*corev1.Node // as they were created
}

// NewHarness starts everything except the scheduler.
func NewHarness(ctx context.Context, o Options) (*Harness, error) {
	s := &Harness{
		options: o, checker: checker.New(scheduler.Name, defaultQueue), pods: map[string]*corev1.Pod{}, nodes: map[string]*corev1.Node{},
		lost: make(chan error, 8), stop: func() {},
	}
	if err := s.set(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Harness) set(ctx context.Context) (err error) {
	binary, err := scheduler.Build(ctx, s.options.Race)
	if err != nil {
		return err
	}
	if err = os.Setenv(scheduler.BinaryVariable, binary); err != nil {
		return err
	}
	size := fmt.Sprintf("cpu=%d,memory=32Gi,pods=20", scenario.NodeCPU)
	s.cluster, err = cluster.Start(ctx, cluster.Options{
		NodeSpecs: []string{
			fmt.Sprintf("count=%d,%s", scenario.Plain, size),
			fmt.Sprintf("name=gpu,count=%d,%s,%s=%d", scenario.GPUNodes, size, gpu, scenario.NodeGPU),
		},
		Zones: scenario.Zones, ControllerManager: true, LogFile: filepath.Join(s.options.Dir, "cluster.log"),
	})
	if err != nil {
		return err
	}
	if s.client, err = kubernetes.NewForConfig(s.cluster.RESTConfig()); err != nil {
		return err
	}
	if s.batch, err = versioned.NewForConfig(s.cluster.RESTConfig()); err != nil {
		return err
	}
	if err = scheduler.Install(ctx, s.cluster); err != nil {
		return err
	}
	if err = s.createObjects(ctx); err != nil {
		return err
	}
	if s.supervisor, err = newSupervisor(ctx, s); err != nil {
		return err
	}
	return s.watch(ctx)
}

// createObjects creates the initial objects.
func (s *Harness) createObjects(ctx context.Context) error {
	for _, class := range scenario.Priorities() {
		if err := s.priority(ctx, class, scenario.Value(class)); err != nil {
			return err
		}
	}
	for _, name := range scenario.Namespaces() {
		_, err := s.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			_, missing := s.client.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
			return missing == nil, nil
		})
		if err != nil {
			return fmt.Errorf("waiting for the service account of namespace %s: %w", name, err)
		}
	}
	list, err := s.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, n := range list.Items {
		s.nodes[n.Name] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: n.Labels}, Status: n.Status}
	}
	for _, name := range scenario.Nodes() {
		if s.nodes[name] == nil {
			return fmt.Errorf("there is no node %s", name)
		}
	}
	return nil
}

func (s *Harness) priority(ctx context.Context, name string, value int32) error {
	_, err := s.client.SchedulingV1().PriorityClasses().Create(ctx, &schedulingv1.PriorityClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value,
	}, metav1.CreateOptions{})
	return err
}

// Check calls a function with exclusive access to the checker.
func (s *Harness) Check(do func(c *checker.Checker, now time.Time)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do(s.checker, time.Now())
}

// fail records a violation.
func (s *Harness) fail(check checker.Check, format string, args ...any) {
	s.Check(func(c *checker.Checker, now time.Time) { c.Fail(now, check, nil, fmt.Sprintf(format, args...)) })
}

// Close stops everything.
func (s *Harness) Close() {
	if s.supervisor != nil {
		s.supervisor.close()
	}
	s.stop()
	s.watching.Wait()
	if s.cluster != nil {
		if err := s.cluster.Stop(); err != nil {
			s.options.Say("stopping the cluster: %v", err)
		}
	}
}
