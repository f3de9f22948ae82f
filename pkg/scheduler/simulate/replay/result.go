// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"math"
	"time"

	v1 "k8s.io/api/core/v1"
)

// State is what became of a job.
type State string

// The states of jobs. A job that was not submitted before the replay ended has none of them.
const (
	Pending   State = "PENDING" // it waits for its first run, or for another one after an eviction
	Running   State = "RUNNING"
	Completed State = "COMPLETED"
	Cancelled State = "CANCELLED"
)

// Ended reports whether the job will not run again.
func (s State) Ended() bool { return s == Completed || s == Cancelled }

// leastRun is the bound of the bounded slowdown: shorter jobs count as if they ran as long.
const leastRun = 10 * time.Second

// Result is what a replay found out.
type Result struct {
	Summary Summary
	// Jobs are those that were submitted, in the order of submission.
	Jobs []Job
	// Record is nil unless the options asked for it.
	Record *Record
}

// Job is the result for a job. Times are of the trace.
type Job struct {
	ID, Queue string
	State     State
	Size      int             // pods
	Gang      int             // pods that start together
	GPUs      int64           // of the gang
	Request   v1.ResourceList // of the first pods
	Limit     time.Duration   // declared; 0 if there is none
	Submit    time.Duration
	Start     time.Duration // when the first run began; if Runs > 0
	End       time.Duration // if State.Ended
	Run       time.Duration
	Runs      int // begun
	Evictions int // of pods
	Lost      time.Duration
	Kept      time.Duration // of the run time: work that was done and not lost
	// Nodes are those of the last run, as numbers in the order of the nodes; Reason is the one with the longest part of the
	// wait. Both are empty unless the options asked for a record.
	Nodes      string
	Reason     string
	ReasonPart float64 // from 0 to 1
	// Domains are in how many domains of each level of Summary.Levels the last run was; nil if there was none.
	Domains []int
}

// WaitUntil returns the wait. That of a job that has not started lasts until the end of the replay or of the job.
func (j *Job) WaitUntil(end time.Duration) time.Duration {
	switch {
	case j.Runs > 0:
		return j.Wait()
	case j.State.Ended():
		return j.End - j.Submit
	default:
		return end - j.Submit
	}
}

// Wait returns the time from submission to the first run.
func (j *Job) Wait() time.Duration { return j.Start - j.Submit }

// Slowdown returns the bounded slowdown: the time from submission to the end, relative to the run time, which counts as 10
// seconds if it is shorter; at least 1.
func (j *Job) Slowdown() float64 {
	return max(1, (j.End-j.Submit).Seconds()/max(j.Run, leastRun).Seconds())
}

// Summary are the measures of a replay. Its JSON is summary.json. Times are in seconds.
type Summary struct {
	Jobs      int `json:"jobs"` // submitted
	Completed int `json:"completed"`
	Cancelled int `json:"cancelled"`
	// Running and Pending are numbers of jobs at the end.
	Running int `json:"running"`
	Pending int `json:"pending"`
	// Until is the time of the trace at which the replay ended.
	Until float64 `json:"untilSeconds"`
	// Makespan is the time from the first submission until the last end.
	Makespan float64 `json:"makespanSeconds"`
	// Wait is about the jobs that have started.
	Wait Wait `json:"waitSeconds"`
	// MeanBoundedSlowdown is about the jobs that have completed.
	MeanBoundedSlowdown float64 `json:"meanBoundedSlowdown"`
	// LargeJobs are those with at least LargeJobPods pods, which is half the number of nodes.
	LargeJobs        int           `json:"largeJobs"`
	LargeJobPods     int           `json:"largeJobPods"`
	LongestLargeWait float64       `json:"longestWaitOfLargeJobsSeconds"`
	Utilisation      []Utilisation `json:"utilisation"` // from the first submission until the last end
	// Goodput is the part of each resource that runs used whose work was not lost.
	Goodput []Utilisation `json:"goodput"`
	// SizeUnit is what Sizes count: GPUs, or pods if no job requests GPUs.
	SizeUnit string      `json:"sizeUnit"`
	Sizes    []SizeClass `json:"sizes"`
	// Gangs is the wait of jobs of GangSize or more, as in Sizes.
	Gangs    Wait  `json:"waitOfGangsSeconds"`
	GangSize int64 `json:"gangSize"`
	// Queues, Jain and Longest are missing unless the options asked for a record.
	Queues  []QueueSummary `json:"queues,omitempty"`
	Jain    float64        `json:"jain,omitempty"` // see the function jain
	Longest *LongestWait   `json:"longestWait,omitempty"`
	// Levels are those of all Topologies; missing if there are none.
	Levels []LevelSummary `json:"topologyLevels,omitempty"`
	// Evictions are evicted pods, and LostPodSeconds the work of runs that did not complete.
	Evictions      int     `json:"evictions"`
	LostPodSeconds float64 `json:"lostPodSeconds"`
	Sessions       int     `json:"sessions"`
	// Notes state what was left out of the trace.
	Notes []string `json:"notes"`
}

