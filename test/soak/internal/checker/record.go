// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package checker

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Summary counts what the checker has seen.
type Summary struct {
	Started, Excused         int // gangs that started completely, and starts disturbed by another client
	Bound, Foreign           int // pods
	Finished, Deleted        int // pods of the scheduler; the latter without evictions
	Evictions                map[string]int
	Late                     int // evictions for jobs without pending pods
	IneffectivePlans         int
	NodesLost, Restarts      int
	RacesLost                int // nodes overcommitted because a foreign pod was bound at the same time
	GroupsSeen, LargestStart int
	SlowestStart             time.Duration // from the first bound pod to the last that was needed
}

// record is what the checks have made: the journal, counts, and violations.
type record struct {
	clock *clock

	log        journal
	counts     map[Check]int
	summary    Summary
	failed     map[string]bool // by check and object
	violations []Violation
}

func newRecord(clock *clock) *record {
	return &record{clock: clock, counts: map[Check]int{}, summary: Summary{Evictions: map[string]int{}}, failed: map[string]bool{}}
}

// note adds a line to the journal.
func (r *record) note(text string, keys ...string) { r.log.add(r.clock.now, text, keys...) }

// say adds a line about a pod to the journal.
func (r *record) say(p *corev1.Pod, what string, more ...string) {
	r.note(fmt.Sprintf("pod %s %s", name(p), what), append(podKeys(p), more...)...)
}

// fail records a violation; only the first one of a check and an object.
func (r *record) fail(check Check, keys []string, format string, args ...any) {
	id := string(check)
	if len(keys) > 0 {
		id += keys[0]
	}
	if r.failed[id] {
		return
	}
	r.failed[id] = true
	r.violations = append(r.violations, Violation{At: r.clock.now, Check: check, Text: fmt.Sprintf(format, args...), Transcript: r.log.about(keys)})
}

// watchOrder is how long after a pod the watch of nodes can show a change of its node that came before.
const watchOrder = time.Second

// retract removes the violations of a check, about the object with a key, that are at most so old.
func (r *record) retract(check Check, key string, age time.Duration) {
	id := string(check) + key
	if !r.failed[id] {
		return
	}
	r.violations = slices.DeleteFunc(r.violations, func(v Violation) bool {
		recent := v.Check == check && r.clock.now.Sub(v.At) <= age && strings.Contains(v.Text, "bound to "+key+",")
		if recent {
			delete(r.failed, id)
		}
		return recent
	})
}

// table formats the counts and checks.
func (r *record) table() string {
	var b strings.Builder
	t := r.summary
	row := func(name string, value any) { fmt.Fprintf(&b, "  %-52s %8v\n", name, value) }
	row("groups seen", t.GroupsSeen)
	row("gangs started", t.Started)
	row("  largest of them, in pods", t.LargestStart)
	row("  slowest of them, in ms", t.SlowestStart.Milliseconds())
	row("  starts disturbed by another client", t.Excused)
	row("pods bound", t.Bound)
	row("  bound by a plain client", t.Foreign)
	row("pods succeeded", t.Finished)
	row("pods deleted by their owners", t.Deleted)
	for _, cause := range slices.Sorted(maps.Keys(t.Evictions)) {
		row("evictions: "+cause, t.Evictions[cause])
	}
	row("  evictions whose preemptor was not pending", t.Late)
	row("plans without effect for their preemptor", t.IneffectivePlans)
	row("nodes lost", t.NodesLost)
	row("nodes overcommitted by a plain client", t.RacesLost)
	row("restarts of the scheduler", t.Restarts)
	found := map[Check]int{}
	for _, v := range r.violations {
		found[v.Check]++
	}
	fmt.Fprintf(&b, "  %-52s %8s %10s\n", "check", "made", "violations")
	for _, check := range Checks() {
		fmt.Fprintf(&b, "  %-52s %8d %10d\n", check, r.counts[check], found[check])
	}
	return b.String()
}
