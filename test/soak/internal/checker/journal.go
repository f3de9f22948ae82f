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

const (
	// remembered is the maximum number of lines in the journal, and shown of lines with a violation.
	remembered = 50_000
	shown      = 40
	// everything is the key of lines that concern every object.
	everything = "*"
)

// journal is the history of changes, with the objects that each line concerns.
type journal struct {
	lines []line
}

type line struct {
	at   time.Time
	text string
	keys []string
}

func (j *journal) add(at time.Time, text string, keys ...string) {
	if len(j.lines) >= 2*remembered {
		j.lines = slices.Clone(j.lines[remembered:])
	}
	j.lines = append(j.lines, line{at, text, keys})
}

// about returns the last lines that concern any of the objects.
func (j *journal) about(keys []string) []string {
	var found []string
	for _, l := range slices.Backward(j.lines) {
		if len(found) == shown {
			break
		}
		if slices.ContainsFunc(l.keys, func(k string) bool { return k == everything || slices.Contains(keys, k) }) {
			found = append(found, l.String())
		}
	}
	slices.Reverse(found)
	return found
}

func (l line) String() string { return l.at.UTC().Format("15:04:05.000 ") + l.text }

// Journal returns the recorded history, one change per line.
func (c *Checker) Journal() string {
	var b strings.Builder
	for _, l := range c.log.lines {
		fmt.Fprintln(&b, l)
	}
	return b.String()
}

// amounts formats a list in the order of names.
func amounts(list corev1.ResourceList) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(list)) {
		q := list[name]
		parts = append(parts, q.String()+" "+string(name))
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, " + ")
}

func sameAmounts(a, b corev1.ResourceList) bool {
	return maps.EqualFunc(a, b, func(x, y resourceQuantity) bool { return x.Cmp(y) == 0 })
}

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

// Count returns how often a check was made.
func (c *Checker) Count(check Check) int { return c.counts[check] }

// Summary returns what has been seen so far.
func (c *Checker) Summary() Summary {
	t := c.summary
	t.Evictions = maps.Clone(t.Evictions)
	return t
}

// Table formats counts and checks.
func (c *Checker) Table() string {
	var b strings.Builder
	t := c.summary
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
	for _, v := range c.violations {
		found[v.Check]++
	}
	fmt.Fprintf(&b, "  %-52s %8s %10s\n", "check", "made", "violations")
	for _, check := range Checks() {
		fmt.Fprintf(&b, "  %-52s %8d %10d\n", check, c.counts[check], found[check])
	}
	return b.String()
}
