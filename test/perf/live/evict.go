// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/batch-scheduler/batch-scheduler/test/cluster"
	"github.com/batch-scheduler/batch-scheduler/test/perf/figures"
	"github.com/batch-scheduler/batch-scheduler/test/perf/testbed"
)

// evictions is a cluster full of gangs of low priority, in which a gang of high priority arrives. The scheduler evicts
// as many pods as the gang has, and binds the gang. First plain clients evict as many pods and bind a gang, each pod as
// soon as a victim has ended. Both are repeated; the evicted pods are created again in between.
type evictions struct {
	nodes, gangs, size int // they fill the nodes
	preemptor          int // pods of the arriving gang
	budgets            int // disruption budgets, which cover every third pod; each allows all evictions
	rounds             int
}

const (
	// evictingPolicy is the built-in policy with preemption.
	evictingPolicy = `
actions: "allocate, backfill, preempt"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
`
	urgent      = "urgent" // the priority class of the arriving gang
	budgetLabel = "budget"

	// evictTimeout is the maximum time for the gang to start, and for the cluster to be full.
	evictTimeout = 3 * time.Minute
	// evictPause is the time before the gang arrives.
	evictPause = 2 * time.Second
	// evictLimit is the bound of the time for the gang to start, in seconds.
	evictLimit = 15
)

// eviction is a running measurement.
type eviction struct {
	evictions
	bed     *testbed.Bed
	clients testbed.Plain
	low     []*corev1.Pod
}

