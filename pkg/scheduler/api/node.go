package api

import (
	"cmp"
	"slices"

	v1 "k8s.io/api/core/v1"
)

// When says which room and which neighbours a question is about.
type When bool

const (
	Now    When = false // room that is free; pods that are being deleted still stand there
	Future When = true  // room once everything that is being released is gone
)

// NodeInfo is a node with its accounts. What the search for the best node reads of each comes first, so that
// it is in few cache lines.
type NodeInfo struct {
	// Index is dense over existing nodes and reused when a node goes; -1 for others.
	Index int
	// Rank orders nodes by name, as of the last Settle; 0 if it is not known yet. Many nodes of a cluster are
	// equal but for their names, which take long to compare.
	Rank int32
	// ready and softTaints are what Ready and SoftTaints say: they are asked too often to look into the
	// node object each time.
	ready, softTaints bool

	// Idle is allocatable less everything that stands on the node and has not ended. It may be
	// negative and then means no room.
	Idle        Resource
	Allocatable Resource
	// Pipelined is what tasks placed on future room will take of it.
	Pipelined Resource
	// Reserved is what a session keeps of the room for jobs that go first: gangs that have waited long, and
	// those that pods were evicted for.
	Reserved Resource
	// nominated are pods of other schedulers that wait for room here after preempting for it.
	nominated []*TaskInfo
	// ports are the tasks that take host ports; most nodes have few.
	ports []*TaskInfo

	// Releasing is what pods that are being deleted will set free; less those that are overdue.
	Releasing Resource
	// Foreign is what pods that belong to no queue hold.
	Foreign Resource
	// Members is what members of queues hold here, of which those being deleted hold nothing any more.
	Members Resource

	Name string
	// Node is nil for a node that pods name but the API server does not show.
	Node *v1.Node
	// Generation changes when anything on the node does. No value is used twice, so it also
	// tells a node from its predecessor at the same Index.
	Generation uint64
	// Tasks are all pods on the node or promised to it, by id.
	Tasks map[TaskID]*TaskInfo
}

// Exists tells whether the API server shows the node.
func (n *NodeInfo) Exists() bool { return n.Node != nil }

// Ready tells whether the kubelet reports the node as ready. A node that has no such
// condition yet counts as ready, as it does for kube-scheduler.
func (n *NodeInfo) Ready() bool { return n.ready }

func (n *NodeInfo) reportsReady() bool {
	return n.condition(v1.NodeReady) != v1.ConditionFalse && n.condition(v1.NodeReady) != v1.ConditionUnknown
}

// SoftTaints tells whether the node has a taint that only says which pods should rather stay away.
func (n *NodeInfo) SoftTaints() bool { return n.softTaints }

func (n *NodeInfo) hasSoftTaints() bool {
	return slices.ContainsFunc(n.Node.Spec.Taints, func(t v1.Taint) bool { return t.Effect == v1.TaintEffectPreferNoSchedule })
}

func (n *NodeInfo) condition(kind v1.NodeConditionType) v1.ConditionStatus {
	if n.Node == nil {
		return v1.ConditionUnknown
	}
	for i := range n.Node.Status.Conditions {
		if n.Node.Status.Conditions[i].Type == kind {
			return n.Node.Status.Conditions[i].Status
		}
	}
	return ""
}

// UnderPressure tells whether the node reports the pressure condition kind.
func (n *NodeInfo) UnderPressure(kind v1.NodeConditionType) bool {
	return n.condition(kind) == v1.ConditionTrue
}

// Fits tells whether request has room for a task of the given priority.
func (n *NodeInfo) Fits(t *TaskInfo, when When) bool { return n.InsufficientDimension(t, when) < 0 }

// InsufficientDimension returns the dimension in which t finds no room, the one a person would name first,
// or -1 if it fits.
func (n *NodeInfo) InsufficientDimension(t *TaskInfo, when When) int {
	if when == Now && n.idleIsAvailable() {
		return t.Request.InsufficientDimension(n.Idle)
	}
	return t.Request.InsufficientDimension(n.Available(t.Priority, when))
}

// Shortfall returns what is missing for t to have room now, as a new vector; nothing if it has.
func (n *NodeInfo) Shortfall(t *TaskInfo) Resource {
	return t.Request.beyond(n.Available(t.Priority, Now))
}

// Deficit says how far t is from having room now: for each dimension the part of the request that is missing, in
// thousandths, rounded up, and added up. Zero if it has room. What a node is short of beyond the whole of a
// request does not count.
func (n *NodeInfo) Deficit(t *TaskInfo) int64 {
	room := n.Idle
	if !n.idleIsAvailable() {
		room = n.Available(t.Priority, Now)
	}
	gap := int64(0)
	for i, asked := range t.Request {
		switch there := room.At(i); {
		case asked <= there || asked <= 0:
		case there <= 0: // most nodes of a full cluster: no need to divide
			gap += 1000
		default:
			gap += ((asked-there)*1000 + asked - 1) / asked
		}
	}
	return gap
}

