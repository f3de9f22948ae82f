// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/trace"
)

// Record is what a replay collects besides its summary if Options.Record is set. All lists are by time.
type Record struct {
	// Resources are those of the nodes. Amounts below have one number for each of them, in units such as one CPU or one byte.
	Resources []v1.ResourceName
	// Main is the resource that stands for a cluster with one number: GPUs, or CPUs if the nodes have none. It is an index of
	// Resources, or negative if there are no resources.
	Main int
	// Cluster has the state after the sessions of each time.
	Cluster []ClusterSample
	// Queues has the state of a queue whenever its jobs or what they hold have changed.
	Queues    []QueueSample
	Evictions []Eviction
}

// ClusterSample is the state of the cluster from a time of the trace until that of the next sample.
type ClusterSample struct {
	At               time.Duration
	Held, Usable     []float64
	Pending, Running int // jobs
	// Free are the numbers of nodes with at least 8, 4, 2 and 1 GPUs that no pod holds.
	Free [4]int
	// FreeDomains are the numbers of whole free domains of each level of Summary.Levels.
	FreeDomains []int
}

// QueueSample is the state of a queue. Requested includes what is held. Deserved is what the queue deserved then: it may
// change without a further sample.
type QueueSample struct {
	At                        time.Duration
	Queue                     string
	Held, Deserved, Requested []float64
	Pending, Running          int // jobs
}

// Eviction is the eviction of a pod.
type Eviction struct {
	At         time.Duration
	Job, Queue string
	Pod        int // number within its job
	Node       string
	For        string // the job that it is evicted for; empty if there is none
	Cause      string // preempted, reclaimed, gang-degraded or overran
	// Lost is how much of the work of its job is lost, if the eviction ended the run.
	Lost time.Duration
}

// freeSteps are the numbers of GPUs that ClusterSample.Free counts nodes by.
var freeSteps = [4]int64{8, 4, 2, 1}

// recorder makes a Record, and adds up the shares of queues and the reasons of waits. All methods of a nil recorder do
// nothing.
type recorder struct {
	Record
	usage   *usage
	jobs    map[State]int
	shares  *shares
	waits   waits
	free    map[string]int64 // GPUs that no pod holds, by nodes that are up
	counts  [4]int
	all     map[string]int64 // GPUs of nodes that are up
	numbers map[string]int   // of nodes, in the order of the input, and then in that in which the trace adds them
}

func newRecorder(r *replay) *recorder {
	c := &recorder{
		Record: Record{Resources: r.usage.names, Main: mainResource(r.usage.names)},
		usage:  r.usage, jobs: map[State]int{}, free: map[string]int64{}, all: map[string]int64{}, numbers: map[string]int{},
	}
	c.shares = newShares(c, r.cluster.Dims())
	for _, n := range r.Nodes {
		c.setNode(n)
	}
	return c
}

// mainResource returns the index of the first resource that stands for GPUs, or else of cpu; negative if there is neither.
func mainResource(names []v1.ResourceName) int {
	if i := slices.IndexFunc(names, trace.IsGPU); i >= 0 {
		return i
	}
	return slices.Index(names, v1.ResourceCPU)
}

// gpus returns the number of GPUs in a list.
func gpus(list v1.ResourceList) (n int64) {
	for name, q := range list {
		if trace.IsGPU(name) {
			n += q.Value()
		}
	}
	return n
}

// setNode adds a node, or changes what it has.
func (c *recorder) setNode(n *v1.Node) {
	if c == nil {
		return
	}
	if _, known := c.numbers[n.Name]; !known {
		c.numbers[n.Name] = len(c.numbers)
	}
	all := gpus(n.Status.Allocatable)
	free, there := c.free[n.Name]
	if there {
		c.count(free, -1)
	}
	c.free[n.Name] = free + all - c.all[n.Name]
	c.all[n.Name] = all
	c.count(c.free[n.Name], 1)
}

// removeNode removes a node if it is there.
func (c *recorder) removeNode(name string) {
	if c == nil {
		return
	}
	if free, there := c.free[name]; there {
		c.count(free, -1)
	}
	delete(c.free, name)
	delete(c.all, name)
}

// use records that a pod holds resources of a node, or with the sign -1 that it does not any more.
func (c *recorder) use(node string, request v1.ResourceList, sign int64) {
	if c == nil {
		return
	}
	n := gpus(request)
	if n == 0 {
		return
	}
	c.count(c.free[node], -1)
	c.free[node] -= sign * n
	c.count(c.free[node], 1)
}

func (c *recorder) count(free int64, by int) {
	for i, step := range freeSteps {
		if free >= step {
			c.counts[i] += by
		}
	}
}

// moved records that a job has changed its state.
func (c *recorder) moved(j *job, from, to State) {
	if c == nil {
		return
	}
	c.jobs[from]--
	c.jobs[to]++
	c.shares.moved(j, from, to)
	if from == "" {
		c.waits.add(j)
	}
}

// started records the end of the wait of a job.
func (c *recorder) started(j *job, at time.Duration) {
	if c != nil {
		j.why.until(at)
	}
}

// placed records the nodes of a run.
func (c *recorder) placed(j *job) {
	if c == nil {
		return
	}
	numbers := make([]int, 0, len(j.pods))
	for _, p := range j.pods {
		if p.running {
			numbers = append(numbers, c.numbers[p.Spec.NodeName])
		}
	}
	j.nodes = intervals(numbers)
}

func (c *recorder) evicted(v victim, at, lost time.Duration) {
	if c == nil {
		return
	}
	e := Eviction{At: at, Job: v.pod.job.ID, Queue: v.pod.job.queue, Pod: v.pod.number, Node: v.pod.Spec.NodeName, Cause: v.cause, Lost: lost}
	if v.by != nil {
		e.For = v.by.ID
	}
	c.Evictions = append(c.Evictions, e)
}

// sample records the state after the sessions of a time.
func (c *recorder) sample(r *replay) {
	if c == nil || r.last == nil {
		return
	}
	now := r.clock.at
	c.Cluster = append(c.Cluster, ClusterSample{
		At: now, Held: slices.Clone(c.usage.held), Usable: slices.Clone(c.usage.usable), Pending: c.jobs[Pending], Running: c.jobs[Running],
		Free: c.counts, FreeDomains: r.domains.freeNow(),
	})
	c.shares.sample(r, now)
	c.waits.sample(r, now)
}
