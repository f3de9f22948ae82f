// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package evict

import (
	"context"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/metrics"
)

// checkedVictims is how many victims of jobs may be evicted after one check that the preemptor still waits. The last job
// may exceed it, because it is not divided.
const checkedVictims = 32

// execution is a plan that is being carried out; the package comment describes the steps.
type execution struct {
	*Evictor
	plan *Plan
	ctx  context.Context // ends when the evictor stops
	jobs []*job          // in the order of the plan

	// state is a lock for the fields below and those of jobs: it is free while it holds an element. A goroutine may
	// hold it while it waits for the API server.
	state     chan struct{}
	unchecked int  // how many victims of jobs may begin before the next check
	stopped   bool // no other job begins
	results   map[*Victim]error
}

// job is the victims of one job.
type job struct {
	victims []*Victim
	ended   []endedJob // Jobs that fail if the victims are evicted
	begun   bool       // it is being evicted
	evicted int        // victims
	refused bool       // one of its evictions was refused, so the victims that are not sent yet stay
	marking bool       // its PodGroup is being marked, see mark
	marked  chan struct{}
}

func newExecution(ctx context.Context, e *Evictor, p *Plan) *execution {
	x := &execution{Evictor: e, plan: p, ctx: ctx, state: make(chan struct{}, 1), results: map[*Victim]error{}}
	x.unlock()
	for begin := 0; begin < len(p.Victims); {
		victims := p.nextJob(begin)
		x.jobs = append(x.jobs, &job{victims: victims, marked: make(chan struct{})})
		begin += len(victims)
	}
	return x
}

func (x *execution) lock()   { <-x.state }
func (x *execution) unlock() { x.state <- struct{}{} }

// run carries the plan out and reports what became of it.
func (x *execution) run() {
	if x.ctx.Err() != nil || !x.validate() {
		return
	}
	x.evictProtected()
	x.evictOthers()
	x.conclude()
}

// validate sends all evictions as dry runs, reads disruption budgets, and reports whether nothing refuses an eviction.
// Otherwise no pod of the plan is evicted.
func (x *execution) validate() bool {
	errs := make([]error, len(x.plan.Victims))
	x.each(len(errs), func(i int) {
		if err := x.call(x.ctx, x.plan.Victims[i], metav1.DryRunAll); err != nil && !mayBeGone(err) {
			errs[i] = err
		}
	})
	refused := x.exceedingBudgets()
	for i, err := range errs {
		if err != nil {
			refused[x.plan.Victims[i]] = err
		}
	}
	if len(refused) == 0 && x.ctx.Err() == nil {
		x.each(len(x.jobs), func(i int) { x.jobs[i].ended = endedJobs(x.ctx, x.Kube, x.jobs[i].victims) })
		return true
	}
	for _, victim := range x.plan.Victims {
		if err := refused[victim]; err != nil {
			x.Log.V(2).Info("Eviction refused in dry run", "pod", victim.ref(), "preemptor", x.plan.Preemptor, "err", err)
			if of := x.plan.Jobs[victim.Job]; x.plan.Preemptor == "" && of != nil && of.PodGroup != nil {
				x.Events.EvictionRefused(*of.PodGroup, err)
			}
		}
	}
	x.fail(x.plan.Victims, refused)
	return false
}

// each calls f for 0 to count-1, as many at a time as there are permits. It begins no other call when the evictor stops.
func (x *execution) each(count int, f func(int)) {
	var running sync.WaitGroup
	for i := range count {
		x.requests.acquire(other)
		if x.ctx.Err() != nil {
			x.requests.release()
			break
		}
		running.Go(func() {
			defer x.requests.release()
			f(i)
		})
	}
	running.Wait()
}

// evictOthers evicts the other victims: first of the jobs that have lost a pod, then of all jobs.
func (x *execution) evictOthers() {
	var running sync.WaitGroup
	var waiting []*job
	for _, j := range x.jobs {
		if !j.begun {
			waiting = append(waiting, j)
			continue
		}
		running.Go(func() {
			x.requests.acquire(begun)
			x.complete(j)
		})
	}
	for _, j := range waiting {
		x.requests.acquire(other)
		if !x.begin(j) {
			x.requests.release()
			break
		}
		running.Go(func() { x.evictJob(j) })
	}
	running.Wait()
}

