// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"cmp"
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// Model is what a plan reads. Its functions answer for the current state of the model.
type Model struct {
	Now   int64
	Nodes []*api.NodeInfo // by index; some may be nil
	// Ends returns when a task that holds resources, or will, releases them; NoEnd if that is not known.
	Ends func(*api.TaskInfo) (end int64, certainty Certainty)
	// EachFeasible visits the nodes where tasks like this one could run if they were empty, in the order of their indices.
	EachFeasible func(t *api.TaskInfo, visit func(index int))
	// Readings are those of plans with the same Ends.
	Readings *Readings
}

// Gang are tasks that start together.
type Gang struct {
	Job *api.JobInfo
	// Tasks in the order in which nodes are chosen; those of one signature are neighbours.
	Tasks []*api.TaskInfo
	// Run is how long they run at most, in nanoseconds; NoEnd if that is not known.
	Run int64
	// Domains are those of which all tasks must be in one; nil if the gang may be anywhere.
	Domains []*Domain
	// Parts have all of the tasks, in this order, if some of them must be in a domain of their own; else nil.
	Parts []*Part
}

// Start is a gang with its time and its nodes.
type Start struct {
	Gang
	At int64
	// Placements are those of the tasks, in their order.
	Placements []api.Decision
	// Domain has all of these nodes; nil if the gang may be anywhere.
	Domain *Domain
	// Open is set by the caller while others may use the resources of the start: Hold leaves it out.
	Open bool
}

// end returns when the resources of a start become free again.
func (s *Start) end() int64 {
	if s.Run >= NoEnd-s.At {
		return NoEnd
	}
	return s.At + s.Run
}

// Plan has the starts of gangs. Starts that are added later never delay those that were added before.
type Plan struct {
	Model
	byNode  []availability // by index of the node; without a reading if it was not needed yet
	starts  []*Start       // by time; of one time, in the order in which they were added
	touched []int          // indices of nodes with takings
	certain Certainty      // of all ends that were read

	// What follows is used again to save allocations.
	found    first[fit]
	since    []int64
	sum      api.Resource
	inDomain []int

	around bool // see chooseAround
}

// fit is where one more task fits.
type fit struct {
	since int64 // when it is free
	total int   // how many fit on the node
	node  *api.NodeInfo
}

// New returns an empty plan.
func New(m Model) *Plan {
	m.Readings.open(len(m.Nodes))
	return &Plan{Model: m, byNode: make([]availability, len(m.Nodes)), found: newFirst(0, compareFits)}
}

// Certainty returns what the starts depend on.
func (p *Plan) Certainty() Certainty { return p.certain }

// Starts returns the starts in the order of time. The caller must not change the slice.
func (p *Plan) Starts() []*Start { return p.starts }

// Add adds the gang at the earliest time at which it fits and delays nothing. It returns nil if no such time is known.
func (p *Plan) Add(g Gang) *Start {
	s := &Start{Gang: g}
	if p.addBefore(s, NoEnd) {
		return s
	}
	return nil
}

// addBefore adds a start at the earliest time at which it fits and delays nothing. If that is not before the limit, it changes
// nothing but the start, and reports false.
func (p *Plan) addBefore(s *Start, limit int64) bool {
	if s.Domains != nil {
		return inDomains{p}.addWithin(s, limit)
	}
	for at := (bounds{p}).earliest(s.Gang, nil); at < limit; {
		missing, ok := p.tryAt(s, at)
		if ok {
			return true
		}
		at = (bounds{p}).later(s, at, missing)
	}
	return false
}

// AddAt adds the gang at a time. It reports whether it fits and delays nothing.
func (p *Plan) AddAt(g Gang, at int64) (*Start, bool) {
	s := &Start{Gang: g}
	if g.Domains != nil {
		return s, inDomains{p}.tryWithin(s, max(at, p.Now))
	}
	_, ok := p.tryAt(s, max(at, p.Now))
	return s, ok
}

// insert adds a start to the order of time, after others of its time. It does not take anything.
func (p *Plan) insert(s *Start) {
	i, _ := slices.BinarySearchFunc(p.starts, s.At+1, func(other *Start, at int64) int { return cmp.Compare(other.At, at) })
	p.starts = slices.Insert(p.starts, i, s)
}

// Remove takes a start out.
func (p *Plan) Remove(s *Start) {
	i := slices.Index(p.starts, s)
	p.starts = slices.Delete(p.starts, i, i+1)
	p.release(s)
}

// Choose chooses the nodes of all starts again, after the model has changed, for the same times. If they do not all fit, the
// nodes stay as they were. It reports whether all fit then; otherwise the plan is of no use any more.
func (p *Plan) Choose() bool {
	return p.chooseAgain(p.starts) || !slices.ContainsFunc(p.starts, func(s *Start) bool { return !p.fits(s) })
}

// fits reports whether nothing is missing at the time of a start on its nodes.
func (p *Plan) fits(s *Start) bool {
	for _, d := range s.Placements {
		p.sum = p.available(d.Node.Index).at(s.At, p.sum)
		for dim, n := range d.Task.Request {
			if n > 0 && p.sum.At(dim) < 0 {
				return false
			}
		}
	}
	return true
}

// Hold visits the nodes with what has to stay free on them from now on for the starts that are not open, in the order of
// their indices: what other jobs must not take that end later than these starts. Each node comes with the first of them there.
func (p *Plan) Hold(visit func(s *Start, n *api.NodeInfo, amount api.Resource)) {
	slices.Sort(p.touched)
	p.touched = slices.Compact(p.touched)
	for _, i := range p.touched {
		if s, amount := p.held(p.available(i)); !amount.IsZero() {
			visit(s, p.Nodes[i], amount)
		}
	}
}

