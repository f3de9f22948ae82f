// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package scenario generates the events of a soak: a list of steps that depends only on a seed and a length. The
// effect of a step depends on the state of the cluster; the list does not.
package scenario

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Kind is the kind of a step.
type Kind string

// The kinds of steps.
const (
	Submit     Kind = "submit a job"
	Remove     Kind = "delete a job"
	Scale      Kind = "scale a job"
	Reduce     Kind = "delete pods of a job"
	NodeLoss   Kind = "a node becomes NotReady"
	Drain      Kind = "delete the pods of a lost node"
	Delete     Kind = "delete a node"
	Cordon     Kind = "cordon a node"
	NodeReturn Kind = "a node returns"
	Queue      Kind = "create or update a queue"
	Unqueue    Kind = "delete a queue"
	Priority   Kind = "replace a priority class"
	Budget     Kind = "create a disruption budget"
	Unbudget   Kind = "delete a disruption budget"
	Foreign    Kind = "a plain client binds a pod"
	JobDelete  Kind = "delete the pod of a plain client"
	Term       Kind = "restart the scheduler with SIGTERM"
	Kill       Kind = "restart the scheduler with SIGKILL"
)

// Kinds returns all kinds of steps.
func Kinds() []Kind {
	return []Kind{
		Submit, Remove, Scale, Reduce, NodeLoss, Drain, Delete, Cordon, NodeReturn, Queue, Unqueue, Priority, Budget, Unbudget,
		Foreign, JobDelete, Term, Kill,
	}
}

// Step is one event.
type Step struct {
	At   time.Duration // since the start
	Kind Kind
	Name string // of the job, node, queue, class, budget or pod

	Job   Job           // Submit
	Size  int           // Scale: the new size; Reduce: how many pods; Budget: how many stay; Priority: the value
	Min   int           // Scale: the new minMember
	Limit Limit         // weight and capability
	Node  int           // Foreign: the node, if it has enough resources
	Milli int           // Foreign: the cpu request
	Pause time.Duration // Term, Kill: how long no scheduler runs
}

// String formats the step on one line.
func (s Step) String() string {
	text := fmt.Sprintf("%s %s", s.Kind, s.Name)
	switch s.Kind {
	case Submit:
		text += " " + s.Job.String()
	case Scale:
		text += fmt.Sprintf(" to %d pods, minMember %d", s.Size, s.Min)
	case Reduce, Budget, Priority:
		text += fmt.Sprintf(" %d", s.Size)
	case Queue:
		text += fmt.Sprintf(" weight %d, at most %d cpu and %d gpu", s.Limit.Weight, s.Limit.CPU, s.Limit.GPU)
	}
	return text
}

// Job is a number of equal pods, as a gang or independent.
type Job struct {
	Namespace, Name, Queue, Priority string

	Gang              bool
	Size, Min         int
	Milli, Memory     int // of each pod: millicores, and MiB
	GPU               int
	Zone              string        // the zone of the pods; empty: any
	RunFor, Terminate time.Duration // how long each pod runs (0: until deleted), and takes to terminate
}

// String formats the job on one line.
func (j Job) String() string {
	return fmt.Sprintf("in %s/%s: %d of %d pods, %dm cpu, %d MiB, %d gpu, zone %q, priority %s, run for %s, gang %t",
		j.Namespace, j.Queue, j.Min, j.Size, j.Milli, j.Memory, j.GPU, j.Zone, j.Priority, j.RunFor, j.Gang)
}

// Limit is the weight and the capability of a queue. Zero is unlimited.
type Limit struct {
	Weight, CPU, GPU int
}

// The cluster of the scenario.
const (
	Plain, GPUNodes = 8, 4 // nodes
	NodeCPU         = 8
	NodeGPU         = 4
	Zones           = 3
	away            = 3 // maximum number of lost nodes
)

// Nodes returns the names of the nodes; the last ones have GPUs.
func Nodes() []string {
	var names []string
	for i := range Plain {
		names = append(names, fmt.Sprintf("node-%d", i))
	}
	for i := range GPUNodes {
		names = append(names, fmt.Sprintf("gpu-%d", i))
	}
	return names
}

// Namespaces returns the namespaces of jobs.
func Namespaces() []string { return []string{"team-a", "team-b", "team-c"} }

// Queues returns the queues that are created and deleted, without the default one.
func Queues() []string { return []string{"alpha", "beta", "gamma", "delta"} }