// FitsWithoutForeignPods tells whether t would have room now if no pods but those of queues stood here. Extended resources
// come first, because they are mostly what is missing.
func (n *NodeInfo) FitsWithoutForeignPods(t *TaskInfo) bool {
	for i := len(t.Request) - 1; i >= 0; i-- {
		if asked := t.Request[i]; asked > 0 && asked > saturatingAdd(n.Idle.At(i), n.Foreign.At(i)) {
			return false
		}
	}
	return true
}

// idleIsAvailable tells whether all that is idle is there for the taking.
func (n *NodeInfo) idleIsAvailable() bool {
	return len(n.nominated) == 0 && n.Pipelined.IsZero() && n.Reserved.IsZero()
}

// Available returns what a task of the given priority could take, as a new vector: idle, less what
// pods nominated by other schedulers at or above that priority wait for; in the Future also
// what is being released. What Pipelined tasks are promised, and what is set aside, is taken from what is
// being released first and, where that does not suffice, from what is idle. Room being released on a
// node that is not Ready is not counted: nobody knows when its pods will be gone.
func (n *NodeInfo) Available(priority int32, when When) Resource {
	room := n.Idle.Clone()
	for _, t := range n.nominated {
		if t.Priority >= priority {
			room.Sub(t.Request)
		}
	}
	promised := n.Pipelined
	if !n.Reserved.IsZero() {
		promised = promised.Plus(n.Reserved)
	}
	if n.Ready() {
		if when == Future {
			room.Add(n.Releasing)
		} else {
			promised = promised.beyond(n.Releasing)
		}
	}
	room.Sub(promised)
	return room
}

// HasReleasing tells whether anything is being released here.
func (n *NodeInfo) HasReleasing() bool { return !n.Releasing.IsZero() && n.Ready() }

// PortConflict tells whether a host port that t asks for is taken.
func (n *NodeInfo) PortConflict(t *TaskInfo, when When) bool {
	if len(t.Signature.Ports) == 0 || len(n.ports) == 0 {
		return false
	}
	for _, other := range n.ports {
		if other == t || when == Future && other.Status == Releasing && !other.overdue {
			continue
		}
		for _, a := range t.Signature.Ports {
			for _, b := range other.Signature.Ports {
				if a.conflicts(b) {
					return true
				}
			}
		}
	}
	return false
}

// account adds (sign +1) or takes away (sign −1) what t means to its node.
func (n *NodeInfo) account(t *TaskInfo, sign int) {
	if t.Status.Ended() {
		return
	}
	add, sub := (*Resource).Add, (*Resource).Sub
	if sign < 0 {
		add, sub = sub, add
	}
	if sign > 0 {
		n.Tasks[t.ID] = t
	} else {
		delete(n.Tasks, t.ID)
	}
	if t.Status == Pipelined {
		add(&n.Pipelined, t.Request)
	} else {
		sub(&n.Idle, t.Request)
		switch {
		case t.Job == nil:
			add(&n.Foreign, t.Request)
		case t.Status.Holding():
			add(&n.Members, t.Request)
		}
		if t.Status == Releasing && !t.overdue {
			add(&n.Releasing, t.Request)
		}
	}
	if len(t.Signature.Ports) > 0 {
		n.ports = withOrWithout(n.ports, t, sign > 0)
	}
}

func withOrWithout(tasks []*TaskInfo, t *TaskInfo, with bool) []*TaskInfo {
	if with {
		return append(tasks, t)
	}
	for i, other := range tasks {
		if other == t {
			tasks[i] = tasks[len(tasks)-1]
			return tasks[:len(tasks)-1]
		}
	}
	return tasks
}

// rankNodes ranks nodes anew when some have come. Where some have gone the order of the others stays.
func (c *Cluster) rankNodes() {
	if !c.rankStale {
		return
	}
	c.rankStale = false
	nodes := make([]*NodeInfo, 0, len(c.byIndex))
	for _, n := range c.byIndex {
		if n != nil {
			nodes = append(nodes, n)
		}
	}
	slices.SortFunc(nodes, func(a, b *NodeInfo) int { return cmp.Compare(a.Name, b.Name) })
	for i, n := range nodes {
		n.Rank = int32(i + 1)
	}
}

// adjacentCopies returns copies that lie next to each other in memory, for vectors that are read together.
func adjacentCopies(a, b Resource) (Resource, Resource) {
	both := append(append(make(Resource, 0, len(a)+len(b)), a...), b...)
	return both[:len(a):len(a)], both[len(a):]
}
