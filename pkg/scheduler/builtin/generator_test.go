// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"fmt"

	"pgregory.net/rapid"

	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// size is a number of cpus, GiB of memory, and GPUs.
type size struct{ cpu, mem, gpu int }

func (s size) String() string {
	text := ""
	for _, a := range []struct {
		n    int
		unit string
	}{{s.cpu, "cpu"}, {s.mem, "Gi"}, {s.gpu, "gpu"}} {
		if a.n > 0 {
			text += fmt.Sprintf("%d%s ", a.n, a.unit)
		}
	}
	return text
}

func (s size) fits(o size) bool { return s.cpu <= o.cpu && s.mem <= o.mem && s.gpu <= o.gpu }

func (s size) minus(o size) size { return size{s.cpu - o.cpu, s.mem - o.mem, s.gpu - o.gpu} }

// generator draws clusters in which repeated evictions are likely.
type generator struct {
	nodes      []size
	requests   []size
	queues     int // maximum, without the default queue
	jobs       int // maximum
	priorities int32
	gangs      bool // most jobs have minMember equal to their size
	anchors    bool // queues hold pods that a budget protects from eviction
	strict     bool // queues have guarantees or capabilities, or are not reclaimable
	faults     bool // evictions fail, and nodes are lost
	expects    bool // some jobs have minResources for more pods than they have
	racks      bool // there are more nodes, which are in racks, and most jobs require one rack
}

func generators() map[string]generator {
	one := []size{{1, 0, 0}, {1, 0, 0}, {2, 0, 0}, {3, 0, 0}, {5, 0, 0}}
	two := []size{{1, 0, 0}, {0, 1, 0}, {2, 0, 0}, {0, 2, 0}, {1, 2, 0}, {2, 1, 0}, {0, 3, 0}, {3, 0, 0}, {1, 1, 0}, {5, 0, 0}}
	three := append([]size{{1, 0, 1}, {0, 0, 1}, {1, 2, 1}, {1, 0, 2}}, two...)
	return map[string]generator{
		"ties": {
			nodes: []size{{4, 9, 0}, {6, 9, 0}, {3, 9, 0}, {8, 9, 0}}, requests: one, queues: 2, jobs: 7, gangs: true,
		},
		"jobs that hold one dimension and contend in another": {
			nodes: []size{{4, 4, 0}, {6, 6, 0}, {4, 8, 0}}, requests: two, jobs: 6,
		},
		"queues that hold one dimension and contend in another": {
			nodes: []size{{4, 4, 2}, {6, 6, 4}, {3, 6, 2}}, requests: three, queues: 2, jobs: 7, gangs: true, anchors: true, strict: true,
		},
		"priorities between jobs and within jobs": {
			nodes: []size{{4, 4, 0}, {3, 6, 0}, {6, 6, 0}}, requests: two, queues: 1, jobs: 5, priorities: 2,
		},
		"refused evictions and lost nodes": {
			nodes: []size{{4, 4, 2}, {3, 6, 2}, {6, 4, 2}}, requests: three, queues: 2, jobs: 6, priorities: 1, strict: true, faults: true,
		},
		"racks and lost nodes": {
			nodes: []size{{2, 4, 0}, {3, 4, 0}, {4, 4, 0}}, requests: one, queues: 1, jobs: 5, priorities: 1, gangs: true, faults: true, racks: true,
		},
		"expected pods": {
			nodes: []size{{4, 4, 2}, {6, 6, 4}, {8, 6, 2}}, requests: two, queues: 2, jobs: 6, priorities: 1, expects: true,
		},
	}
}

// scenario draws a cluster in a running state, and what happens in it.
func (g generator) scenario(t *rapid.T) scenario {
	d := &drawing{T: t, generator: g, scenario: scenario{
		grace:          rapid.IntRange(0, 3).Draw(t, "grace"),
		noReservations: rapid.Bool().Draw(t, "noReservations"),
		recreate:       rapid.IntRange(0, 3).Draw(t, "victims vanish") < 3,
	}}
	d.drawQueues()
	moreNodes := 1
	if d.racks {
		d.row(Topology("default", "rack"))
		moreNodes = 5
	}
	for range 1 + d.upTo(moreNodes, "nodes") {
		d.drawNode()
	}
	if d.faults {
		d.drawFaults()
	}
	if d.anchors {
		d.drawAnchors()
	}
	if d.expects {
		d.expect = 1 + d.upTo(9, "expect")
	}
	for range 3 + d.upTo(g.jobs-3, "jobs") {
		d.drawJob()
	}
	return d.scenario
}

// drawing is a scenario that is being drawn.
type drawing struct {
	*rapid.T
	generator
	scenario
	queueNames []string
	nodeNames  []string
	available  map[string]size
	jobsDrawn  int
}

func (d *drawing) upTo(n int, what string) int { return rapid.IntRange(0, n).Draw(d.T, what) }

func (d *drawing) row(r Row) { d.given = append(d.given, r) }