// Wait is a distribution of times in seconds.
type Wait struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P95  float64 `json:"p95"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
}

// Utilisation is the part of a resource that pods held, from 0 to 1.
type Utilisation struct {
	Resource v1.ResourceName `json:"resource"`
	Part     float64         `json:"part"`
}

// Main returns the part of the resource that stands for the cluster: of GPUs, or of CPUs if there are none.
func Main(list []Utilisation) Utilisation {
	names := make([]v1.ResourceName, len(list))
	for i, u := range list {
		names[i] = u.Resource
	}
	if i := mainResource(names); i >= 0 {
		return list[i]
	}
	return Utilisation{}
}

// SizeClass are the jobs of a range of sizes.
type SizeClass struct {
	Least int64 `json:"least"`
	Most  int64 `json:"most,omitempty"` // 0: without limit
	Jobs  int   `json:"jobs"`
	// Started jobs have begun a first run. Wait is about all jobs; that of others lasts until the end of the replay.
	Started int  `json:"started"`
	Wait    Wait `json:"waitSeconds"`
}

// QueueSummary are the measures of a queue. Hours are those of the main resource, such as GPU-hours.
type QueueSummary struct {
	Name string `json:"name"`
	Jobs int    `json:"jobs"`
	Wait Wait   `json:"waitSeconds"` // of its jobs that have started
	// HeldHours is what its pods held, DeservedHours what it deserved, and OwedHours how much less it held than it deserved
	// and requested.
	Resource      v1.ResourceName `json:"resource"`
	HeldHours     float64         `json:"heldHours"`
	DeservedHours float64         `json:"deservedHours"`
	OwedHours     float64         `json:"owedHours"`
}

// LevelSummary are the measures of a level of a Topology.
type LevelSummary struct {
	Topology string `json:"topology"`
	Level    string `json:"level"`
	Domains  int    `json:"domains"` // at the end
	// MeanFree is the mean number of domains without pods of jobs, from the first submission until the last end.
	MeanFree float64 `json:"meanWholeFreeDomains"`
	// Gangs are the jobs of several pods that have started, and InOneDomain those of them whose last run was in one domain.
	Gangs       int `json:"gangs"`
	InOneDomain int `json:"gangsInOneDomain"`
}

// LongestWait is the longest wait of a job, including jobs that have not started.
type LongestWait struct {
	Job     string  `json:"job"`
	Seconds float64 `json:"seconds"`
	// Reason is the one with the longest part of the wait, and Part how much of it, from 0 to 1.
	Reason string  `json:"reason"`
	Part   float64 `json:"part"`
}

// round rounds to six decimals, for output.
func round(x float64) float64 { return math.Round(x*1e6) / 1e6 }
