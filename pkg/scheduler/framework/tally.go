package framework

import (
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// nodeVerdicts says for every node why tasks of a kind cannot go there now, if so, and counts the answers. A node
// is judged again when it was touched, so that saying no once more costs what has changed, and not the
// size of the cluster.
type nodeVerdicts struct {
	available NodeSet // nodes with room
	answers   []int16 // by node index
	refusals  []refusal
	total     int    // nodes
	position  uint64 // in the journal of touched nodes
	known     bool
	asked     bool // in this session

	nearest nearest

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
	noNode      int16 = -2
	isAvailable int16 = -1
)

// verdictKey is what makes tasks equal in why nodes refuse them, if no other pod has a say.
type verdictKey struct {
	signature *api.Signature
	priority  int32
}

// CountNodes says for every node of the cluster whether it has idle room for t, and if not why. Read only.
func (ssn *Session) CountNodes(t *api.TaskInfo) api.NodeCounts {
	if !ssn.cluster.ClassOf(t).NodeLocal() {
		var fresh nodeVerdicts
		fresh.sync(ssn, t)
		return fresh.result(ssn, t)
	}
	kind := verdictKey{t.Signature, t.Priority}
	known := ssn.memory.verdicts[kind]
	if known == nil {
		known = &nodeVerdicts{}
		ssn.memory.verdicts[kind] = known
	}
	known.sync(ssn, t)
	return known.result(ssn, t)
}

// KnownAvailable returns the nodes that have idle room for t, if that is known without looking at all of them,
// else nil. The set belongs to the memory.
func (ssn *Session) KnownAvailable(t *api.TaskInfo) *NodeSet {
	known := ssn.memory.verdicts[verdictKey{t.Signature, t.Priority}]
	if known == nil || !ssn.cluster.ClassOf(t).NodeLocal() {
		return nil
	}
	known.sync(ssn, t)
	return &known.available
}

// sync brings the answers up to date.
func (y *nodeVerdicts) sync(ssn *Session, t *api.TaskInfo) {
	y.asked = true
	journal := ssn.cluster.NodeChanges()
	if y.known && y.position == journal.Position() {
		return
	}
	nodes, passing := ssn.cluster.Nodes(), ssn.FeasibleNodes(t.Signature)
	touched, ok := journal.Since(y.position)
	if y.known && ok && len(touched) < len(nodes) {
		for _, i := range touched {
			y.visit(ssn, t, int(i), nodes[i], passing)
		}
	} else {
		y.nearest = nearest{}
		for i, n := range nodes {
			y.visit(ssn, t, i, n, passing)
		}
	}
	y.position, y.known = journal.Position(), true
}

// visit asks the node with that index, nil if there is none.
func (y *nodeVerdicts) visit(ssn *Session, t *api.TaskInfo, index int, n *api.NodeInfo, passing *NodeSet) {
	if n == nil {
		y.answer(index, noNode)
		y.nearest.gone(index)
		return
	}
	now := isAvailable
	if unfit := ssn.unfit(t, n, passing); unfit != nil {
		now = y.refusal(unfit)
	}
	y.answer(index, now)
	y.nearest.look(n, y.deficit(now, t, n))
}

// answer notes what the node with that index says.
func (y *nodeVerdicts) answer(index int, now int16) {
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
	y.available.set(index, now == isAvailable)
}

func (y *nodeVerdicts) add(answer int16, n int) {
	if answer != noNode {
		y.total += n
	}
	if answer >= 0 {
		y.refusals[answer].nodes += n
	}
}

// refusal returns the answer that stands for a refusal. There are only few different ones.
func (y *nodeVerdicts) refusal(unfit *api.Unfit) int16 {
	for i := range y.refusals {
		if known := y.refusals[i].unfit; known == unfit || *known == *unfit {
			return int16(i)
		}
	}
	y.refusals = append(y.refusals, refusal{unfit: unfit})
	return int16(len(y.refusals) - 1)
}

func (y *nodeVerdicts) result(ssn *Session, t *api.TaskInfo) api.NodeCounts {
	if y.changed {
		y.count()
	}
	y.counts.Nearest = nil
	if y.counts.Available == 0 {
		y.counts.Nearest = y.nearestNode(ssn.cluster.Nodes(), t)
	}
	return y.counts
}

func (y *nodeVerdicts) count() {
	y.counts, y.changed = api.NodeCounts{Total: y.total, Available: y.total}, false
	for _, r := range y.refusals {
		if r.nodes > 0 {
			y.counts.Unfit = append(y.counts.Unfit, api.UnfitCount{Unfit: *r.unfit, Count: r.nodes})
			y.counts.Available -= r.nodes
		}
	}
	y.counts.Sort()
}

// unfit says why an existing node cannot take t now, nil if it can.
func (ssn *Session) unfit(t *api.TaskInfo, n *api.NodeInfo, passing *NodeSet) *api.Unfit {
	if !passing.Has(n.Index) {
		unfit := ssn.Filter(t.Signature, n)
		if unfit != nil && unfit.Reason == api.NodeSelector {
			unfit = t.Signature.UnmetSelector(n.Node)
		}
		return unfit
	}
	if short := n.InsufficientDimension(t, api.Now); short >= 0 {
		if !n.Reserved.IsZero() && t.Request.Fits(n.Idle) {
			return ssn.memory.unfits.aside()
		}
		reason := api.Insufficient
		if n.FitsWithoutForeignPods(t) {
			reason = api.InsufficientWithForeignPods
		}
		return ssn.memory.unfits.of(reason, ssn.cluster.Dims, short)
	}
	return ssn.Predicate(t, n, api.Now)
}

// dirtySetReader is a set of nodes that follows the journal of touched nodes.
type dirtySetReader struct {
	set      NodeSet
	position uint64
	known    bool
}

// ReleasingNodes returns the nodes where anything is being released. The set belongs to the memory.
func (ssn *Session) ReleasingNodes() *NodeSet {
	f, journal := &ssn.memory.releasing, ssn.cluster.NodeChanges()
	nodes := ssn.cluster.Nodes()
	look := func(i int) { f.set.set(i, nodes[i] != nil && nodes[i].HasReleasing()) }
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

// unfitCache has one refusal per dimension and reason, and one for room that is set aside.
type unfitCache struct {
	room, beside []*api.Unfit // by dimension
	setAside     *api.Unfit
}

func (r *unfitCache) aside() *api.Unfit {
	if r.setAside == nil {
		r.setAside = &api.Unfit{Reason: api.Reserved}
	}
	return r.setAside
}

func (r *unfitCache) of(reason api.UnfitReason, dims *api.Dimensions, dimension int) *api.Unfit {
	known := &r.room
	if reason == api.InsufficientWithForeignPods {
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

// dropUnusedVerdicts drops what nobody asked about in a session: a kind that waits in vain is asked about in
// each.
func (m *memory) dropUnusedVerdicts() {
	for kind, y := range m.verdicts {
		if !y.asked || kind.signature.Unreferenced() {
			delete(m.verdicts, kind)
		}
		y.asked = false
	}
}
