// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package evict

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// report reports that the first victims of a job are evicted: to the log, and to the owner of the PodGroup, whose
// condition and event remain when the pods do not exist any more.
func (e *Evictor) report(p *Plan, victims []*Victim, evicted int) {
	job, cause := p.Jobs[victims[0].Job], victims[0].Cause
	gang := job.Missing > int32(len(victims)-evicted)
	frees := job.Frees
	if evicted < len(victims) {
		frees = "" // it is the sum of all victims
	}
	e.Log.Info("Pods evicted", "job", klog.KRef(job.Namespace, job.Name), "queue", klog.KRef("", job.Queue), "priority", job.Priority,
		"pods", evicted, "gang", gang, "frees", frees, "action", action(cause),
		"preemptor", p.Preemptor, "preemptorQueue", klog.KRef("", p.Queue), "preemptorPriority", p.Priority)
	if job.PodGroup == nil {
		return
	}
	now := e.Clock.Now()
	condition := metav1.Condition{
		Type:   v1alpha1.ConditionEvicted,
		Status: metav1.ConditionFalse,
		Reason: cause.Reason(),
		// The API server keeps whole seconds.
		LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)),
		Message:            p.message(evicted, gang, cause, now),
	}
	if gang {
		condition.Status = metav1.ConditionTrue
	}
	e.Metrics.PodGroupEvicted(job.Queue, cause.String(), gang)
	e.Events.PodGroupEvicted(*job.PodGroup, condition)
	e.Status.PodGroupEvicted(*job.PodGroup, condition)
}

// mark returns when the PodGroup of a gang shows that the gang is about to be evicted. A failure is logged only.
func (x *execution) mark(ctx context.Context, j *job) {
	of := x.plan.Jobs[j.victims[0].Job]
	if of == nil || !of.Announced || of.Missing <= 0 {
		return
	}
	x.lock()
	first := !j.marking
	j.marking = true
	x.unlock()
	if !first {
		<-j.marked
		return
	}
	defer close(j.marked)
	message := fmt.Sprintf("the gang (%s) is being evicted by %s %s", countPods(len(j.victims)), action(j.victims[0].Cause), x.plan.why())
	if err := x.Status.MarkDisruption(ctx, *of.PodGroup, message); err != nil {
		x.Log.V(2).Info("Status update failed", "object", klog.KRef(of.Namespace, of.Name), "preemptor", x.plan.Preemptor, "err", err)
	}
}

// message is what the owner of the evicted pods reads.
func (p *Plan) message(pods int, gang bool, cause api.EvictionCause, at time.Time) string {
	text := fmt.Sprintf("evicted by %s at %s %s", action(cause), at.UTC().Format(time.RFC3339), p.why())
	switch {
	case gang:
		return fmt.Sprintf("the gang (%s) was %s", countPods(pods), text)
	case pods == 1:
		return "1 surplus pod was " + text + "; the gang continues to run"
	}
	return fmt.Sprintf("%d surplus pods were %s; the gang continues to run", pods, text)
}

// why says for whom pods are evicted, or why.
func (p *Plan) why() string {
	if p.Preemptor == "" {
		return "because its limit has passed"
	}
	return fmt.Sprintf("for %s (queue %s, priority %d)", p.Preemptor, p.Queue, p.Priority)
}

// maxNamed is how many jobs the preemptor's event names.
const maxNamed = 3

// victimJobs names the jobs of the victims, with the numbers of their pods. The owner of the preemptor learns no names
// of other namespaces.
func (p *Plan) victimJobs() string {
	var named []string
	more := 0
	for begin := 0; begin < len(p.Victims); {
		victims := p.nextJob(begin)
		begin += len(victims)
		if job := p.Jobs[victims[0].Job]; job.Namespace == p.PodGroup.Namespace && len(named) < maxNamed {
			named = append(named, fmt.Sprintf("%d of %s/%s", len(victims), job.Namespace, job.Name))
		} else {
			more += len(victims)
		}
	}
	switch {
	case len(named) == 0:
		return "all in other namespaces"
	case more == 0:
		return strings.Join(named, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(named, ", "), more)
}

func countPods(n int) string {
	if n == 1 {
		return "1 pod"
	}
	return fmt.Sprintf("%d pods", n)
}

// action returns the name of the action that evicts for a cause.
func action(cause api.EvictionCause) string {
	switch cause {
	case api.Reclaimed:
		return "reclaim"
	case api.GangDegraded:
		return "degraded"
	case api.Overran:
		return "overrun"
	}
	return "preempt"
}