func (d *drawing) drawQueues() {
	d.queueNames = []string{"default"}
	d.row(PriorityClass("high", 1))
	d.row(Queue("default", 1))
	for i := range d.upTo(d.queues, "queues") {
		name := fmt.Sprintf("q%d", i)
		d.queueNames = append(d.queueNames, name)
		var options []QueueOption
		if d.strict {
			switch d.upTo(6, "queue option") {
			case 1:
				options = append(options, Guarantee(size{cpu: 2}.String()))
			case 2:
				options = append(options, Guarantee(size{cpu: 1, mem: 2}.String()))
			case 3:
				options = append(options, Capability(size{cpu: 3}.String()))
			case 4:
				options = append(options, NotReclaimable())
			}
		}
		d.row(Queue(name, int32(1+d.upTo(2, "weight")), options...))
	}
}

func (d *drawing) drawNode() {
	name := fmt.Sprintf("n%d", len(d.nodeNames))
	allocatable := rapid.SampledFrom(d.nodes).Draw(d.T, "allocatable")
	d.nodeNames = append(d.nodeNames, name)
	if d.available == nil {
		d.available = map[string]size{}
	}
	d.available[name] = allocatable
	var options []NodeOption
	if d.racks && d.upTo(9, "in a rack") > 0 {
		options = append(options, Label("rack", fmt.Sprintf("r%d", d.upTo(2, "rack"))))
	}
	d.row(Node(name, allocatable.String(), options...))
}

func (d *drawing) drawFaults() {
	d.failures, d.lost, d.blockedFor = map[int]int{}, map[int]string{}, 1+d.upTo(3, "blockedFor")
	for range d.upTo(3, "refusals") {
		d.failures[d.upTo(9, "cycle of a refusal")] = d.upTo(2, "refused")
	}
	if len(d.nodeNames) > 1 && d.upTo(1, "losses") > 0 {
		d.lost[d.upTo(9, "cycle of a loss")] = d.nodeNames[len(d.nodeNames)-1]
	}
	if d.upTo(1, "budgets") > 0 {
		d.row(Budget("b", int32(d.upTo(2, "allowed")), "app", "x"))
	}
}

// drawAnchors draws running pods that a budget protects from eviction.
func (d *drawing) drawAnchors() {
	d.row(Budget("anchors", 0, "app", "anchor"))
	for i, queue := range d.queueNames {
		held := rapid.SampledFrom([]size{{}, {0, 3, 0}, {0, 4, 0}, {0, 0, 1}, {0, 0, 2}, {3, 0, 0}}).Draw(d.T, "anchor")
		if node := d.drawNodeFor(held); held != (size{}) && node != "" {
			d.row(Group(fmt.Sprintf("%s/anchor%d", queue, i), 1, Running(1, held.String(), node, Label("app", "anchor"))))
		}
	}
}

// drawNodeFor draws a node and reserves resources on it; it returns "" if they do not suffice.
func (d *drawing) drawNodeFor(s size) string {
	node := rapid.SampledFrom(d.nodeNames).Draw(d.T, "node")
	if !s.fits(d.available[node]) {
		return ""
	}
	d.available[node] = d.available[node].minus(s)
	return node
}

// drawJob draws a PodGroup with members that run, as far as nodes have resources, and members that wait.
func (d *drawing) drawJob() {
	name := fmt.Sprintf("%s/g%d", rapid.SampledFrom(d.queueNames).Draw(d.T, "queue"), d.jobsDrawn)
	d.jobsDrawn++
	request := rapid.SampledFrom(d.requests).Draw(d.T, "request")
	other := rapid.SampledFrom(append([]size{request, request}, d.requests...)).Draw(d.T, "other request")
	var parts []Part
	if d.faults && d.upTo(1, "label") > 0 {
		parts = append(parts, Label("app", "x"))
	}
	members := 0
	for range d.upTo(5, "running") {
		if node := d.drawNodeFor(other); node != "" {
			parts = append(parts, Running(1, other.String(), node, d.drawMember()...))
			members++
		}
	}
	if n := d.upTo(4, "waiting"); n > 0 || members == 0 {
		n = max(n, 1)
		parts = append(parts, Pending(n, request.String(), d.drawMember()...))
		members += n
	}
	least := 1 + d.upTo(min(members, 4)-1, "min")
	if d.gangs && d.upTo(2, "gang") > 0 {
		least = members
	}
	if d.priorities > 0 && d.upTo(1, "class") > 0 {
		parts = append(parts, Class("high")) // whatever the priorities of its members
		d.overtaking = true
	}
	if d.expects && d.upTo(1, "expects") > 0 {
		more := rapid.SampledFrom(d.requests).Draw(d.T, "expected")
		parts = append(parts, MinResources(size{request.cpu*least + more.cpu, request.mem*least + more.mem, 0}.String()))
	}
	if d.racks && d.upTo(3, "requires a rack") > 0 {
		parts = append(parts, Within("rack"))
	}
	if d.upTo(4, "with subgroups") > 3 {
		parts = append(parts, randomSubGroups(d.upTo)...)
	}
	d.row(Group(name, int32(least), parts...))
}

// drawMember draws the options of a member.
func (d *drawing) drawMember() []PodOption { return append(roleOptions(d.upTo), d.drawPriority()) }

func (d *drawing) drawPriority() PodOption {
	priority := rapid.Int32Range(0, d.priorities).Draw(d.T, "priority")
	d.overtaking = d.overtaking || priority > 0
	return Priority(priority)
}
