// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"time"
)

// StartEstimate is when a waiting job starts, in nanoseconds since 1970; 0 if that is not known.
type StartEstimate struct {
	Estimated int64 // as planned
	Latest    int64 // by limits alone
	Nodes     int   // where it starts
	// Domain has these nodes, if the gang must be in one domain; else it is empty.
	Domain DomainName

	Delay string // why it is later than it was planned before; empty if it is not
	// Beyond is the window of planned starts if the start is after it. Nothing is reserved then.
	Beyond time.Duration
}

func (e StartEstimate) message() string {
	if e.Beyond > 0 {
		return fmt.Sprintf("; no start time: it would be more than %s ahead (reservations.window), so no resources are reserved", e.Beyond)
	}
	if e.Estimated == 0 {
		return ""
	}
	text := fmt.Sprintf("; planned to start at %s on %s, by the run times that running jobs declare",
		minuteAfter(e.Estimated), nodesOf(e.Nodes, e.Domain))
	if e.Delay != "" {
		text += "; later than before: " + e.Delay
	}
	return text
}

// nodesOf words a number of nodes, and the domain that has them if it is not empty: 2 nodes of rack b1/r1.
func nodesOf(count int, domain DomainName) string {
	text := fmt.Sprintf("%d %s", count, plural(count, "node", "nodes"))
	if domain != "" {
		text += " of " + domain.String()
	}
	return text
}

// BackfillAdvice is how a job could start now that does not end before other gangs need the resources.
type BackfillAdvice struct {
	RunTime time.Duration // the longest that would not delay them; 0: there is no advice
	Until   int64         // when the first of them starts, in nanoseconds since 1970
}

// message rounds the run time down, so that it does not change with every session.
func (a BackfillAdvice) message() string {
	run := a.RunTime
	switch {
	case run >= 10*time.Hour:
		run = run.Truncate(time.Hour)
	case run >= time.Hour:
		run = run.Truncate(10 * time.Minute)
	default:
		run = run.Truncate(time.Minute)
	}
	if run <= 0 {
		return ""
	}
	return fmt.Sprintf("; would fit now with maximumExecutionTimeSeconds of at most %d (%s), on resources that are reserved from %s on",
		run/time.Second, run, minuteAfter(a.Until))
}

// minuteAfter returns the text of a time, rounded up to a minute: estimates are not more exact than that.
func minuteAfter(at int64) string {
	return time.Unix(0, at+int64(time.Minute)-1).Truncate(time.Minute).UTC().Format(time.RFC3339)
}

// unbounded names the pods that keep a start from being planned.
func (a *AwaitedPods) unbounded() string {
	if a.Count == 0 {
		return ""
	}
	text := fmt.Sprintf("; no start time: %d %s there %s no run time", a.Count, plural(a.Count, "pod", "pods"), plural(a.Count, "declares", "declare"))
	if names := a.message(); names != "" {
		text += " (" + names + ")"
	}
	return text + "; set maximumExecutionTimeSeconds, or executionTime.default of their queue"
}