// evictJob evicts one victim, and then the others of the job: what refuses the evictions of a job, but not their dry
// runs, refuses the first one. The caller has acquired a permit, which evictJob releases.
func (x *execution) evictJob(j *job) {
	if x.evict(j, j.victims[0]) {
		x.complete(j)
	} else {
		x.requests.release()
	}
}

// complete evicts the victims of a job that are not evicted yet, unless an eviction is refused, and reports the
// evictions of the job. The caller has acquired a permit, which complete releases.
func (x *execution) complete(j *job) {
	held := true
	var running sync.WaitGroup
	for _, victim := range x.rest(j) {
		if !held {
			x.requests.acquire(begun)
		}
		held = false
		if !x.begin(j) {
			x.requests.release()
			break
		}
		running.Go(func() {
			x.evict(j, victim)
			x.requests.release()
		})
	}
	if held {
		x.requests.release()
	}
	running.Wait()
	if j.evicted == 0 {
		return
	}
	x.report(x.plan, j.victims, j.evicted)
	for _, ended := range j.ended {
		x.Events.JobEnded(ended.job, x.plan.Preemptor, ended.reason)
	}
}

// rest returns the victims of a job that were not sent.
func (x *execution) rest(j *job) []*Victim {
	x.lock()
	defer x.unlock()
	return slices.DeleteFunc(slices.Clone(j.victims), func(v *Victim) bool {
		_, sent := x.results[v]
		return sent
	})
}

func (x *execution) precedence(j *job) precedence {
	x.lock()
	defer x.unlock()
	if j.begun {
		return begun
	}
	return other
}

// begin reports whether a victim of a job may be evicted. A job that has begun is completed unless one of its own
// evictions is refused. Another job begins if nothing has stopped the plan, and if the preemptor still waits. The
// caller has acquired a permit.
func (x *execution) begin(j *job) bool {
	x.lock()
	defer x.unlock()
	if j.begun {
		return !j.refused
	}
	if x.stopped = x.stopped || x.ctx.Err() != nil || !x.needed(len(j.victims)); x.stopped {
		return false
	}
	j.begun = true
	return true
}

// needed reports whether the preemptor still waits for the resources, as of the last check. The caller holds the lock.
func (x *execution) needed(victims int) bool {
	if x.unchecked <= 0 {
		if !x.waits(context.WithoutCancel(x.ctx), x.plan.PreemptorPod) {
			return false
		}
		x.unchecked = checkedVictims
	}
	x.unchecked -= victims
	return true
}

// evict evicts one victim of a job. It reports false if the eviction is refused, which stops the plan.
func (x *execution) evict(j *job, victim *Victim) bool {
	calls := context.WithoutCancel(x.ctx)
	x.mark(calls, j)
	x.annotate(calls, victim, x.plan.Preemptor)
	err := x.Evictor.evict(calls, victim)
	if err == nil {
		x.backoff.Forget(victim.UID)
		x.Metrics.Eviction(victim.Cause.String(), metrics.Evicted)
		x.Events.PodEvicted(victim.reference(), victim.Cause, x.plan.Preemptor)
		x.Log.V(2).Info("Evicted", "pod", victim.ref(), "cause", victim.Cause.String(), "preemptor", x.plan.Preemptor)
	}
	x.lock()
	defer x.unlock()
	x.results[victim] = err
	if err == nil {
		j.evicted++
		return true
	}
	j.refused, x.stopped = true, true
	return false
}

// conclude reports the victims that stay, or that the whole plan is carried out.
func (x *execution) conclude() {
	var stay []*Victim
	refused := map[*Victim]error{}
	for _, victim := range x.plan.Victims {
		err, sent := x.results[victim]
		if sent && err == nil {
			continue
		}
		stay = append(stay, victim)
		if sent {
			refused[victim] = err
		}
	}
	switch {
	case len(stay) == 0:
		if x.plan.PodGroup != nil {
			x.Events.PodsPreempted(*x.plan.PodGroup, len(x.plan.Victims), action(x.plan.Victims[0].Cause), x.plan.victimJobs())
		}
		return
	case len(refused) == 0:
		x.Log.V(2).Info("Eviction plan dropped", "preemptor", x.plan.Preemptor, "remaining", len(stay))
	}
	for _, victim := range stay {
		if err := refused[victim]; err != nil {
			x.Log.Error(err, "Eviction refused", "pod", victim.ref(), "preemptor", x.plan.Preemptor, "remaining", len(stay))
		}
	}
	x.fail(stay, refused)
}
