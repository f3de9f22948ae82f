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
	// idle is for how long the scheduler must write nothing to be at rest.
	idle = 6 * time.Second
	// settling is how long it may take to come to rest.
	settling = 3 * time.Minute
	// More goroutines and memory than that, in MiB, may be in use in the end than in the beginning: connections, and
	// what is kept for when it is needed again.
	moreGoroutines, moreHeap = 30, 12
)

// Begin starts the scheduler and returns what it takes when there is nothing to do.
func (s *Harness) Begin(ctx context.Context) (Vitals, error) {
	if err := s.supervisor.start(ctx); err != nil {
		return Vitals{}, err
	}
	return s.converge(ctx, "at the beginning")
}

// Vitals returns what the scheduler says of itself now, unless it is away.
func (s *Harness) Vitals(ctx context.Context) (Vitals, error) { return s.supervisor.vitals(ctx) }

// End puts the cluster in order and looks what comes of it: first with more work than fits, then with less, then with none.
func (s *Harness) End(ctx context.Context, before Vitals) error {
	s.supervisor.waitReady()
	s.options.Say("the course is over: nodes and queues come back, pods that end do so")
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
	if _, err := s.converge(ctx, "with room for everything"); err != nil {
		return err
	}
	s.Check(func(c *checker.Checker, _ time.Time) { c.AllRun() })

	s.options.Say("all jobs are deleted")
	for len(s.jobs) > 0 {
		if err := s.remove(ctx, s.jobs[0]); err != nil {
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

// restore undoes what the course has done to nodes, queues and budgets, and removes pods of others.
func (s *Harness) restore(ctx context.Context) error {
	for _, name := range scenario.Nodes() {
		if err := s.stepOfNode(ctx, scenario.Step{Kind: scenario.NodeReturn, Name: name}); err != nil {
			return err
		}
	}
	for _, name := range scenario.Queues() {
		if err := s.queue(ctx, name, scenario.Limit{CPU: 40}); err != nil {
			return err
		}
	}
	now := metav1.DeleteOptions{}
	for _, namespace := range scenario.Namespaces() {
		if err := s.client.PolicyV1().PodDisruptionBudgets(namespace).DeleteCollection(ctx, now, metav1.ListOptions{}); err != nil {
			return err
		}
	}
	return s.client.CoreV1().Pods(foreignPods).DeleteCollection(ctx, now, metav1.ListOptions{})
}

// reduceLoad deletes jobs until there is ample room for the rest, and lifts all caps.
func (s *Harness) reduceLoad(ctx context.Context) error {
	for _, name := range scenario.Queues() {
		if err := s.queue(ctx, name, scenario.Limit{}); err != nil {
			return err
		}
	}
	var jobs []scenario.Job
	for _, j := range s.jobs {
		jobs = append(jobs, j.Job)
	}
	stay, deleted := scenario.Keep(jobs), 0
	for i, j := range slices.Clone(s.jobs) {
		if stay[i] {
			continue
		}
		deleted++
		if err := s.remove(ctx, j); err != nil {
			return err
		}
	}
	s.options.Say("%d of %d jobs are deleted, the rest fits with ease", deleted, len(stay))
	return nil
}

// converge waits until the scheduler writes nothing any more and no pod is on its way. If that does not come to pass it is
// a violation, and the soak goes on.
func (s *Harness) converge(ctx context.Context, when string) (Vitals, error) {
	s.Check(func(c *checker.Checker, _ time.Time) { c.Made(checker.Converged) })
	began := time.Now()
	since, last := began, Vitals{Writes: -1}
	for {
		if err := s.reconcileUntil(ctx, time.Now().Add(time.Second)); err != nil {
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
			s.options.Say("at rest %s, after %s", when, time.Since(began).Round(time.Second))
			return last, nil
		}
		if time.Since(began) > settling {
			s.notConverged(when, busy)
			return last, nil
		}
	}
}

// unfinished is how many pods are about to end, to go, or to start, and how many are missing.
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
		c.Fail(now, checker.Converged, nil, fmt.Sprintf("not at rest %s after %s: %d pods on their way, %d jobs wait\n    %s",
			when, settling, busy, len(waiting), strings.Join(waiting[:min(len(waiting), 10)], "\n    ")))
	})
}

// leaked compares what the scheduler takes in the end with what it took in the beginning.
func (s *Harness) leaked(before, after Vitals) {
	s.options.Say("the scheduler had %.0f goroutines and %.1f MiB in use at the beginning, and has %.0f and %.1f now",
		before.Goroutines, before.Heap, after.Goroutines, after.Heap)
	s.Check(func(c *checker.Checker, now time.Time) {
		c.Made(checker.Growth)
		if after.Goroutines > before.Goroutines+moreGoroutines {
			c.Fail(now, checker.Growth, nil, fmt.Sprintf("%.0f goroutines have become %.0f", before.Goroutines, after.Goroutines))
		}
		if after.Heap > before.Heap+moreHeap {
			c.Fail(now, checker.Growth, nil, fmt.Sprintf("%.1f MiB in use have become %.1f", before.Heap, after.Heap))
		}
	})
}

// cleanedUp holds queues to say that they hold nothing.
func (s *Harness) cleanedUp(ctx context.Context) error {
	list, err := s.batch.SchedulingV1alpha1().Queues().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	s.Check(func(c *checker.Checker, now time.Time) {
		c.Made(checker.Fits)
		if !c.Empty() {
			c.Fail(now, checker.Converged, nil, "pods or groups are left that nobody keeps")
		}
		for _, q := range list.Items {
			for resource, amount := range q.Status.Allocated {
				if !amount.IsZero() {
					c.Fail(now, checker.Fits, []string{"queue " + q.Name}, fmt.Sprintf("queue %s says that it holds %s %s, and there are no pods", q.Name, amount.String(), resource))
				}
			}
		}
	})
	return nil
}
