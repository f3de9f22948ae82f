// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"fmt"
	"slices"
	"strings"

	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// scenario is a cluster and what happens in it: binds succeed, bound pods run, and no pods are created except those
// that replace evicted ones. Cycles are counted from 0.
type scenario struct {
	given          []Row
	noReservations bool // no starvation reservations
	expect         int  // seconds for which the rest of minResources is reserved
	grace          int  // cycles until an evicted pod is deleted
	recreate       bool // controllers replace evicted pods

	failures   map[int]int    // by cycle, the index of the first eviction that fails; those before it succeed
	blockedFor int            // cycles until the eviction that failed is allowed again
	lost       map[int]string // by cycle, the node that is lost after it

	repeats    int  // how often a state may repeat with evictions in between
	overtaking bool // jobs may use the resources that are nominated for others
}

const (
	idleCycles = 3   // consecutive cycles without a decision after which the cluster is idle
	maxCycles  = 120 // within which it must become idle
)

// config returns the configuration of the scheduler.
func (s scenario) config() Option {
	policy := fmt.Sprintf("expect: %ds\n", s.expect) + AllActions
	if s.noReservations {
		policy = "starvationAfter: 0\n" + policy
	}
	return WithConfig(policy)
}

// run runs cycles until the cluster is idle. It returns an error if a state repeats with evictions in between, or if the
// cluster does not become idle.
func (s scenario) run(c *Scenario) error {
	r := &execution{
		scenario: s, c: c, preemptors: preemptors{}, seen: map[string]int{},
		terminating: map[int][]string{}, unblocked: map[int][]string{},
	}
	for idle := 0; idle < idleCycles; r.cycles++ {
		idle++
		if transcript := r.cycle(); strings.Contains(transcript, "evict ") || strings.Contains(transcript, "bind ") {
			idle = 0
		}
		if err := r.check(); err != nil {
			return err
		}
		r.deliverResults()
		r.applyChanges()
		if len(r.terminating)+len(r.unblocked)+len(r.lost) > 0 {
			idle = 0
		}
		if s.expect == 0 || idle > 1 { // else what is expected would be reserved for one cycle only
			c.WaitUntilDue()
		}
	}
	return nil
}

// execution is the state of a scenario that runs.
type execution struct {
	scenario
	c          *Scenario
	cycles     int
	evictions  int
	preemptors preemptors
	log        []string
	seen       map[string]int // number of evictions when the state occurred last

	terminating, unblocked map[int][]string // pods by the cycle after which they are deleted, or may be evicted again
}

func (r *execution) cycle() string {
	transcript := r.c.Cycle()
	r.log = append(r.log, transcript)
	r.evictions += strings.Count(transcript, "evict ")
	r.preemptors.decided(transcript, r.c.Plans())
	return transcript
}

func (r *execution) check() error {
	state := r.c.State()
	before, known := r.seen[state]
	switch {
	case known && before < r.evictions:
		if r.repeats--; r.repeats < 0 {
			return fmt.Errorf("a state repeats with evictions in between:\n%s\n\nthe cycles are\n%s", state, strings.Join(r.log, "\n--\n"))
		}
	case r.cycles > maxCycles:
		return fmt.Errorf("the cluster is not idle after %d cycles:\n%s", r.cycles, strings.Join(r.log, "\n--\n"))
	}
	r.seen[state] = r.evictions
	if err := r.preemptors.check(r.cycles); err != nil && !r.overtaking {
		return fmt.Errorf("%w:\n%s", err, strings.Join(r.log, "\n--\n"))
	}
	return nil
}

// deliverResults confirms binds, and evictions when their grace has passed.
func (r *execution) deliverResults() {
	r.c.ConfirmBinds()
	r.c.Start()
	victims := slices.DeleteFunc(r.c.EvictionsInFlight(), func(name string) bool {
		return slices.ContainsFunc(values(r.terminating), func(names []string) bool { return slices.Contains(names, name) })
	})
	if at, fails := r.failures[r.cycles]; fails && at < len(victims) {
		r.log = append(r.log, "eviction fails: "+victims[at])
		r.c.FailEvictions(victims[at:]...)
		r.c.BlockEviction(victims[at])
		for _, name := range victims[at:] {
			r.preemptors.notEvicted(name)
		}
		r.unblocked[r.cycles+r.blockedFor] = append(r.unblocked[r.cycles+r.blockedFor], victims[at])
		victims = victims[:at]
	}
	if len(victims) > 0 {
		r.terminating[r.cycles+r.grace] = victims
	}
	for _, name := range r.terminating[r.cycles] {
		r.preemptors.deleted(name, r.cycles)
		if r.c.FinishEvictions(name); r.recreate {
			r.c.CreateAgain(name)
		}
	}
	delete(r.terminating, r.cycles)
}

// applyChanges applies the other changes of the scenario. States from before a change do not count as repeated.
func (r *execution) applyChanges() {
	if pods := r.unblocked[r.cycles]; len(pods) > 0 {
		r.log = append(r.log, fmt.Sprintf("evictions allowed: %q", pods))
		r.c.AllowEviction(pods...)
		clear(r.seen)
	}
	delete(r.unblocked, r.cycles)
	if node := r.lost[r.cycles]; node != "" {
		r.log = append(r.log, "node lost: "+node)
		r.loseNode(node)
		clear(r.seen)
	}
	delete(r.lost, r.cycles)
}

// loseNode deletes a node and its pods.
func (r *execution) loseNode(node string) {
	pods := r.c.PodsOn(node)
	for cycle, names := range r.terminating {
		r.terminating[cycle] = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(pods, name) })
	}
	clear(r.preemptors) // each of them may have had placements on that node
	r.c.DeleteNode(node)
	r.c.Delete(pods...)
	if r.recreate {
		r.c.CreateAgain(pods...)
	}
}

func values(m map[int][]string) [][]string {
	var list [][]string
	for _, names := range m {
		list = append(list, names)
	}
	return list
}