// Priorities returns the priority classes; the last one is replaced repeatedly.
func Priorities() []string { return []string{"low", "middle", "high", "fleeting"} }

// Value returns the initial value of a priority class.
func Value(class string) int32 {
	return map[string]int32{"low": 1, "middle": 10, "high": 100, "fleeting": 20}[class]
}

// plan is a scenario that is being generated.
type plan struct {
	random *rand.Rand
	now    time.Duration
	steps  []Step
	jobs   []planned
	nodes  map[string]time.Duration // until when a node is lost
	serial int
}

// planned is a job with the time of its deletion.
type planned struct {
	Job
	until time.Duration
}

// Draw generates a scenario of the given length.
func Draw(seed uint64, length time.Duration) []Step {
	p := &plan{random: rand.New(rand.NewPCG(seed, 0)), nodes: map[string]time.Duration{}}
	for _, q := range Queues() {
		p.add(Step{Kind: Queue, Name: q, Limit: p.limit()})
	}
	for p.now < length {
		p.jobs = slices.DeleteFunc(p.jobs, func(j planned) bool { return j.until <= p.now })
		p.draw()
		p.now += time.Duration(p.random.ExpFloat64() * float64(450*time.Millisecond))
	}
	p.restarts(length)
	slices.SortStableFunc(p.steps, func(a, b Step) int { return cmp.Compare(a.At, b.At) })
	return slices.DeleteFunc(p.steps, func(s Step) bool { return s.At >= length })
}

func (p *plan) add(s Step) {
	s.At += p.now
	p.steps = append(p.steps, s)
}

// draw adds a random step and its later counterpart.
func (p *plan) draw() {
	switch n := p.random.IntN(100); {
	case n < 45:
		p.submit()
	case n < 53:
		p.scale()
	case n < 59:
		p.reduce()
	case n < 61:
		p.lose()
	case n < 63:
		p.leave(Delete, 3, 30)
	case n < 66:
		p.leave(Cordon, 3, 30)
	case n < 72:
		p.add(Step{Kind: Queue, Name: one(p, Queues()), Limit: p.limit()})
	case n < 74:
		name := one(p, Queues())
		p.add(Step{Kind: Unqueue, Name: name})
		p.add(Step{Kind: Queue, Name: name, Limit: p.limit(), At: p.seconds(1, 20)})
	case n < 76:
		p.add(Step{Kind: Priority, Name: "fleeting", Size: p.random.IntN(200)})
	case n < 81:
		p.budget()
	default:
		p.foreign()
	}
}

func one[T any](p *plan, list []T) T { return list[p.random.IntN(len(list))] }

// seconds returns a random duration.
func (p *plan) seconds(least, most int) time.Duration {
	return time.Duration(least)*time.Second + time.Duration(p.random.Int64N(int64(most-least)*int64(time.Second)))
}

// busy returns the cpu requests of the existing jobs.
func (p *plan) busy() int {
	sum := 0
	for _, j := range p.jobs {
		sum += j.Size * j.Milli
	}
	return sum / 1000
}

// submit adds a job, unless the requests of jobs exceed twice the capacity.
func (p *plan) submit() {
	if p.busy() > 2*NodeCPU*(Plain+GPUNodes) {
		return
	}
	j := Job{
		Namespace: one(p, Namespaces()), Queue: one(p, append(Queues(), "", "")), Priority: one(p, append(Priorities(), "low", "low")),
		Gang: p.random.IntN(4) > 0, Milli: one(p, []int{250, 500, 1000, 1000, 2000, 4000}), Memory: one(p, []int{128, 512, 2048}),
	}
	p.serial++
	j.Name = fmt.Sprintf("job-%04d", p.serial)
	if p.random.IntN(5) == 0 {
		j.GPU, j.Milli = 1+p.random.IntN(2), 500
	} else if p.random.IntN(5) == 0 {
		j.Zone = zone(p.random.IntN(Zones))
	}
	j.Size = one(p, []int{1, 2, 3, 4, 6, 8, 12, 16})
	j.Min = 1
	if j.Gang {
		j.Min = one(p, []int{1, (j.Size + 1) / 2, j.Size, j.Size})
	} else {
		j.Size = min(j.Size, 6)
	}
	if p.random.IntN(2) == 0 {
		j.RunFor = p.seconds(3, 30)
	}
	j.Terminate = one(p, []time.Duration{0, 0, time.Second, 3 * time.Second})
	life := p.seconds(5, 120)
	p.jobs = append(p.jobs, planned{j, p.now + life})
	p.add(Step{Kind: Submit, Name: j.Name, Job: j})
	p.add(Step{Kind: Remove, Name: j.Name, At: life})
}

