// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package verify watches the samples run and says whether they ran as they should. It is a
// function of the scenes it was shown and of their times, and of nothing else.
package verify

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/batch-scheduler/batch-scheduler/cmd/demo/internal/snapshot"
	"github.com/batch-scheduler/batch-scheduler/test/capacity"
)

// Settling is how long the cluster may take to carry out one decision of the scheduler, or to
// show it: the pods of a gang are bound one after the other, and what a queue says of itself
// is written after that. What is wrong for longer is a fault.
const Settling = 5 * time.Second

// Verifier collects what it is shown. It is for one goroutine.
type Verifier struct {
	expectations Expectations

	firstBound map[string]time.Time     // group → when its first pod had a node
	wholeAfter map[string]time.Duration // group → how long after that it was whole
	since      map[string]time.Time     // what is wrong now → since when
	faults     map[string][]string      // check → what went wrong, each once
	last       snapshot.Snapshot
}

// New returns a Verifier that has observed nothing.
func New(expectations Expectations) *Verifier {
	return &Verifier{
		expectations: expectations,
		firstBound:   map[string]time.Time{},
		wholeAfter:   map[string]time.Duration{},
		since:        map[string]time.Time{},
		faults:       map[string][]string{},
	}
}

// Observe adds a snapshot. Callers pass snapshots in the order of time.
func (j *Verifier) Observe(at time.Time, s snapshot.Snapshot) {
	j.last = s
	wrong := map[string]string{} // what is wrong now, and is a fault if it lasts → check
	for _, g := range j.groups() {
		j.observeStart(at, g)
		if g.Partial() {
			wrong[fmt.Sprintf("%s held nodes for fewer than the %d pods it needs", g.Name, g.Min)] = checkWhole
		}
		if g.Failed > 0 {
			j.fault(checkGangs, "pods of %s failed", g.Name)
		}
	}
	j.observeInfeasible()
	j.observeOrders()
	j.observeCapacity()
	for _, difference := range j.queueDifferences() {
		wrong[difference] = checkQueues
	}
	j.faultWhatLasts(at, wrong)
}

// groups returns the groups of the story's namespace.
func (j *Verifier) groups() []snapshot.Group {
	return slices.DeleteFunc(slices.Clone(j.last.Groups), func(g snapshot.Group) bool { return g.Namespace != j.expectations.Namespace })
}

// group returns the group with the name, or one without pods.
func (j *Verifier) group(name string) snapshot.Group {
	for _, g := range j.groups() {
		if g.Name == name {
			return g
		}
	}
	return snapshot.Group{Name: name, Min: 1}
}

func (j *Verifier) observeStart(at time.Time, g snapshot.Group) {
	if g.Bound == 0 {
		return
	}
	if _, seen := j.firstBound[g.Name]; !seen {
		j.firstBound[g.Name] = at
	}
	if _, seen := j.wholeAfter[g.Name]; !seen && g.Started() {
		j.wholeAfter[g.Name] = at.Sub(j.firstBound[g.Name])
	}
}

func (j *Verifier) observeInfeasible() {
	for _, i := range j.expectations.Infeasible {
		if g := j.group(i.Group); g.Bound > 0 {
			j.fault(checkInfeasible(i), "it got nodes for %d of its pods", g.Bound)
		}
	}
}

func (j *Verifier) observeOrders() {
	for _, o := range j.expectations.Orders {
		first, then := j.group(o.First), j.group(o.Then)
		if then.Bound > 0 && !first.Done() && len(j.faults[checkOrder(o)]) == 0 {
			j.fault(checkOrder(o), "%s got nodes when %d of %d pods of %s had ended", o.Then, first.Ended, first.Members, o.First)
		}
	}
}

// observeCapacity compares the requests of pods with the allocatable resources of nodes and the capability of queues.
func (j *Verifier) observeCapacity() {
	for _, n := range j.last.Nodes {
		if text := capacity.Excess(n.Used, n.Allocatable); text != "" {
			j.fault(checkCapacity, "node %s: its pods hold %s", n.Name, text)
		}
	}
	for _, q := range j.last.Queues {
		if text := capacity.Excess(q.Held, q.Capability); text != "" {
			j.fault(checkCapacity, "queue %s: its pods hold %s", q.Name, text)
		}
	}
}

// faultWhatLasts turns what has been wrong for too long into faults.
func (j *Verifier) faultWhatLasts(at time.Time, wrong map[string]string) {
	for text, check := range wrong {
		if _, known := j.since[text]; !known {
			j.since[text] = at
		}
		if at.Sub(j.since[text]) > Settling {
			j.fault(check, "%s for more than %s", text, Settling)
		}
	}
	for text := range j.since {
		if _, still := wrong[text]; !still {
			delete(j.since, text)
		}
	}
}

func (j *Verifier) fault(check, format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(j.faults[check], text) {
		j.faults[check] = append(j.faults[check], text)
	}
}

// explains reports whether a message says which resource is missing, for how many pods, and on
// how many nodes.
func explains(message, resource string) bool {
	missing := regexp.MustCompile(`\b[0-9]+ more pods? of [^;]*\b[0-9]+ ` + regexp.QuoteMeta(resource))
	nodes := regexp.MustCompile(`\b[0-9]+/[0-9]+ nodes are available`)
	return missing.MatchString(message) && nodes.MatchString(message)
}

// join lists names in a sentence, at most a few of them.
func join(names []string) string {
	const listed = 4
	if len(names) > listed {
		names = append(slices.Clone(names[:listed]), fmt.Sprintf("%d more", len(names)-listed))
	}
	return strings.Join(names, ", ")
}
