// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/cmd/localcluster/annotation"
	"github.com/batch-scheduler/batch-scheduler/test/soak/internal/checker"
	"github.com/batch-scheduler/batch-scheduler/test/soak/internal/scenario"
)

const (
	// idle is how long the scheduler must not write to count as idle.
	idle = 6 * time.Second
	// convergenceTimeout is how long it may take to become idle.
	convergenceTimeout = 3 * time.Minute
	// The maximum growth of goroutines and of memory in MiB, for connections and for caches that are kept.
	moreGoroutines, moreHeap = 30, 12
)

// Begin starts the scheduler and returns its resource usage on an empty cluster.
func (s *Harness) Begin(ctx context.Context) (Vitals, error) {
	if err := s.supervisor.start(ctx); err != nil {
		return Vitals{}, err
	}
	return s.converge(ctx, "at the beginning")
}

// Vitals returns the current metrics of the scheduler; an error if it does not run.
func (s *Harness) Vitals(ctx context.Context) (Vitals, error) { return s.supervisor.vitals(ctx) }

// End restores the cluster and checks it: with more work than fits, with less, and without any.
func (s *Harness) End(ctx context.Context, before Vitals) error {
	s.supervisor.waitReady()
	s.options.Say("the scenario is over: restoring nodes and queues, waiting for pods")
	if err := s.restore(ctx); err != nil {
		return err
	}
	if _, err := s.converge(ctx, "with more work than fits"); err != nil {
		return err
	}
	s.Check(func(c *checker.Checker, _ time.Time) { c.Converged() })

	if err := s.reduceLoad(ctx); err != nil {
		return err
	}
	if _, err := s.converge(ctx, "when everything fits"); err != nil {
		return err
	}
	s.Check(func(c *checker.Checker, _ time.Time) { c.AllRun() })

	s.options.Say("deleting all jobs")
	for len(s.jobs.jobs) > 0 {
		if err := s.jobs.remove(ctx, s.jobs.jobs[0]); err != nil {
			return err
		}
	}
	after, err := s.converge(ctx, "with nothing to do")
	if err != nil {
		return err
	}
	s.leaked(before, after)
	return s.cleanedUp(ctx)
}

// restore reverts what the scenario has done to nodes, queues and budgets, and deletes foreign pods.
func (s *Harness) restore(ctx context.Context) error {
	for _, name := range scenario.Nodes() {
		if err := s.player.stepOfNode(ctx, scenario.Step{Kind: scenario.NodeReturn, Name: name}); err != nil {
			return err
		}
	}
	for _, name := range scenario.Queues() {
		if err := s.player.queue(ctx, name, scenario.Limit{CPU: 40}); err != nil {
			return err
		}
	}
	now := metav1.DeleteOptions{}
	for _, namespace := range scenario.Namespaces() {
		if err := s.clients.client.PolicyV1().PodDisruptionBudgets(namespace).DeleteCollection(ctx, now, metav1.ListOptions{}); err != nil {
			return err
		}
	}
	return s.clients.client.CoreV1().Pods(foreignPods).DeleteCollection(ctx, now, metav1.ListOptions{})
}

// reduceLoad deletes jobs until everything fits easily, and removes all capabilities.
func (s *Harness) reduceLoad(ctx context.Context) error {
	for _, name := range scenario.Queues() {
		if err := s.player.queue(ctx, name, scenario.Limit{}); err != nil {
			return err
		}
	}
	var jobs []scenario.Job
	for _, j := range s.jobs.jobs {
		jobs = append(jobs, j.Job)
	}
	stay, deleted := scenario.Keep(jobs), 0
	for i, j := range slices.Clone(s.jobs.jobs) {
		if stay[i] {
			continue
		}
		deleted++
		if err := s.jobs.remove(ctx, j); err != nil {
			return err
		}
	}
	s.options.Say("%d of %d jobs are deleted, the rest fits easily", deleted, len(stay))
	return nil
}

// converge waits until the scheduler stops writing and no pod is in transition. A timeout is a violation; the soak
// continues.
func (s *Harness) converge(ctx context.Context, when string) (Vitals, error) {
	s.Check(func(c *checker.Checker, _ time.Time) { c.Made(checker.Converged) })
	began := time.Now()
	since, last := began, Vitals{Writes: -1}
	for {
		if err := s.jobs.reconcileUntil(ctx, time.Now().Add(time.Second)); err != nil {
			return last, err
		}
		now, err := s.supervisor.vitals(ctx)
		if err != nil {
			return last, err
		}
		busy := s.unfinished()
		if now.Writes != last.Writes || busy > 0 {
			since = time.Now()
		}
		last = now
		if time.Since(since) >= idle {
			s.options.Say("idle %s, after %s", when, time.Since(began).Round(time.Second))
			return last, nil
		}
		if time.Since(began) > convergenceTimeout {
			s.notConverged(when, busy)
			return last, nil
		}
	}
}

// unfinished returns the number of pods that are about to end, terminating, starting, or missing.
func (s *Harness) unfinished() int {
	n := 0
	s.Check(func(c *checker.Checker, _ time.Time) {
		n = c.Unfinished(func(p *corev1.Pod) bool { return p.Annotations[annotation.RunFor] != "" })
	})
	return n
}

func (s *Harness) notConverged(when string, busy int) {
	s.Check(func(c *checker.Checker, now time.Time) {
		waiting := c.Waiting()
		c.Fail(now, checker.Converged, nil, fmt.Sprintf("not idle %s after %s: %d pods in transition, %d jobs pending\n    %s",
			when, convergenceTimeout, busy, len(waiting), strings.Join(waiting[:min(len(waiting), 10)], "\n    ")))
	})
}

// leaked compares the resource usage of the scheduler at the end with that at the start.
func (s *Harness) leaked(before, after Vitals) {
	s.options.Say("goroutines and MiB in use: %.0f and %.1f at the start, %.0f and %.1f now",
		before.Goroutines, before.Heap, after.Goroutines, after.Heap)
	s.Check(func(c *checker.Checker, now time.Time) {
		c.Made(checker.Growth)
		if after.Goroutines > before.Goroutines+moreGoroutines {
			c.Fail(now, checker.Growth, nil, fmt.Sprintf("goroutines increased from %.0f to %.0f", before.Goroutines, after.Goroutines))
		}
		if after.Heap > before.Heap+moreHeap {
			c.Fail(now, checker.Growth, nil, fmt.Sprintf("MiB in use increased from %.1f to %.1f", before.Heap, after.Heap))
		}
	})
}

// cleanedUp checks that the status of queues reports no allocation.
func (s *Harness) cleanedUp(ctx context.Context) error {
	list, err := s.clients.batch.SchedulingV1alpha1().Queues().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	s.Check(func(c *checker.Checker, now time.Time) {
		c.Made(checker.Fits)
		if !c.Empty() {
			c.Fail(now, checker.Converged, nil, "pods or groups without an owner are left")
		}
		for _, q := range list.Items {
			for resource, amount := range q.Status.Allocated {
				if !amount.IsZero() {
					c.Fail(now, checker.Fits, []string{"queue " + q.Name}, fmt.Sprintf("the status of queue %s reports %s %s, and there are no pods", q.Name, amount.String(), resource))
				}
			}
		}
	})
	return nil
}
