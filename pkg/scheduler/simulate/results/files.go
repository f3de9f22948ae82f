// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package results words what replays found out: result files, summaries, and comparisons of policies job by job.
package results

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/replay"
)

// Run is a replay with one policy.
type Run struct {
	// Name of the policy, for people.
	Name string
	// Workload is the name of the trace.
	Workload string
	*replay.Result
}

// File is a file to write.
type File struct {
	Name  string
	Write func(io.Writer) error
}

// Files returns the result files of a run. Those with samples are there only if the result has a record.
func (r *Run) Files() []File {
	files := []File{
		{"jobs.csv", r.writeJobs},
		{"summary.json", func(w io.Writer) error { return WriteJSON(w, &r.Summary) }},
		{"summary.txt", func(w io.Writer) error { return WriteSummary(w, &r.Summary) }},
	}
	if r.Record != nil {
		files = append(files, File{"cluster.csv", r.writeCluster}, File{"queues.csv", r.writeQueues}, File{"evictions.csv", r.writeEvictions})
	}
	return files
}

// Write writes files into a directory, which it creates if it does not exist.
func Write(dir string, files []File) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("writing results: %w", err)
	}
	for _, f := range files {
		if err := writeFile(filepath.Join(dir, f.Name), f.Write); err != nil {
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

// WriteJSON writes a value as indented JSON.
func WriteJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// writeTable writes rows below the names of their columns.
func writeTable(w io.Writer, columns []string, rows int, row func(i int) []string) error {
	out := csv.NewWriter(w)
	if err := out.Write(columns); err != nil {
		return err
	}
	for i := range rows {
		if err := out.Write(row(i)); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// jobColumns are the columns of jobs.csv. Those until allocated_resources are the ones of Batsim, with the same meaning.
func jobColumns() []string {
	return []string{
		"job_id", "workload_name", "profile", "submission_time", "requested_number_of_resources", "requested_time", "success", "final_state",
		"starting_time", "execution_time", "finish_time", "waiting_time", "turnaround_time", "stretch", "allocated_resources",
		"queue", "gang", "gpus", "bounded_slowdown", "runs", "evictions", "lost_time", "wait_reason", "wait_reason_part",
	}
}

// writeJobs writes a row for each job, in the order of submission, with times in seconds. What a job does not have is empty,
// such as the start of one that is pending.
func (r *Run) writeJobs(w io.Writer) error {
	return writeTable(w, append(jobColumns(), r.levelColumns("domains")...), len(r.Jobs), func(i int) []string { return r.jobRow(&r.Jobs[i]) })
}

func (r *Run) jobRow(j *replay.Job) []string {
	start, end, wait, turnaround, slowdown, stretch, part, limit := "", "", "", "", "", "", "", ""
	success := "0"
	if j.Limit > 0 {
		limit = seconds(j.Limit)
	}
	if j.Runs > 0 {
		start, wait = seconds(j.Start), seconds(j.Wait())
	}
	if j.State.Ended() {
		end, turnaround = seconds(j.End), seconds(j.End-j.Submit)
	}
	if j.State == replay.Completed {
		success, slowdown = "1", number(j.Slowdown())
		if j.Run > 0 {
			stretch = number((j.End - j.Submit).Seconds() / j.Run.Seconds())
		}
	}
	if j.Reason != "" {
		part = number(j.ReasonPart)
	}
	row := []string{
		j.ID, r.Workload, profile(j.Request), seconds(j.Submit), strconv.Itoa(j.Size), limit, success, string(j.State),
		start, seconds(j.Run), end, wait, turnaround, stretch, j.Nodes,
		j.Queue, strconv.Itoa(j.Gang), strconv.FormatInt(j.GPUs, 10), slowdown, strconv.Itoa(j.Runs), strconv.Itoa(j.Evictions), seconds(j.Lost),
		j.Reason, part,
	}
	for i := range r.Summary.Levels {
		cell := ""
		if j.Runs > 0 {
			cell = strconv.Itoa(j.Domains[i])
		}
		row = append(row, cell)
	}
	return row
}

// levelColumns returns a column for each topology level, such as "domains default/rack".
func (r *Run) levelColumns(of string) (columns []string) {
	for i := range r.Summary.Levels {
		l := &r.Summary.Levels[i]
		columns = append(columns, of+" "+l.Topology+"/"+l.Level)
	}
	return columns
}

// profile words the request of a pod: cpu=8 nvidia.com/gpu=8.
func profile(request v1.ResourceList) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(request)) {
		q := request[name]
		words = append(words, string(name)+"="+q.String())
	}
	return strings.Join(words, " ")
}

// writeCluster writes the state of the cluster over time.
func (r *Run) writeCluster(w io.Writer) error {
	columns := []string{"t", "pending_jobs", "running_jobs"}
	hasGPUs := r.Record.Main >= 0 && r.Record.Resources[r.Record.Main] != v1.ResourceCPU
	for _, name := range r.Record.Resources {
		columns = append(columns, "allocated "+string(name), "usable "+string(name))
	}
	if hasGPUs {
		columns = append(columns, "nodes_8_gpus_free", "nodes_4_gpus_free", "nodes_2_gpus_free", "nodes_1_gpu_free")
	}
	columns = append(columns, r.levelColumns("free_domains")...)
	return writeTable(w, columns, len(r.Record.Cluster), func(i int) []string {
		s := &r.Record.Cluster[i]
		row := []string{seconds(s.At), strconv.Itoa(s.Pending), strconv.Itoa(s.Running)}
		for d := range r.Record.Resources {
			row = append(row, number(s.Held[d]), number(s.Usable[d]))
		}
		if hasGPUs {
			for _, n := range s.Free {
				row = append(row, strconv.Itoa(n))
			}
		}
		for _, n := range s.FreeDomains {
			row = append(row, strconv.Itoa(n))
		}
		return row
	})
}

// writeQueues writes the state of queues over time.
func (r *Run) writeQueues(w io.Writer) error {
	columns := []string{"t", "queue", "pending_jobs", "running_jobs"}
	for _, name := range r.Record.Resources {
		columns = append(columns, "allocated "+string(name), "deserved "+string(name), "requested "+string(name))
	}
	return writeTable(w, columns, len(r.Record.Queues), func(i int) []string {
		s := &r.Record.Queues[i]
		row := []string{seconds(s.At), s.Queue, strconv.Itoa(s.Pending), strconv.Itoa(s.Running)}
		for d := range r.Record.Resources {
			row = append(row, number(s.Held[d]), number(s.Deserved[d]), number(s.Requested[d]))
		}
		return row
	})
}

// writeEvictions writes a row for each evicted pod.
func (r *Run) writeEvictions(w io.Writer) error {
	columns := []string{"t", "job_id", "queue", "pod", "node", "for_job", "cause", "lost_time"}
	return writeTable(w, columns, len(r.Record.Evictions), func(i int) []string {
		e := &r.Record.Evictions[i]
		return []string{seconds(e.At), e.Job, e.Queue, strconv.Itoa(e.Pod), e.Node, e.For, e.Cause, seconds(e.Lost)}
	})
}

// seconds formats a time in seconds.
func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }

// number formats a number with at most six decimals.
func number(x float64) string {
	text := strconv.FormatFloat(x, 'f', 6, 64)
	return strings.TrimRight(strings.TrimRight(text, "0"), ".")
}
