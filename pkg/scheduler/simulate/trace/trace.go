// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package trace reads logs of workloads: which jobs arrived when, what they requested and how long they ran.
package trace

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// GPU is the extended resource that stands for the GPUs of formats that name no resource.
const GPU v1.ResourceName = "nvidia.com/gpu"

// Trace is a workload. Times count from the beginning of the trace.
type Trace struct {
	Jobs    []Job       // by submission; ties in the order of the file
	Cancels []Cancel    // by time
	Nodes   []NodeEvent // by time
	Record  Record      // what only a record of a cluster has
	// Notes state what was left out, and how often.
	Notes []string
}

// Job is a gang of pods, which are equal unless it has roles.
type Job struct {
	ID       string
	Queue    string // empty: the default queue
	User     string // whose jobs Resample keeps together; empty if it is not known
	Submit   time.Duration
	Run      time.Duration // from the start of Min pods until the end of all
	Limit    time.Duration // the declared run time; 0 if there is none
	Expected time.Duration // the declared estimate of the run time; 0 if there is none
	Min      int           // pods that start together; at least 1
	Replicas int           // pods; at least Min
	Request  v1.ResourceList
	Priority int32
	// Selector has the permitted values of node labels, by label.
	Selector map[string][]string
	// Roles are further pods, all of which start together with the first Min.
	Roles []Role
	// Topology is nil if the pods may run anywhere.
	Topology *Constraint

	// Age is for how long the job existed at Submit; not 0 for jobs that were there when a record began.
	Age time.Duration
	// Unended is set if the job had not ended when the record did: Run is how long it had run until then.
	Unended bool
	// Nodes are those on which pods of the job already ran at Submit: that of the first pod, of the second, and so on.
	Nodes       []string
	Tolerations []v1.Toleration
}

// Role are equal pods of a job that differ from its first ones.
type Role struct {
	Pods     int                 `json:"pods"`
	Request  v1.ResourceList     `json:"request"`
	Selector map[string][]string `json:"selector,omitempty"`

	Tolerations []v1.Toleration `json:"tolerations,omitempty"`
}

// Pods returns how many pods the job has.
func (j *Job) Pods() int { return j.Replicas + j.furtherPods() }

// Gang returns how many pods start together.
func (j *Job) Gang() int { return j.Min + j.furtherPods() }

func (j *Job) furtherPods() (pods int) {
	for i := range j.Roles {
		pods += j.Roles[i].Pods
	}
	return pods
}

// Total returns how much of a resource the pods of the gang request, without surplus pods.
func (j *Job) Total(name v1.ResourceName) float64 {
	amount := func(list v1.ResourceList) float64 {
		q, there := list[name]
		if !there {
			return 0
		}
		return q.AsApproximateFloat64()
	}
	total := float64(j.Min) * amount(j.Request)
	for i := range j.Roles {
		total += float64(j.Roles[i].Pods) * amount(j.Roles[i].Request)
	}
	return total
}

// GPUs returns how many GPUs the pods of the gang request: units of all resources whose name ends in /gpu.
func (j *Job) GPUs() (gpus int64) {
	count := func(pods int, list v1.ResourceList) {
		for name, q := range list {
			if IsGPU(name) {
				gpus += int64(pods) * q.Value()
			}
		}
	}
	count(j.Min, j.Request)
	for i := range j.Roles {
		count(j.Roles[i].Pods, j.Roles[i].Request)
	}
	return gpus
}

// IsGPU reports whether a resource stands for whole GPUs.
func IsGPU(name v1.ResourceName) bool { return strings.HasSuffix(string(name), "/gpu") }

// Affinity returns the node affinity for a selector; nil if it permits all nodes.
func Affinity(selector map[string][]string) *v1.Affinity {
	if len(selector) == 0 {
		return nil
	}
	term := v1.NodeSelectorTerm{}
	for _, key := range slices.Sorted(maps.Keys(selector)) {
		term.MatchExpressions = append(term.MatchExpressions, v1.NodeSelectorRequirement{Key: key, Operator: v1.NodeSelectorOpIn, Values: selector[key]})
	}
	return &v1.Affinity{NodeAffinity: &v1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{term}},
	}}
}

