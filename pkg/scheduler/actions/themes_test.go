package actions_test

import (
	"fmt"

	"pgregory.net/rapid"

	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// size is an amount of cpus, GiB of memory, and gpus.
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

// theme is a kind of clusters in which evictions are likely to follow each other.
type theme struct {
	nodes      []size
	requests   []size
	queues     int // at most, besides the default queue
	jobs       int // at most
	priorities int32
	gangs      bool // that need all of their members are frequent
	anchors    bool // queues hold much that never goes
	strict     bool // queues have guarantees, capabilities, or give nothing back
	troubled   bool // evictions are refused, and nodes are lost
}

func themes() map[string]theme {
	one := []size{{1, 0, 0}, {1, 0, 0}, {2, 0, 0}, {3, 0, 0}, {5, 0, 0}}
	two := []size{{1, 0, 0}, {0, 1, 0}, {2, 0, 0}, {0, 2, 0}, {1, 2, 0}, {2, 1, 0}, {0, 3, 0}, {3, 0, 0}, {1, 1, 0}, {5, 0, 0}}
	three := append([]size{{1, 0, 1}, {0, 0, 1}, {1, 2, 1}, {1, 0, 2}}, two...)
	return map[string]theme{
		"ties": {
			nodes: []size{{4, 9, 0}, {6, 9, 0}, {3, 9, 0}, {8, 9, 0}}, requests: one, queues: 2, jobs: 7, gangs: true,
		},
		"jobs anchored in one dimension and contending in another": {
			nodes: []size{{4, 4, 0}, {6, 6, 0}, {4, 8, 0}}, requests: two, jobs: 6,
		},
		"queues anchored in one dimension and contending in another": {
			nodes: []size{{4, 4, 2}, {6, 6, 4}, {3, 6, 2}}, requests: three, queues: 2, jobs: 7, gangs: true, anchors: true, strict: true,
		},
		"priorities between jobs and within": {
			nodes: []size{{4, 4, 0}, {3, 6, 0}, {6, 6, 0}}, requests: two, queues: 1, jobs: 5, priorities: 2,
		},
		"refusals and losses": {
			nodes: []size{{4, 4, 2}, {3, 6, 2}, {6, 4, 2}}, requests: three, queues: 2, jobs: 6, priorities: 1, strict: true, troubled: true,
		},
	}
}

// course draws a cluster in a running state, and how things go in it.
func (h theme) course(t *rapid.T) course {
	d := &draw{T: t, theme: h, course: course{
		grace:     rapid.IntRange(0, 3).Draw(t, "grace"),
		noForming: rapid.Bool().Draw(t, "noForming"),
		back:      rapid.IntRange(0, 3).Draw(t, "victims vanish") < 3,
	}}
	d.drawQueues()
	for range 1 + d.upTo(1, "nodes") {
		d.drawNode()
	}
	if d.troubled {
		d.drawTrouble()
	}
	if d.anchors {
		d.drawAnchors()
	}
	for range 3 + d.upTo(h.jobs-3, "jobs") {
		d.drawJob()
	}
	return d.course
}

// draw is a course that is being made.
type draw struct {
	*rapid.T
	theme
	course
	queueNames []string
	nodeNames  []string
	room       map[string]size
	jobsDrawn  int
}

func (d *draw) upTo(n int, what string) int { return rapid.IntRange(0, n).Draw(d.T, what) }

func (d *draw) row(r Row) { d.given = append(d.given, r) }

func (d *draw) drawQueues() {
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

func (d *draw) drawNode() {
	name := fmt.Sprintf("n%d", len(d.nodeNames))
	allocatable := rapid.SampledFrom(d.nodes).Draw(d.T, "allocatable")
	d.nodeNames = append(d.nodeNames, name)
	if d.room == nil {
		d.room = map[string]size{}
	}
	d.room[name] = allocatable
	d.row(Node(name, allocatable.String()))
}

func (d *draw) drawTrouble() {
	d.refused, d.lost, d.pardon = map[int]int{}, map[int]string{}, 1+d.upTo(3, "pardon")
	for range d.upTo(3, "refusals") {
		d.refused[d.upTo(9, "cycle of a refusal")] = d.upTo(2, "refused")
	}
	if len(d.nodeNames) > 1 && d.upTo(1, "losses") > 0 {
		d.lost[d.upTo(9, "cycle of a loss")] = d.nodeNames[len(d.nodeNames)-1]
	}
	if d.upTo(1, "budgets") > 0 {
		d.row(Budget("b", int32(d.upTo(2, "allowed")), "app", "x"))
	}
}

// drawAnchors lets queues hold something that a budget keeps from going.
func (d *draw) drawAnchors() {
	d.row(Budget("anchors", 0, "app", "anchor"))
	for i, queue := range d.queueNames {
		held := rapid.SampledFrom([]size{{}, {0, 3, 0}, {0, 4, 0}, {0, 0, 1}, {0, 0, 2}, {3, 0, 0}}).Draw(d.T, "anchor")
		if node := d.drawNodeFor(held); held != (size{}) && node != "" {
			d.row(Group(fmt.Sprintf("%s/anchor%d", queue, i), 1, Running(1, held.String(), node, Label("app", "anchor"))))
		}
	}
}

// drawNodeFor draws a node and takes room on it; it returns "" if there is not enough.
func (d *draw) drawNodeFor(s size) string {
	node := rapid.SampledFrom(d.nodeNames).Draw(d.T, "node")
	if !s.fits(d.room[node]) {
		return ""
	}
	d.room[node] = d.room[node].minus(s)
	return node
}

// drawJob draws a group with some members that run, as far as nodes have room, and some that wait.
func (d *draw) drawJob() {
	name := fmt.Sprintf("%s/g%d", rapid.SampledFrom(d.queueNames).Draw(d.T, "queue"), d.jobsDrawn)
	d.jobsDrawn++
	request := rapid.SampledFrom(d.requests).Draw(d.T, "request")
	other := rapid.SampledFrom(append([]size{request, request}, d.requests...)).Draw(d.T, "other request")
	var parts []Part
	if d.troubled && d.upTo(1, "label") > 0 {
		parts = append(parts, Label("app", "x"))
	}
	members := 0
	for range d.upTo(5, "running") {
		if node := d.drawNodeFor(other); node != "" {
			parts = append(parts, Running(1, other.String(), node, d.drawPriority()))
			members++
		}
	}
	if n := d.upTo(4, "waiting"); n > 0 || members == 0 {
		n = max(n, 1)
		parts = append(parts, Pending(n, request.String(), d.drawPriority()))
		members += n
	}
	least := 1 + d.upTo(min(members, 4)-1, "min")
	if d.gangs && d.upTo(2, "gang") > 0 {
		least = members
	}
	if d.priorities > 0 && d.upTo(1, "class") > 0 {
		parts = append(parts, Class("high")) // whatever the priorities of its members
		d.ahead = true
	}
	d.row(Group(name, int32(least), parts...))
}

func (d *draw) drawPriority() PodOption {
	priority := rapid.Int32Range(0, d.priorities).Draw(d.T, "priority")
	d.ahead = d.ahead || priority > 0
	return Priority(priority)
}
