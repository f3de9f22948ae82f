package framework

import (
	"math/bits"
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// memory is what sessions of one profile remember of the model: which nodes pass the filters
// for a shape, and sums over nodes. All of it is derived and kept valid by the model's journals
// and generations: dropping it costs time, never correctness.
type memory struct {
	cluster  *api.Cluster // what is remembered is about this model alone
	feasible map[*api.Signature]*NodeSet

	verdicts map[verdictKey]*nodeVerdicts
	unfits   unfitCache

	releasing        dirtySetReader
	clusterAvailable clusterAvailable
	total            totals
	available        availableCache

	plans planCache
}

// planCache are kinds of claims that found no plan. Whatever is decided, or happens to what stands
// on nodes, or to what queues deserve, may give them a new chance: then all are forgotten.
type planCache struct {
	infeasible map[string]int // with how many pods disruption budgets protect
	standing   uint64         // the model's StandingGeneration when the last session was closed
	total      api.Resource   // in the last session
}

// KnownInfeasible tells whether claims of that kind have found no plan since anything changed that they
// could hope for, and how many pods stay for the sake of disruption budgets.
func (ssn *Session) KnownInfeasible(kind string) (protected int, hopeless bool) {
	protected, hopeless = ssn.memory.plans.infeasible[kind]
	return protected, hopeless
}

// SetInfeasible remembers that a claim of that kind has found no plan.
func (ssn *Session) SetInfeasible(kind string, protected int) {
	ssn.memory.plans.infeasible[kind] = protected
}

// InvalidatePlans forgets what is hopeless. Plugins call it when something changes that decides over victims
// and is not in the model.
func (ssn *Session) InvalidatePlans() { clear(ssn.memory.plans.infeasible) }

// compare is called when a session has opened.
func (h *planCache) compare(ssn *Session) {
	if h.standing != ssn.cluster.PlacementGeneration() || !h.total.Equal(ssn.total) {
		clear(h.infeasible)
	}
	h.total = ssn.total
}

// memoryOf returns what is remembered of the model: nothing of one that was rebuilt.
func (p *Profile) memoryOf(cluster *api.Cluster) *memory {
	if p.memory == nil || p.memory.cluster != cluster {
		p.memory = &memory{
			cluster: cluster, feasible: map[*api.Signature]*NodeSet{}, verdicts: map[verdictKey]*nodeVerdicts{},
			plans: planCache{infeasible: map[string]int{}},
		}
	}
	return p.memory
}

// NodeSet is a set of nodes, by index.
type NodeSet struct {
	bits     []uint64
	position uint64 // in the journal of node objects
	known    bool

	// slots is how many tasks of the shape fit the nodes if no member of a queue stood there.
	slots        int64
	slotsOutside uint64
	slotsKnown   bool
}

// Has tells whether the node with that index is in the set.
func (s *NodeSet) Has(index int) bool {
	return index/64 < len(s.bits) && s.bits[index/64]&(1<<(index%64)) != 0
}

func (s *NodeSet) set(index int, in bool) {
	for index/64 >= len(s.bits) {
		s.bits = append(s.bits, 0)
	}
	if in {
		s.bits[index/64] |= 1 << (index % 64)
	} else {
		s.bits[index/64] &^= 1 << (index % 64)
	}
}

// Each calls visit for every index in the set, in ascending order.
func (s *NodeSet) Each(visit func(index int)) {
	for w, word := range s.bits {
		for ; word != 0; word &= word - 1 {
			visit(w*64 + bits.TrailingZeros64(word))
		}
	}
}

// Until calls visit for every index in the set, in ascending order, until it returns true.
func (s *NodeSet) Until(visit func(index int) bool) {
	for w, word := range s.bits {
		for ; word != 0; word &= word - 1 {
			if visit(w*64 + bits.TrailingZeros64(word)) {
				return
			}
		}
	}
}

func (s *NodeSet) union(o *NodeSet) {
	for len(s.bits) < len(o.bits) {
		s.bits = append(s.bits, 0)
	}
	for w, word := range o.bits {
		s.bits[w] |= word
	}
}

// FeasibleNodes returns the nodes that pass the filters for a shape. The set belongs to the memory
// and is valid until node objects change.
func (ssn *Session) FeasibleNodes(signature *api.Signature) *NodeSet {
	set := ssn.memory.feasible[signature]
	if set == nil {
		set = &NodeSet{}
		ssn.memory.feasible[signature] = set
	}
	journal := ssn.cluster.NodeSpecChanges()
	if set.known && set.position == journal.Position() {
		return set
	}
	changed, ok := journal.Since(set.position)
	nodes := ssn.cluster.Nodes()
	examine := func(i int) {
		n := nodes[i]
		set.set(i, n != nil && ssn.Filter(signature, n) == nil)
	}
	if set.known && ok {
		for _, i := range changed {
			examine(int(i))
		}
	} else {
		for i := range nodes {
			examine(i)
		}
	}
	set.position, set.known, set.slotsKnown = journal.Position(), true, false
	return set
}

// CapacityCount returns how many tasks of a shape would fit the nodes that pass its filters if no
// member of a queue stood on them.
func (ssn *Session) CapacityCount(signature *api.Signature) int64 {
	set := ssn.FeasibleNodes(signature)
	outside := ssn.cluster.ForeignGeneration()
	if set.slotsKnown && set.slotsOutside == outside {
		return set.slots
	}
	set.slots, set.slotsKnown, set.slotsOutside = 0, true, outside
	nodes := ssn.cluster.Nodes()
	set.Each(func(i int) {
		n := nodes[i]
		if takesPods(n) {
			set.slots += signature.Request.TimesInRest(n.Allocatable, n.Foreign)
		}
	})
	return set.slots
}

// CouldFit returns how many waiting tasks of a job, by shape, would fit nodes that are empty of members
// of queues, and whether they are enough for the job to start. That is a necessary condition: slots
// are counted shape by shape, nothing is packed. Members that stand in slots take them; those that are
// being deleted are counted on, since they may come back.
func (ssn *Session) CouldFit(j *api.JobInfo) (tasks map[*api.Signature]int64, enough bool) {
	tasks, standing := map[*api.Signature]int64{}, map[*api.Signature]int64{}
	for _, t := range j.Tasks {
		switch {
		case t.Waiting():
			tasks[t.Signature]++
		case ssn.countsInCapacity(t):
			standing[t.Signature]++
		}
	}
	members := int64(j.ReadyCount() + j.Count(api.Releasing))
	for signature, waiting := range tasks {
		n := min(waiting, max(ssn.CapacityCount(signature)-standing[signature], 0))
		tasks[signature] = n
		members += n
	}
	return tasks, members >= int64(j.MinMember)
}

// countsInCapacity tells whether t stands where Slots counts room for tasks like it.
func (ssn *Session) countsInCapacity(t *api.TaskInfo) bool {
	return !t.Status.Ended() && t.Node != nil && t.Node.Exists() && takesPods(t.Node) && ssn.FeasibleNodes(t.Signature).Has(t.Node.Index)
}

// takesPods tells whether new pods may go to the node at all.
func takesPods(n *api.NodeInfo) bool { return n.Ready() && !n.Node.Spec.Unschedulable }

// Available returns what is idle or being released on the nodes that pass the filters for some task
// of the claim, in the dimensions that the claim asks for. Read only.
func (ssn *Session) Available(claim *api.Claim) api.Resource {
	key, position := claim.Tasks[0].Signature, ssn.cluster.NodeChanges().Position()
	single := ofOneShape(claim)
	if last := &ssn.memory.available; single && last.shape == key && last.position == position {
		return last.room
	}
	room := ssn.sumAvailable(claim)
	if single {
		ssn.memory.available = availableCache{key, position, room}
	}
	return room
}

// availableOn is what is idle or being released on a node, in one dimension.
func availableOn(n *api.NodeInfo, d int) int64 {
	free := n.Idle.At(d)
	if n.Ready() {
		free += n.Releasing.At(d)
	}
	return max(free-n.Pipelined.At(d)-n.Reserved.At(d), 0)
}

func ofOneShape(claim *api.Claim) bool {
	return !slices.ContainsFunc(claim.Tasks, func(t *api.TaskInfo) bool { return t.Signature != claim.Tasks[0].Signature })
}

// availableCache is what Room has last returned for claims of one shape, and at which position of the
// journal of touched nodes.
type availableCache struct {
	shape    *api.Signature
	position uint64
	room     api.Resource
}

func (ssn *Session) sumAvailable(claim *api.Claim) api.Resource {
	var suitable NodeSet
	var last *api.Signature
	for _, t := range claim.Tasks {
		if t.Signature != last {
			last = t.Signature
			suitable.union(ssn.FeasibleNodes(t.Signature))
		}
	}
	room := make(api.Resource, ssn.cluster.Dims.Len())
	nodes := ssn.cluster.Nodes()
	suitable.Each(func(i int) {
		for d := range room {
			if claim.Request.At(d) != 0 {
				room[d] += availableOn(nodes[i], d)
			}
		}
	})
	return room
}

// forget drops what is remembered for shapes that no task has any more.
func (m *memory) forget() {
	for signature := range m.feasible {
		if signature.Unreferenced() {
			delete(m.feasible, signature)
		}
	}
}

// totals sums what members of queues could hold, node by node.
type totals struct {
	sum            api.Resource
	parts          []api.Resource // by node index
	usable         NodeSet        // nodes where some member's shape passes
	specs, members uint64
	position       uint64 // in the journal of touched nodes
	known          bool
}

// updateTotal brings the usable total up to date; see Total.
func (ssn *Session) updateTotal() api.Resource {
	t, c := &ssn.memory.total, ssn.cluster
	whole := !t.known || t.specs != c.NodeSpecGeneration() || t.members != c.MemberGeneration()
	touched, ok := c.NodeChanges().Since(t.position)
	if whole || !ok {
		ssn.memory.forget()
		ssn.recountTotal()
	} else {
		for _, i := range touched {
			t.update(int(i), c.Nodes()[i])
		}
	}
	t.position, t.specs, t.members, t.known = c.NodeChanges().Position(), c.NodeSpecGeneration(), c.MemberGeneration(), true
	return t.sum.Clone()
}

func (ssn *Session) recountTotal() {
	t := &ssn.memory.total
	t.usable = NodeSet{}
	for _, signature := range ssn.cluster.MemberSignatures() {
		t.usable.union(ssn.FeasibleNodes(signature))
	}
	for i, n := range ssn.cluster.Nodes() {
		t.update(i, n)
	}
}

func (t *totals) update(index int, n *api.NodeInfo) {
	for index >= len(t.parts) {
		t.parts = append(t.parts, nil)
	}
	t.sum.Sub(t.parts[index])
	t.parts[index] = nil
	if n == nil {
		return
	}
	if t.usable.Has(index) && takesPods(n) {
		t.parts[index] = n.Allocatable.Minus(n.Foreign).NotNegative()
	} else {
		t.parts[index] = n.Members.Clone()
	}
	t.sum.Add(t.parts[index])
}
