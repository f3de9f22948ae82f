// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package evict

import (
	"context"
	"errors"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/cache/internal/apicall"
)

// protected is the victims of a plan that one disruption budget covers, in the order of the plan.
type protected struct {
	budget  string
	victims []protectedVictim
}

type protectedVictim struct {
	*Victim
	job *job
}

// protectedVictims returns the victims that disruption budgets cover, by budget.
func (x *execution) protectedVictims() []*protected {
	var list []*protected
	byBudget := map[string]*protected{}
	for _, j := range x.jobs {
		for _, v := range j.victims {
			if v.Budget == "" {
				continue
			}
			p := byBudget[v.budget()]
			if p == nil {
				p = &protected{budget: v.budget()}
				byBudget[p.budget] = p
				list = append(list, p)
			}
			p.victims = append(p.victims, protectedVictim{v, j})
		}
	}
	return list
}

// errBudget is the refusal of evictions each of which passes the dry run.
var errBudget = errors.New("the disruption budget does not allow the evictions of all victims that it covers")

// exceedingBudgets returns the victims under disruption budgets that do not allow to evict all of them. A dry run shows
// only that one eviction is allowed, so the budgets of several victims are read. If that fails, the budget counts as
// large enough, as far as the dry run shows.
func (x *execution) exceedingBudgets() map[*Victim]error {
	several := slices.DeleteFunc(x.protectedVictims(), func(p *protected) bool { return len(p.victims) == 1 })
	exceeded := make([]bool, len(several))
	x.each(len(several), func(i int) {
		first := several[i].victims[0]
		call, cancel := context.WithTimeout(x.ctx, apicall.Timeout)
		defer cancel()
		budget, err := x.Kube.PolicyV1().PodDisruptionBudgets(first.Namespace).Get(call, first.Budget, metav1.GetOptions{})
		exceeded[i] = err == nil && int(budget.Status.DisruptionsAllowed) < len(several[i].victims)
	})
	victims := map[*Victim]error{}
	for i, p := range several {
		for _, v := range p.victims {
			if exceeded[i] {
				victims[v.Victim] = errBudget
			}
		}
	}
	return victims
}

// evictProtected evicts the victims that disruption budgets cover, those of one budget one after the other.
func (x *execution) evictProtected() {
	var running sync.WaitGroup
	for _, p := range x.protectedVictims() {
		running.Go(func() {
			for _, v := range p.victims {
				x.evictInSequence(v.job, v.Victim)
			}
		})
	}
	running.Wait()
}

// evictInSequence evicts a victim that a disruption budget covers, if its job may be evicted.
func (x *execution) evictInSequence(j *job, victim *Victim) {
	leave := x.sequences.enter(victim.budget())
	defer leave()
	x.requests.acquire(x.precedence(j))
	defer x.requests.release()
	if x.begin(j) {
		x.evict(j, victim)
	}
}

// sequences let one eviction at a time concern a disruption budget, over all plans. The API server decrements a budget
// with each eviction; of two at the same time one would have to wait half a second, or could be refused although the
// budget allows it.
type sequences struct {
	mu       sync.Mutex
	byBudget map[string]*sequence
}

// sequence is the order of the evictions that concern one budget. It is a channel and not a mutex, because the virtual
// clock of the tests stands still while a goroutine waits for a mutex.
type sequence struct {
	users int           // guarded by sequences.mu
	token chan struct{} // holds one element while no eviction is in flight
}

// enter waits until no other eviction concerns the budget. The caller calls leave afterwards.
func (s *sequences) enter(budget string) (leave func()) {
	s.mu.Lock()
	one := s.byBudget[budget]
	if one == nil {
		one = &sequence{token: make(chan struct{}, 1)}
		one.token <- struct{}{}
		s.byBudget[budget] = one
	}
	one.users++
	s.mu.Unlock()
	<-one.token
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		one.token <- struct{}{}
		if one.users--; one.users == 0 {
			delete(s.byBudget, budget)
		}
	}
}