func (p *plan) scale() {
	if len(p.jobs) == 0 {
		return
	}
	j := &p.jobs[p.random.IntN(len(p.jobs))]
	j.Size = max(1, j.Size+p.random.IntN(9)-4)
	if j.Gang && (p.random.IntN(3) == 0 || j.Min > j.Size) {
		j.Min = 1 + p.random.IntN(j.Size)
	}
	p.add(Step{Kind: Scale, Name: j.Name, Size: j.Size, Min: j.Min})
}

func (p *plan) reduce() {
	if len(p.jobs) > 0 {
		p.add(Step{Kind: Reduce, Name: one(p, p.jobs).Name, Size: 1 + p.random.IntN(3)})
	}
}

// node returns an available node, unless too many are lost.
func (p *plan) node() (string, bool) {
	gone := 0
	for _, until := range p.nodes {
		if until > p.now {
			gone++
		}
	}
	name := one(p, Nodes())
	return name, gone < away && p.nodes[name] <= p.now
}

// leave removes a node for some seconds.
func (p *plan) leave(kind Kind, least, most int) (name string, d time.Duration) {
	name, free := p.node()
	if !free {
		return "", 0
	}
	d = p.seconds(least, most)
	p.nodes[name] = p.now + d
	p.add(Step{Kind: kind, Name: name})
	p.add(Step{Kind: NodeReturn, Name: name, At: d})
	return name, d
}

func (p *plan) lose() {
	if name, d := p.leave(NodeLoss, 2, 30); name != "" && p.random.IntN(2) == 0 {
		p.add(Step{Kind: Drain, Name: name, At: d / 2})
	}
}

func (p *plan) budget() {
	if len(p.jobs) == 0 {
		return
	}
	j := one(p, p.jobs)
	p.add(Step{Kind: Budget, Name: j.Name, Size: p.random.IntN(j.Size + 1)})
	p.add(Step{Kind: Unbudget, Name: j.Name, At: p.seconds(5, 40)})
}

func (p *plan) foreign() {
	p.serial++
	name := fmt.Sprintf("foreign-%04d", p.serial)
	p.add(Step{Kind: Foreign, Name: name, Node: p.random.IntN(Plain + GPUNodes), Milli: one(p, []int{100, 500, 1000})})
	p.add(Step{Kind: JobDelete, Name: name, At: p.seconds(3, 30)})
}

// limit returns a random limit of a queue.
func (p *plan) limit() Limit {
	l := Limit{Weight: one(p, []int{1, 1, 2, 4})}
	if p.random.IntN(2) == 0 {
		l.CPU = 10 + p.random.IntN(40)
	}
	if p.random.IntN(4) == 0 {
		l.GPU = 1 + p.random.IntN(8)
	}
	return l
}

// restarts are distributed over the first two thirds, so that the last scheduler has run for some time at the final
// checks.
func (p *plan) restarts(length time.Duration) {
	for p.now = p.seconds(15, 30); p.now < length*2/3; p.now += p.seconds(25, 80) {
		p.add(Step{Kind: one(p, []Kind{Term, Kill}), Pause: time.Duration(p.random.Int64N(int64(3 * time.Second)))})
	}
}

// ample is the fraction of the capacity that jobs request at the end, so that all of them fit.
const ample = 0.4

// Keep reports which of the jobs fit together easily, in order: by cpu and GPUs, and in each zone.
func Keep(jobs []Job) []bool {
	left := map[string]int{"cpu": NodeCPU * 1000 * (Plain + GPUNodes), "gpu": NodeGPU * GPUNodes}
	for i := range Zones {
		left[zone(i)] = left["cpu"] / Zones
	}
	for what, n := range left {
		left[what] = int(ample * float64(n))
	}
	stay := make([]bool, len(jobs))
	for i, j := range jobs {
		asked := map[string]int{"cpu": j.Size * j.Milli, "gpu": j.Size * j.GPU}
		if j.Zone != "" {
			asked[j.Zone] = j.Size * j.Milli
		}
		stay[i] = true
		for what, n := range asked {
			stay[i] = stay[i] && n <= left[what]
		}
		if !stay[i] {
			continue
		}
		for what, n := range asked {
			left[what] -= n
		}
	}
	return stay
}

func zone(i int) string { return "zone-" + string(rune('a'+i)) }
