// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package results

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/replay"
)

// WriteSummary writes a summary for a terminal.
func WriteSummary(w io.Writer, s *replay.Summary) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) { fmt.Fprintf(t, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	line("Jobs", "%d: %d completed, %d running, %d pending, %d cancelled", s.Jobs, s.Completed, s.Running, s.Pending, s.Cancelled)
	line("Makespan", "%s", Span(s.Makespan))
	line("Mean wait", "%s", Span(s.Wait.Mean))
	line("Wait p50, p95, p99", "%s, %s, %s", Span(s.Wait.P50), Span(s.Wait.P95), Span(s.Wait.P99))
	line("Longest wait", "%s", Span(s.Wait.Max))
	if l := s.Longest; l != nil {
		line("Longest wait, also pending", "%s (job %s, %s for %.0f %% of it)", Span(l.Seconds), l.Job, l.Reason, 100*l.Part)
	}
	line("Longest wait, large jobs", "%s (%d jobs of %d pods or more)", Span(s.LongestLargeWait), s.LargeJobs, s.LargeJobPods)
	line("Mean bounded slowdown", "%.1f", s.MeanBoundedSlowdown)
	for _, u := range s.Utilisation {
		line("Utilisation of "+string(u.Resource), "%.1f %%", 100*u.Part)
	}
	for _, u := range s.Goodput {
		line("Goodput of "+string(u.Resource), "%.1f %%", 100*u.Part)
	}
	line("Evicted pods", "%d, %s of work lost", s.Evictions, Span(s.LostPodSeconds))
	if len(s.Queues) > 0 {
		line("Fairness (Jain)", "%.3f", s.Jain)
	}
	for _, l := range s.Levels {
		line("Whole free "+l.Topology+"/"+l.Level, "%.1f of %d on average; %d of %d gangs ran in one", l.MeanFree, l.Domains, l.InOneDomain, l.Gangs)
	}
	line("Sessions", "%d", s.Sessions)
	for _, note := range s.Notes {
		line("Note", "%s", note)
	}
	fmt.Fprintln(t)
	fmt.Fprintf(t, "%s\tJobs\tStarted\tMean wait\tp50\tp95\tp99\tMax\n", s.SizeUnit)
	for _, c := range s.Sizes {
		fmt.Fprintf(t, "%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\n", Size(c), c.Jobs, c.Started,
			Span(c.Wait.Mean), Span(c.Wait.P50), Span(c.Wait.P95), Span(c.Wait.P99), Span(c.Wait.Max))
	}
	if len(s.Queues) > 0 {
		fmt.Fprintln(t)
		fmt.Fprintf(t, "Queue\tJobs\tMean wait\tp95\tAllocated\tDeserved\tOwed\n")
		for _, q := range s.Queues {
			fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%s\t%s\n", q.Name, q.Jobs, Span(q.Wait.Mean), Span(q.Wait.P95),
				Hours(q.HeldHours, q), Hours(q.DeservedHours, q), Hours(q.OwedHours, q))
		}
	}
	return t.Flush()
}

// Size words the range of a size class: 8-31, or 512 or more.
func Size(c replay.SizeClass) string {
	switch {
	case c.Most == 0 && c.Least > 0:
		return fmt.Sprintf("%d or more", c.Least)
	case c.Most == c.Least:
		return fmt.Sprint(c.Least)
	default:
		return fmt.Sprintf("%d-%d", c.Least, c.Most)
	}
}

// Hours words an amount of a resource over time: 12.5 GPU-hours.
func Hours(hours float64, q replay.QueueSummary) string {
	unit := "CPU"
	if q.Resource != "cpu" {
		unit = "GPU"
	}
	return fmt.Sprintf("%.1f %s-hours", hours, unit)
}

// Span formats seconds as days, hours, minutes and seconds, without the small units of long times.
func Span(seconds float64) string {
	if seconds < 0 {
		return "-" + Span(-seconds)
	}
	d := time.Duration(seconds * float64(time.Second))
	const day = 24 * time.Hour
	switch {
	case d >= day:
		return fmt.Sprintf("%dd%dh%dm", d/day, d%day/time.Hour, d%time.Hour/time.Minute)
	case d >= time.Minute:
		return d.Round(time.Second).String()
	default:
		return d.Round(time.Millisecond).String()
	}
}
