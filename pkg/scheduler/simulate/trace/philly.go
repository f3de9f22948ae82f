// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// phillyJob is an entry of cluster_job_log of the Philly traces (Jeon et al., USENIX ATC '19).
type phillyJob struct {
	VC        string `json:"vc"`
	ID        string `json:"jobid"`
	User      string `json:"user"`
	Submitted string `json:"submitted_time"`
	Attempts  []struct {
		Start  string `json:"start_time"` // null or None if the log lost it
		End    string `json:"end_time"`
		Detail []struct {
			GPUs []string `json:"gpus"`
		} `json:"detail"`
	} `json:"attempts"`
}

// phillyTime is the layout of the times of cluster_job_log.
const phillyTime = "2006-01-02 15:04:05"

// readPhilly reads cluster_job_log of the Philly traces: a JSON array of jobs. Each server of the first attempt is a pod with
// as many GPUs as the job had there; the run time is the sum over all attempts. The virtual cluster is the queue. Jobs that
// never ran, and those without a start or an end, are left out.
func readPhilly(l *lines, _ Options) (*Trace, error) {
	data, err := io.ReadAll(l.from)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", l.file, err)
	}
	decoder, at := json.NewDecoder(bytes.NewReader(data)), int64(0)
	lineAt := func(offset int64) int { return 1 + bytes.Count(data[:min(offset, int64(len(data)))], []byte("\n")) }
	failed := func(err error) error {
		l.number = lineAt(at)
		var syntax *json.SyntaxError
		if errors.As(json.Unmarshal(data, &[]json.RawMessage{}), &syntax) {
			l.number, err = lineAt(syntax.Offset), syntax
		}
		return l.errorf("%w", plain(err))
	}
	if token, err := decoder.Token(); err != nil || token != json.Delim('[') {
		return nil, failed(errors.New("philly is a JSON array of jobs; the file does not begin with ["))
	}
	t := &Trace{}
	var submitted []time.Time
	for decoder.More() {
		at = decoder.InputOffset()
		at += int64(len(data[at:]) - len(bytes.TrimLeft(data[at:], ", \t\r\n"))) // the beginning of the job, for errors
		var entry phillyJob
		if err := decoder.Decode(&entry); err != nil {
			return nil, failed(err)
		}
		l.number = lineAt(at)
		job, when, err := l.phillyJob(&entry)
		if err != nil {
			return nil, err
		}
		if job != nil {
			t.Jobs, submitted = append(t.Jobs, *job), append(submitted, when)
		}
	}
	if _, err := decoder.Token(); err != nil {
		return nil, failed(err)
	}
	if len(submitted) > 0 {
		first := slices.MinFunc(submitted, time.Time.Compare)
		for i := range t.Jobs {
			t.Jobs[i].Submit = submitted[i].Sub(first)
		}
	}
	t.Notes = l.notes()
	return t, nil
}

// phillyJob returns the job of an entry and when it was submitted; nil if it is left out.
func (l *lines) phillyJob(entry *phillyJob) (*Job, time.Time, error) {
	submitted, err := time.Parse(phillyTime, entry.Submitted)
	if err != nil {
		return nil, submitted, l.errorf("submitted_time: %q is not a time such as %q", entry.Submitted, phillyTime)
	}
	job := &Job{ID: entry.ID, Queue: entry.VC, User: entry.User}
	for _, attempt := range entry.Attempts {
		if noTime(attempt.Start) || noTime(attempt.End) {
			continue
		}
		start, err := time.Parse(phillyTime, attempt.Start)
		if err != nil {
			return nil, submitted, l.errorf("start_time: %q is not a time such as %q", attempt.Start, phillyTime)
		}
		end, err := time.Parse(phillyTime, attempt.End)
		if err != nil {
			return nil, submitted, l.errorf("end_time: %q is not a time such as %q", attempt.End, phillyTime)
		}
		if end.Before(start) {
			return nil, submitted, l.errorf("end_time: %s is before start_time, %s", attempt.End, attempt.Start)
		}
		job.Run += end.Sub(start)
		if job.Replicas > 0 {
			continue
		}
		var gpus []int64
		for _, server := range attempt.Detail {
			gpus = append(gpus, int64(len(server.GPUs)))
		}
		job.setGPUs(gpus)
	}
	if job.Replicas == 0 {
		l.skip("jobs without an attempt that has servers, a start and an end")
		return nil, submitted, nil
	}
	return job, submitted, nil
}

func noTime(text string) bool { return text == "" || text == "None" }

// setGPUs sets one pod for each number of GPUs. Pods with other numbers than the first ones are roles.
func (j *Job) setGPUs(gpus []int64) {
	slices.SortFunc(gpus, func(a, b int64) int { return int(b - a) })
	for len(gpus) > 0 {
		n := slices.IndexFunc(gpus, func(n int64) bool { return n != gpus[0] })
		if n < 0 {
			n = len(gpus)
		}
		request := v1.ResourceList{GPU: *resource.NewQuantity(gpus[0], resource.DecimalSI)}
		if j.Replicas == 0 {
			j.Min, j.Replicas, j.Request = n, n, request
		} else {
			j.Roles = append(j.Roles, Role{Pods: n, Request: request})
		}
		gpus = gpus[n:]
	}
}