// available returns the availability of a node, as the node is now.
func (p *Plan) available(index int) *availability {
	c, n := &p.byNode[index], p.Nodes[index]
	c.reading = &p.Readings.byNode[index]
	if !c.holds(n, p.Now) {
		p.Readings.read(index, n, p.Now, p.Ends)
	}
	p.certain |= c.certainty
	return c
}

// shortage is what a start lacks at a time: one of these would have to be there at least.
type shortage []lack

// lack is how many more tasks like this one have to fit in a domain; nil stands for all nodes.
type lack struct {
	task   *api.TaskInfo
	count  int
	domain *Domain
}

// tryAt adds a start at a time. If those that come later do not all fit on their nodes then, it chooses their nodes again. If
// one does not fit, the plan is as before, and the shortage is returned, which is one task if it is that of another start.
func (p *Plan) tryAt(s *Start, at int64) (shortage, bool) {
	i, _ := slices.BinarySearchFunc(p.starts, at+1, func(other *Start, at int64) int { return cmp.Compare(other.At, at) })
	later := p.starts[i:]
	s.At = at
	if missing, ok := p.choose(s); !ok { // what starts take later plays no role at this time
		return missing, false
	}
	if slices.ContainsFunc(later, func(other *Start) bool { return !p.fits(other) }) && !p.chooseAgain(later) && !(inDomains{p}).chooseAround(s, later) {
		p.release(s)
		return shortage{{s.Tasks[0], 1, s.Domain}}, false
	}
	p.starts = slices.Insert(p.starts, i, s)
	return nil, true
}

// chooseAgain chooses the nodes of starts again, for the same times. It reports false if one does not fit; all have the nodes of
// before then.
func (p *Plan) chooseAgain(starts []*Start) bool {
	before := make([]Start, len(starts))
	for i, s := range starts {
		before[i] = *s
		p.release(s)
	}
	placed := 0
	for placed < len(starts) && (inDomains{p}).chooseAnywhere(starts[placed]) {
		placed++
	}
	if placed == len(starts) {
		return true
	}
	for i, s := range starts {
		if i < placed {
			p.release(s)
		}
		s.Placements, s.Domain = before[i].Placements, before[i].Domain
		p.take(s)
	}
	return false
}

// choose chooses the nodes of a start for its time. If it fails, nothing is taken.
func (p *Plan) choose(s *Start) (shortage, bool) {
	s.Placements = make([]api.Decision, 0, len(s.Tasks))
	missing, ok := inDomains{p}.chooseIn(s, s.whole(), s.Domain)
	if !ok {
		p.release(s)
	}
	return missing, ok
}

// chooseTogether chooses the nodes of tasks of a start in a domain; nil stands for all nodes. If it fails, what it has taken
// stays.
func (p *Plan) chooseTogether(s *Start, tasks []*api.TaskInfo, d *Domain) (shortage, bool) {
	for _, tasks := range bySignature(tasks) {
		fits := p.fitsAt(s, tasks, d)
		if len(fits) < len(tasks) {
			return shortage{{tasks[0], len(tasks) - len(fits), d}}, false
		}
		done := len(s.Placements)
		for i, t := range tasks {
			s.Placements = append(s.Placements, api.Decision{Kind: api.Pipeline, Task: t, Node: fits[i].node})
		}
		p.takeEach(s, s.Placements[done:])
	}
	return nil, true
}

// fitsAt returns where tasks of a start fit at its time in a domain that are of one signature, the best first, at most one for
// each task. Of equal ones, those come first of the node where the fewest fit.
func (p *Plan) fitsAt(s *Start, tasks []*api.TaskInfo, d *Domain) []fit {
	p.found.reset(len(tasks))
	for _, i := range (inDomains{p}).nodesIn(tasks[0], d) {
		if p.Nodes[i].Outlasts(tasks[0], s.At) {
			continue
		}
		most := len(tasks)
		if p.around {
			most = inDomains{p}.keptFree(p.available(i), tasks[0], s, most)
		}
		times := p.fitsSince(p.available(i), tasks[0], s.At, most)
		for _, since := range times {
			p.found.add(fit{since, len(times), p.Nodes[i]})
		}
	}
	return p.found.sorted()
}

// compareFits puts what becomes free last first.
func compareFits(a, b fit) int {
	return cmp.Or(cmp.Compare(b.since, a.since), cmp.Compare(a.total, b.total), cmp.Compare(a.node.Rank, b.node.Rank))
}

// take takes the placements of a start from the nodes.
func (p *Plan) take(s *Start) { p.takeEach(s, s.Placements) }

func (p *Plan) takeEach(s *Start, placements []api.Decision) {
	for _, d := range placements {
		c := p.available(d.Node.Index)
		if last := len(c.taken) - 1; last >= 0 && c.taken[last].start == s {
			c.taken[last].add(d.Task.Request)
			continue
		}
		p.touched = append(p.touched, d.Node.Index)
		c.taken = append(c.taken, taking{start: s, amount: d.Task.Request})
	}
}

// release returns what a start has taken.
func (p *Plan) release(s *Start) {
	for _, d := range s.Placements {
		c := &p.byNode[d.Node.Index]
		c.taken = slices.DeleteFunc(c.taken, func(t taking) bool { return t.start == s })
	}
}

// bySignature divides tasks into those of one signature.
func bySignature(tasks []*api.TaskInfo) (groups [][]*api.TaskInfo) {
	for len(tasks) > 0 {
		n := 1
		for n < len(tasks) && tasks[n].Signature == tasks[0].Signature {
			n++
		}
		groups = append(groups, tasks[:n])
		tasks = tasks[n:]
	}
	return groups
}
