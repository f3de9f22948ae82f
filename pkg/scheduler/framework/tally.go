package framework

import (
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// tally says for every node why tasks of a kind cannot go there now, if so, and counts the answers. A node
// is judged again when it was touched, so that saying no once more costs what has changed, and not the
// size of the cluster.
type tally struct {
	room     NodeSet // nodes with room
	answers  []int16 // by node index
	refusals []refusal
	total    int    // nodes
	position uint64 // in the journal of touched nodes
	known    bool
	asked    bool // in this session

	near nearest

	counts  api.NodeCounts // as last told
	changed bool           // since then
}

// refusal is an answer with the number of nodes that give it.
type refusal struct {
	unfit *api.Unfit
	nodes int
}

// Answers that are not refusals; the others are places in tally.refusals.
const (
	noNode  int16 = -2
	hasRoom int16 = -1
)

// tallied is what makes tasks equal in why nodes refuse them, if no other pod has a say.
type tallied struct {
	shape    *api.Shape
	priority int32
}

// CountNodes says for every node of the cluster whether it has idle room for t, and if not why. Read only.
func (ssn *Session) CountNodes(t *api.TaskInfo) api.NodeCounts {
	if !ssn.cluster.ClassOf(t).Plain() {
		var fresh tally
		fresh.sync(ssn, t)
		return fresh.tell(ssn, t)
	}
	kind := tallied{t.Shape, t.Priority}
	known := ssn.memory.tallies[kind]
	if known == nil {
		known = &tally{}
		ssn.memory.tallies[kind] = known
	}
	known.sync(ssn, t)
	return known.tell(ssn, t)
}

// KnownRoom returns the nodes that have idle room for t, if that is known without looking at all of them,
// else nil. The set belongs to the memory.
func (ssn *Session) KnownRoom(t *api.TaskInfo) *NodeSet {
	known := ssn.memory.tallies[tallied{t.Shape, t.Priority}]
	if known == nil || !ssn.cluster.ClassOf(t).Plain() {
		return nil
	}
	known.sync(ssn, t)
	return &known.room
}

// sync brings the answers up to date.
func (y *tally) sync(ssn *Session, t *api.TaskInfo) {
	y.asked = true
	journal := ssn.cluster.Touched()
	if y.known && y.position == journal.Position() {
		return
	}
	nodes, passing := ssn.cluster.Nodes(), ssn.Passing(t.Shape)
	touched, ok := journal.Since(y.position)
	if y.known && ok && len(touched) < len(nodes) {
		for _, i := range touched {
			y.visit(ssn, t, int(i), nodes[i], passing)
		}
	} else {
		y.near = nearest{}
		for i, n := range nodes {
			y.visit(ssn, t, i, n, passing)
		}
	}
	y.position, y.known = journal.Position(), true
}

// visit asks the node with that index, nil if there is none.
func (y *tally) visit(ssn *Session, t *api.TaskInfo, index int, n *api.NodeInfo, passing *NodeSet) {
	if n == nil {
		y.answer(index, noNode)
		y.near.gone(index)
		return
	}
	now := hasRoom
	if unfit := ssn.whyNot(t, n, passing); unfit != nil {
		now = y.refusal(unfit)
	}
	y.answer(index, now)
	y.near.look(n, y.gap(now, t, n))
}

// answer notes what the node with that index says.
func (y *tally) answer(index int, now int16) {
	for index >= len(y.answers) {
		y.answers = append(y.answers, noNode)
	}
	before := y.answers[index]
	if before == now {
		return
	}
	y.answers[index], y.changed = now, true
	y.add(before, -1)
	y.add(now, +1)
	y.room.set(index, now == hasRoom)
}

func (y *tally) add(answer int16, n int) {
	if answer != noNode {
		y.total += n
	}
	if answer >= 0 {
		y.refusals[answer].nodes += n
	}
}

// refusal returns the answer that stands for a refusal. There are only few different ones.
func (y *tally) refusal(unfit *api.Unfit) int16 {
	for i := range y.refusals {
		if known := y.refusals[i].unfit; known == unfit || *known == *unfit {
			return int16(i)
		}
	}
	y.refusals = append(y.refusals, refusal{unfit: unfit})
	return int16(len(y.refusals) - 1)
}

func (y *tally) tell(ssn *Session, t *api.TaskInfo) api.NodeCounts {
	if y.changed {
		y.count()
	}
	y.counts.Nearest = nil
	if y.counts.WithRoom == 0 {
		y.counts.Nearest = y.nearMiss(ssn.cluster.Nodes(), t)
	}
	return y.counts
}

func (y *tally) count() {
	y.counts, y.changed = api.NodeCounts{Total: y.total, WithRoom: y.total}, false
	for _, r := range y.refusals {
		if r.nodes > 0 {
			y.counts.Unfit = append(y.counts.Unfit, api.UnfitCount{Unfit: *r.unfit, Count: r.nodes})
			y.counts.WithRoom -= r.nodes
		}
	}
	y.counts.Sort()
}

// whyNot says why an existing node cannot take t now, nil if it can.
func (ssn *Session) whyNot(t *api.TaskInfo, n *api.NodeInfo, passing *NodeSet) *api.Unfit {
	if !passing.Has(n.Index) {
		unfit := ssn.Filter(t.Shape, n)
		if unfit != nil && unfit.Reason == api.NodeSelector {
			unfit = t.Shape.Mismatch(n.Node)
		}
		return unfit
	}
	if short := n.Short(t, api.Now); short >= 0 {
		if !n.Aside.IsZero() && t.Request.Fits(n.Idle) {
			return ssn.memory.refusals.aside()
		}
		reason := api.NoRoom
		if n.FitsBeside(t) {
			reason = api.NoRoomBeside
		}
		return ssn.memory.refusals.of(reason, ssn.cluster.Dims, short)
	}
	return ssn.Predicate(t, n, api.Now)
}

// followed is a set of nodes that follows the journal of touched nodes.
type followed struct {
	set      NodeSet
	position uint64
	known    bool
}

// FutureRoom returns the nodes where anything is being released. The set belongs to the memory.
func (ssn *Session) FutureRoom() *NodeSet {
	f, journal := &ssn.memory.future, ssn.cluster.Touched()
	nodes := ssn.cluster.Nodes()
	look := func(i int) { f.set.set(i, nodes[i] != nil && nodes[i].HasFutureRoom()) }
	if touched, ok := journal.Since(f.position); f.known && ok {
		for _, i := range touched {
			look(int(i))
		}
	} else {
		for i := range nodes {
			look(i)
		}
	}
	f.position, f.known = journal.Position(), true
	return &f.set
}

// roomRefusals has one refusal per dimension and reason, and one for room that is set aside.
type roomRefusals struct {
	room, beside []*api.Unfit // by dimension
	setAside     *api.Unfit
}

func (r *roomRefusals) aside() *api.Unfit {
	if r.setAside == nil {
		r.setAside = &api.Unfit{Reason: api.SetAside}
	}
	return r.setAside
}

func (r *roomRefusals) of(reason api.UnfitReason, dims *api.Dimensions, dimension int) *api.Unfit {
	known := &r.room
	if reason == api.NoRoomBeside {
		known = &r.beside
	}
	for dimension >= len(*known) {
		*known = append(*known, nil)
	}
	if (*known)[dimension] == nil {
		(*known)[dimension] = &api.Unfit{Reason: reason, Detail: string(dims.Name(dimension))}
	}
	return (*known)[dimension]
}

// forgetTallies drops what nobody asked about in a session: a kind that waits in vain is asked about in
// each.
func (m *memory) forgetTallies() {
	for kind, y := range m.tallies {
		if !y.asked || kind.shape.Dead() {
			delete(m.tallies, kind)
		}
		y.asked = false
	}
}
