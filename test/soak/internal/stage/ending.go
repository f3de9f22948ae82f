package stage

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
	"github.com/batch-scheduler/batch-scheduler/test/soak/internal/course"
)

const (
	// calm is for how long the scheduler must write nothing to be at rest.
	calm = 6 * time.Second
	// settling is how long it may take to come to rest.
	settling = 3 * time.Minute
	// More goroutines and memory than that, in MiB, may be in use in the end than in the beginning: connections, and
	// what is kept for when it is needed again.
	moreGoroutines, moreHeap = 30, 12
)

// Begin starts the scheduler and returns what it takes when there is nothing to do.
func (s *Stage) Begin(ctx context.Context) (Vitals, error) {
	if err := s.keeper.start(ctx); err != nil {
		return Vitals{}, err
	}
	return s.rest(ctx, "at the beginning")
}

// Vitals returns what the scheduler says of itself now, unless it is away.
func (s *Stage) Vitals(ctx context.Context) (Vitals, error) { return s.keeper.vitals(ctx) }

// End puts the cluster in order and looks what comes of it: first with more work than fits, then with less, then with none.
func (s *Stage) End(ctx context.Context, before Vitals) error {
	s.keeper.steady()
	s.options.Say("the course is over: nodes and queues come back, pods that end do so")
	if err := s.restore(ctx); err != nil {
		return err
	}
	if _, err := s.rest(ctx, "with more work than fits"); err != nil {
		return err
	}
	s.Check(func(c *checker.Checker, _ time.Time) { c.AtRest() })

	if err := s.lighten(ctx); err != nil {
		return err
	}
	if _, err := s.rest(ctx, "with room for everything"); err != nil {
		return err
	}
	s.Check(func(c *checker.Checker, _ time.Time) { c.AllRun() })

	s.options.Say("all jobs are deleted")
	for len(s.jobs) > 0 {
		if err := s.remove(ctx, s.jobs[0]); err != nil {
			return err
		}
	}
	after, err := s.rest(ctx, "with nothing to do")
	if err != nil {
		return err
	}
	s.grown(before, after)
	return s.nothingLeft(ctx)
}

// restore undoes what the course has done to nodes, queues and budgets, and removes pods of others.
func (s *Stage) restore(ctx context.Context) error {
	for _, name := range course.Nodes() {
		if err := s.stepOfNode(ctx, course.Step{Kind: course.Return, Name: name}); err != nil {
			return err
		}
	}
	for _, name := range course.Queues() {
		if err := s.queue(ctx, name, course.Limit{CPU: 40}); err != nil {
			return err
		}
	}
	now := metav1.DeleteOptions{}
	for _, namespace := range course.Namespaces() {
		if err := s.client.PolicyV1().PodDisruptionBudgets(namespace).DeleteCollection(ctx, now, metav1.ListOptions{}); err != nil {
			return err
		}
	}
	return s.client.CoreV1().Pods(foreigners).DeleteCollection(ctx, now, metav1.ListOptions{})
}

// lighten deletes jobs until there is ample room for the rest, and lifts all caps.
func (s *Stage) lighten(ctx context.Context) error {
	for _, name := range course.Queues() {
		if err := s.queue(ctx, name, course.Limit{}); err != nil {
			return err
		}
	}
	var jobs []course.Job
	for _, j := range s.jobs {
		jobs = append(jobs, j.Job)
	}
	stay, deleted := course.Keep(jobs), 0
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

// rest waits until the scheduler writes nothing any more and no pod is on its way. If that does not come to pass it is
// a violation, and the soak goes on.
func (s *Stage) rest(ctx context.Context, when string) (Vitals, error) {
	s.Check(func(c *checker.Checker, _ time.Time) { c.Made(checker.Rest) })
	began := time.Now()
	since, last := began, Vitals{Writes: -1}
	for {
		if err := s.reconcileUntil(ctx, time.Now().Add(time.Second)); err != nil {
			return last, err
		}
		now, err := s.keeper.vitals(ctx)
		if err != nil {
			return last, err
		}
		busy := s.unfinished()
		if now.Writes != last.Writes || busy > 0 {
			since = time.Now()
		}
		last = now
		if time.Since(since) >= calm {
			s.options.Say("at rest %s, after %s", when, time.Since(began).Round(time.Second))
			return last, nil
		}
		if time.Since(began) > settling {
			s.notAtRest(when, busy)
			return last, nil
		}
	}
}

// unfinished is how many pods are about to end, to go, or to start, and how many are missing.
func (s *Stage) unfinished() int {
	n := 0
	s.Check(func(c *checker.Checker, _ time.Time) {
		n = c.Unfinished(func(p *corev1.Pod) bool { return p.Annotations[annotation.RunFor] != "" })
	})
	return n
}

func (s *Stage) notAtRest(when string, busy int) {
	s.Check(func(c *checker.Checker, now time.Time) {
		waiting := c.Waiting()
		c.Fail(now, checker.Rest, nil, fmt.Sprintf("not at rest %s after %s: %d pods on their way, %d jobs wait\n    %s",
			when, settling, busy, len(waiting), strings.Join(waiting[:min(len(waiting), 10)], "\n    ")))
	})
}

// grown compares what the scheduler takes in the end with what it took in the beginning.
func (s *Stage) grown(before, after Vitals) {
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

// nothingLeft holds queues to say that they hold nothing.
func (s *Stage) nothingLeft(ctx context.Context) error {
	list, err := s.batch.SchedulingV1alpha1().Queues().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	s.Check(func(c *checker.Checker, now time.Time) {
		c.Made(checker.Fits)
		if !c.Empty() {
			c.Fail(now, checker.Rest, nil, "pods or groups are left that nobody keeps")
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