// Cancel ends a job before its run is complete.
type Cancel struct {
	At  time.Duration
	Job string
}

// reader reads one format.
type reader func(*lines, Options) (*Trace, error)

func readers() map[string]reader {
	return map[string]reader{
		"swf": readSWF, "jsonl": readJSONL, "openb": readOpenb, "gavel": readGavel, "philly": readPhilly, "pai": readPAI, "spot": readSpot,
	}
}

// Formats returns the names of all formats, sorted.
func Formats() []string { return slices.Sorted(maps.Keys(readers())) }

// FormatOf returns the format that a file name implies; empty if none.
func FormatOf(file string) string {
	base := filepath.Base(file)
	switch ext := strings.TrimPrefix(filepath.Ext(base), "."); {
	case ext == "swf" || ext == "jsonl":
		return ext
	case ext == "csv" && strings.HasPrefix(base, "openb"):
		return "openb"
	case ext == "csv" && strings.HasPrefix(base, "pai_job"):
		return "pai"
	case ext == "csv" && strings.HasPrefix(base, "job_info"):
		return "spot"
	case strings.HasPrefix(base, "cluster_job_log"):
		return "philly"
	case ext == "trace":
		return "gavel"
	}
	return ""
}

// CheckFormat returns an error that names the known formats unless format is one of them.
func CheckFormat(format string) error {
	if slices.Contains(Formats(), format) {
		return nil
	}
	if best, ok := api.Closest(format, Formats()); ok {
		return fmt.Errorf("unknown format %q; did you mean %q?", format, best)
	}
	return fmt.Errorf("unknown format %q; known formats: %s", format, strings.Join(Formats(), ", "))
}

// Options are what formats need that files do not have.
type Options struct {
	// StepsPerSecond is the speed of jobs whose run time is a number of steps, in the format gavel. It must be positive.
	StepsPerSecond float64
	// Unscheduled keeps the pods of the format openb that were never scheduled. Their run time is not known: it is 0.
	Unscheduled bool
	// Open opens a file in the directory of the trace, for formats of several files.
	Open func(name string) (io.ReadCloser, error)
}

// Read reads a trace. The name of the file is for errors, which name the line.
func Read(format, file string, from io.Reader, o Options) (*Trace, error) {
	if err := CheckFormat(format); err != nil {
		return nil, err
	}
	t, err := readers()[format](newLines(file, from), o)
	if err != nil {
		return nil, err
	}
	if len(t.Jobs) == 0 {
		return nil, fmt.Errorf("%s: there is no job in it", file)
	}
	slices.SortStableFunc(t.Jobs, func(a, b Job) int { return cmp.Or(cmp.Compare(a.Submit, b.Submit), cmp.Compare(b.Age, a.Age)) })
	slices.SortStableFunc(t.Cancels, func(a, b Cancel) int { return cmp.Compare(a.At, b.At) })
	slices.SortStableFunc(t.Nodes, func(a, b NodeEvent) int { return cmp.Compare(a.At, b.At) })
	t.Record.sort()
	return t, nil
}

// Scale multiplies the rate of arrivals: 1.2 submits the same jobs in 1/1.2 of the time. Run times stay. All other events
// move with the arrivals.
func (t *Trace) Scale(arrivals float64) {
	if arrivals == 1 {
		return
	}
	scaled := func(at time.Duration) time.Duration { return time.Duration(float64(at) / arrivals) }
	for i := range t.Jobs {
		t.Jobs[i].Submit = scaled(t.Jobs[i].Submit)
	}
	for i := range t.Cancels {
		t.Cancels[i].At = scaled(t.Cancels[i].At)
	}
	for i := range t.Nodes {
		t.Nodes[i].At = scaled(t.Nodes[i].At)
	}
	t.Record.scale(scaled)
}
