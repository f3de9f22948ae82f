// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"text/tabwriter"
	"time"
)

// WriteFiles writes jobs.csv, summary.json and summary.txt into a directory, which it creates if it does not exist.
func (r *Result) WriteFiles(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("writing results: %w", err)
	}
	for _, f := range []struct {
		name  string
		write func(io.Writer) error
	}{{"jobs.csv", r.WriteJobs}, {"summary.json", r.Summary.WriteJSON}, {"summary.txt", r.Summary.WriteText}} {
		if err := writeFile(filepath.Join(dir, f.name), f.write); err != nil {
			return fmt.Errorf("writing results: %w", err)
		}
	}
	return nil
}

func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		f.Close() // the first error counts
		return err
	}
	return f.Close()
}

// columns of jobs.csv. The names that Batsim has too mean the same there.
func columns() []string {
	return []string{
		"job_id", "queue", "submission_time", "requested_number_of_resources", "final_state", "starting_time", "execution_time", "finish_time",
		"waiting_time", "turnaround_time", "bounded_slowdown", "runs", "evictions", "lost_time",
	}
}

// WriteJobs writes a row for each job, in the order of submission, with times in seconds. What a job does not have is empty,
// such as the start of one that is pending.
func (r *Result) WriteJobs(w io.Writer) error {
	out := csv.NewWriter(w)
	if err := out.Write(columns()); err != nil {
		return err
	}
	for i := range r.Jobs {
		if err := out.Write(r.Jobs[i].row()); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

func (j *Job) row() []string {
	start, end, wait, turnaround, slowdown := "", "", "", "", ""
	if j.Runs > 0 {
		start, wait = number(j.Start), number(j.Wait())
	}
	if j.State.Ended() {
		end, turnaround = number(j.End), number(j.End-j.Submit)
	}
	if j.State == Completed {
		slowdown = strconv.FormatFloat(round(j.Slowdown()), 'f', -1, 64)
	}
	return []string{
		j.ID, j.Queue, number(j.Submit), strconv.Itoa(j.Size), string(j.State), start, number(j.Run), end,
		wait, turnaround, slowdown, strconv.Itoa(j.Runs), strconv.Itoa(j.Evictions), number(j.Lost),
	}
}

// number formats a time in seconds.
func number(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }

// WriteJSON writes the summary as JSON.
func (s *Summary) WriteJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(s)
}

// WriteText writes the summary for a terminal.
func (s *Summary) WriteText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) { fmt.Fprintf(t, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	line("Jobs", "%d: %d completed, %d running, %d pending, %d cancelled", s.Jobs, s.Completed, s.Running, s.Pending, s.Cancelled)
	line("Makespan", "%s", span(s.Makespan))
	line("Mean wait", "%s", span(s.Wait.Mean))
	line("Wait p50, p95, p99", "%s, %s, %s", span(s.Wait.P50), span(s.Wait.P95), span(s.Wait.P99))
	line("Longest wait", "%s", span(s.Wait.Max))
	line("Longest wait, large jobs", "%s (%d jobs of %d pods or more)", span(s.LongestLargeWait), s.LargeJobs, s.LargeJobPods)
	line("Mean bounded slowdown", "%.1f", s.MeanBoundedSlowdown)
	for _, u := range s.Utilisation {
		line("Utilisation of "+string(u.Resource), "%.1f %%", 100*u.Part)
	}
	line("Evicted pods", "%d, %s of work lost", s.Evictions, span(s.LostPodSeconds))
	line("Sessions", "%d", s.Sessions)
	for _, note := range s.Notes {
		line("Note", "%s", note)
	}
	return t.Flush()
}

// span formats seconds as days, hours, minutes and seconds, without the small units of long times.
func span(seconds float64) string {
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