func (m evictions) measure(ctx context.Context, b bench) ([]figures.Figure, error) {
	var plain, gangs []float64
	o := testbed.Options{
		Cluster: cluster.Options{
			Nodes: m.nodes, NodeSpecs: []string{fmt.Sprintf("cpu=%d,memory=256Gi,pods=110", m.gangs*m.size/m.nodes)},
			ControllerManager: m.budgets > 0, // which updates the status of budgets
		},
		Profiles: b.profiles, Progress: b.say,
	}
	err := testbed.Use(ctx, o, func(bed *testbed.Bed) (err error) {
		e := &eviction{evictions: m, bed: bed, low: m.lowPods()}
		if err = e.prepare(ctx); err != nil {
			return err
		}
		if plain, err = e.repeat(ctx, e.plain, e.fill); err != nil {
			return err
		}
		b.say("plain clients evict and bind %d pods in %.2f s", m.preemptor, plain)
		gangs, err = e.scheduled(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	b.say("the gang started after %.2f s", gangs)
	slices.Sort(plain)
	slices.Sort(gangs)
	ceiling, taken := quantile(plain, 0.5), quantile(gangs, 0.5)
	return []figures.Figure{
		unbounded("ceiling", float64(m.preemptor)/ceiling, "pods/s"),
		unbounded("scheduler", float64(m.preemptor)/taken, "pods/s"),
		atMost("latency", taken, "s", evictLimit),
		atLeast("of-ceiling", ceiling/taken, "ratio", 0.5),
	}, nil
}

func (m evictions) lowPods() []*corev1.Pod {
	pods := testbed.Pods(testbed.Gangs(m.gangs, m.size))
	if m.budgets == 0 {
		return pods
	}
	for i := 0; i < len(pods); i += 3 {
		pods[i].Labels[budgetLabel] = strconv.Itoa(i / 3 % m.budgets)
	}
	return pods
}

func (m evictions) arriving() testbed.Gang {
	return testbed.Gang{Name: "arriving", Size: m.preemptor, PriorityClass: urgent}
}

// prepare fills the cluster.
func (e *eviction) prepare(ctx context.Context) (err error) {
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: urgent}, Value: 1000}
	if _, err = e.bed.Client.SchedulingV1().PriorityClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil {
		return err
	}
	if e.clients, err = e.bed.PlainClients(ctx); err != nil {
		return err
	}
	if err = e.bed.CreateGroups(ctx, testbed.Gangs(e.gangs, e.size)...); err != nil {
		return err
	}
	none := intstr.FromInt32(0)
	for i := range e.budgets {
		b := &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("budget-%d", i)},
			Spec: policyv1.PodDisruptionBudgetSpec{
				MinAvailable: &none,
				Selector:     &metav1.LabelSelector{MatchLabels: map[string]string{budgetLabel: strconv.Itoa(i)}},
			},
		}
		if _, err = e.bed.Client.PolicyV1().PodDisruptionBudgets(testbed.Namespace).Create(ctx, b, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return e.fill(ctx)
}

// repeat measures a number of times how long the arriving gang takes to start, in seconds. Between the rounds it
// deletes the gang, and fills the cluster again.
func (e *eviction) repeat(ctx context.Context, once, fill func(context.Context) error) ([]float64, error) {
	var seconds []float64
	for range e.rounds {
		time.Sleep(evictPause)
		limited, cancel := context.WithTimeout(ctx, evictTimeout)
		start := newStarts()
		err := e.bed.WatchPods(limited, testbed.Sights{Bound: func(pod *corev1.Pod) { start.see(pod, time.Now()) }})
		if err == nil {
			err = e.round(limited, start, once)
		}
		cancel()
		if err != nil {
			return nil, err
		}
		seconds = append(seconds, start.latencies()[0]/1000)
		if err = e.bed.Remove(ctx, e.arriving()); err != nil {
			return nil, err
		}
		if err = fill(ctx); err != nil {
			return nil, err
		}
	}
	return seconds, nil
}

// round lets the gang arrive and waits until it has started. It fails if anything is bound incorrectly, or if more pods
// were evicted than the gang has.
func (e *eviction) round(ctx context.Context, start *starts, once func(context.Context) error) error {
	gang := e.arriving()
	over := start.expect(gang)
	if err := e.bed.Submit(ctx, gang); err != nil {
		return err
	}
	start.created(gang, time.Now())
	if err := once(ctx); err != nil {
		return err
	}
	select {
	case <-over:
	case <-ctx.Done():
		return fmt.Errorf("the gang has not started: %w", context.Cause(ctx))
	}
	if err := e.terminated(ctx); err != nil {
		return err
	}
	found, err := e.bed.Inspect(ctx, append(testbed.Gangs(e.gangs, e.size), gang))
	if err != nil {
		return err
	}
	if problem := found.Problem(); problem != "" {
		return errors.New(problem)
	}
	missing, err := e.missing(ctx)
	if err == nil && len(missing) != e.preemptor {
		err = fmt.Errorf("%d pods were evicted, want %d", len(missing), e.preemptor)
	}
	return err
}

// plain lets plain clients evict the last gangs, and bind a pod as soon as a victim has ended.
func (e *eviction) plain(ctx context.Context) error {
	victims, pods := e.low[len(e.low)-e.preemptor:], testbed.Pods([]testbed.Gang{e.arriving()})
	toEvict, toBind, freed := make(chan string, len(victims)), make(chan string, len(pods)), make(chan string, len(victims))
	for i := range victims {
		toEvict <- victims[i].Name
		toBind <- pods[i].Name
	}
	if err := e.bed.WatchPods(ctx, testbed.Sights{Ended: func(pod *corev1.Pod) { freed <- pod.Spec.NodeName }}); err != nil {
		return err
	}
	return e.clients.Do(ctx, len(victims)+len(pods), func(ctx context.Context, client kubernetes.Interface, _ int) error {
		select { // binds have precedence
		case node := <-freed:
			return testbed.Bind(ctx, client, <-toBind, node)
		default:
		}
		select {
		case node := <-freed:
			return testbed.Bind(ctx, client, <-toBind, node)
		case victim := <-toEvict:
			return testbed.Evict(ctx, client, victim)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
}

// scheduled measures the scheduler.
func (e *eviction) scheduled(ctx context.Context) ([]float64, error) {
	s, err := e.bed.StartSchedulerWith(ctx, evictingPolicy)
	if err != nil {
		return nil, err
	}
	defer s.Kill() // if it has not been stopped
	if err = s.Ready(ctx); err != nil {
		return nil, err
	}
	profiled := s.Profile(ctx, "evict", evictLimit*time.Second)
	seconds, err := e.repeat(ctx, func(context.Context) error { return nil }, e.refill)
	if err != nil {
		return nil, err
	}
	if err = profiled(); err != nil {
		return nil, err
	}
	return seconds, s.End()
}

// fill creates the missing pods and binds them to their nodes.
func (e *eviction) fill(ctx context.Context) error {
	missing, err := e.missing(ctx)
	if err != nil {
		return err
	}
	nodes := map[string]string{}
	for i, pod := range e.low {
		nodes[pod.Name] = testbed.NodeName(i % e.nodes)
	}
	if err = e.bed.Create(ctx, missing); err != nil {
		return err
	}
	err = e.clients.Do(ctx, len(missing), func(ctx context.Context, client kubernetes.Interface, i int) error {
		return testbed.Bind(ctx, client, missing[i].Name, nodes[missing[i].Name])
	})
	if err != nil {
		return err
	}
	return e.full(ctx)
}

// refill creates the missing pods for the scheduler.
func (e *eviction) refill(ctx context.Context) error {
	missing, err := e.missing(ctx)
	if err == nil {
		err = e.bed.Create(ctx, missing)
	}
	if err != nil {
		return err
	}
	return e.full(ctx)
}

// terminated waits until no pod is being deleted: the last victims have ended, but may still exist.
func (e *eviction) terminated(ctx context.Context) error {
	return wait.PollUntilContextCancel(ctx, 200*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		list, err := e.bed.Client.CoreV1().Pods(testbed.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		return !slices.ContainsFunc(list.Items, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil }), nil
	})
}

// missing lists the pods of low priority that do not exist.
func (e *eviction) missing(ctx context.Context) ([]*corev1.Pod, error) {
	list, err := e.bed.Client.CoreV1().Pods(testbed.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	existing := map[string]bool{}
	for i := range list.Items {
		existing[list.Items[i].Name] = list.Items[i].DeletionTimestamp == nil
	}
	return slices.DeleteFunc(slices.Clone(e.low), func(pod *corev1.Pod) bool { return existing[pod.Name] }), nil
}

// full waits until all pods of low priority run, and until the budgets allow to evict theirs.
func (e *eviction) full(ctx context.Context) error {
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, evictTimeout, true, func(ctx context.Context) (bool, error) {
		running, err := e.running(ctx)
		if err != nil || running < len(e.low) {
			return false, err
		}
		allowed, err := e.allowed(ctx)
		return e.budgets == 0 || allowed == (len(e.low)+2)/3, err
	})
	if err != nil {
		return fmt.Errorf("the cluster is not full: %w", err)
	}
	return nil
}

// running is the number of pods that run, including those of the arriving gang.
func (e *eviction) running(ctx context.Context) (int, error) {
	list, err := e.bed.Client.CoreV1().Pods(testbed.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	running := 0
	for i := range list.Items {
		if list.Items[i].Status.Phase == corev1.PodRunning {
			running++
		}
	}
	return running, nil
}

// allowed is the number of evictions that the budgets allow.
func (e *eviction) allowed(ctx context.Context) (int, error) {
	list, err := e.bed.Client.PolicyV1().PodDisruptionBudgets(testbed.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	sum := 0
	for i := range list.Items {
		sum += int(list.Items[i].Status.DisruptionsAllowed)
	}
	return sum, nil
}
