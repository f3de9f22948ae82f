// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"cmp"
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/nodeindex"
)

// Reserver finds placements for gangs on nodes where they fit if no member of a queue runs
// there, and prefers the nodes that will have enough free resources first.
//
// The same gangs wait from session to session while few nodes change, so it keeps how long it takes on each node.
type Reserver struct {
	ssn    *framework.Session
	kinds  map[reservedKind]*reservedCandidates
	specs  uint64 // generation of the node objects that kinds are of
	round  uint64 // counts sessions
	seen   seen
	domain *Domain
	// previous returns what was reserved for a job in the last session.
	previous func(*api.JobInfo) Placements
}

// entriesPerNode is how many entries of the journal of node changes cost less to read than one node costs to measure: each
// reservation that is made and released again adds some.
const entriesPerNode = 8

// reservedCandidates are the nodes for one task of a job after the other.
type reservedCandidates struct {
	*candidates[wait]
	previous Placements // that they were measured with
	round    uint64     // of the last session that used them
}

// Placement is a task of a signature on a node.
type Placement struct {
	Node      string
	Signature *api.Signature
}

// Placements count placements.
type Placements map[Placement]int

// PlacementOf returns the placement of a decision.
func PlacementOf(d api.Decision) Placement {
	return Placement{Node: d.Node.Name, Signature: d.Task.Signature}
}

// reservedKind is what makes tasks equal for a Reserver. Unlike for a Placer, the job is
// part of it, because a job keeps the nodes that it has chosen.
type reservedKind struct {
	kind
	job *api.JobInfo
}

// NewReserver returns a reserver. Jobs keep to the nodes that were reserved for them in the last session: previous
// returns those, nil if there are none.
func NewReserver(previous func(*api.JobInfo) Placements) *Reserver {
	return &Reserver{kinds: map[reservedKind]*reservedCandidates{}, previous: previous}
}

// Open makes it find placements in a session.
func (r *Reserver) Open(ssn *framework.Session) {
	r.ssn = ssn
	r.round++
	if specs := ssn.Cluster().Generations().NodeSpecs; specs != r.specs {
		r.specs = specs
		clear(r.kinds)
	}
}

// Close drops what the session has not needed, and the session: that may be large, and the next one may not open for long.
func (r *Reserver) Close() {
	for k, c := range r.kinds {
		if c.ssn = nil; c.round != r.round {
			delete(r.kinds, k)
		}
	}
	r.ssn = nil
}

// wait measures how far a node is from fitting one more task.
type wait struct {
	// other is set for nodes that the job did not choose in the last session, unless the task fits there. They come
	// last: a job that changes to a node with a little more free resources loses what has been reserved for it.
	other   bool
	missing api.Share // of the request, in the dimension in which most is missing
	members int       // members of queues
}

// anywhere does not narrow the nodes down: a node can be reserved whatever runs there.
func anywhere(*api.TaskInfo) *nodeindex.NodeSet { return nil }

func soonest(a, b wait) int {
	if a.other != b.other {
		if b.other {
			return -1
		}
		return +1
	}
	return cmp.Or(a.missing.Compare(b.missing), cmp.Compare(a.members, b.members))
}

// Gang pipelines tasks of the claim's gang to the nodes that fit soonest, the largest task
// first and all in one domain if the gang requires it, until the gang is complete. If it fails, the
// statement is unchanged.
func (r *Reserver) Gang(stmt *framework.Statement, claim *api.Claim, tasks []*api.TaskInfo) bool {
	tasks = largestFirst(r.ssn, claim, tasks)
	level := RequiredLevel(r.ssn, claim)
	if level == nil {
		return try(r.ssn, stmt, claim.Job, tasks, r.search(claim, nil)) == nil
	}
	for _, d := range r.domains(claim, level) {
		if try(r.ssn, stmt, claim.Job, tasks, r.search(claim, d)) == nil {
			return true
		}
	}
	return false
}

// domains returns the domain that the job chose in the last session first, then those with the most available resources.
func (r *Reserver) domains(claim *api.Claim, level *api.TopologyLevel) []*Domain {
	list := slices.DeleteFunc(Domains(r.ssn, claim, level), func(d *Domain) bool { return !d.MayHoldAll })
	before := r.chosenBefore(claim.Job, r.ssn.Nodes().Domains(level))
	slices.SortStableFunc(list, func(a, b *Domain) int { return trueFirst(before[a.Domain], before[b.Domain]) })
	return list
}

// chosenBefore returns the domains of a level that were reserved for a job in the last session.
func (r *Reserver) chosenBefore(j *api.JobInfo, of *nodeindex.Domains) map[*nodeindex.Domain]bool {
	before := map[*nodeindex.Domain]bool{}
	for placement := range r.previous(j) {
		if n := r.ssn.Cluster().Node(placement.Node); n != nil {
			before[of.Of(n)] = true
		}
	}
	return before
}

// search returns the search for nodes in a domain; nil stands for all nodes.
func (r *Reserver) search(claim *api.Claim, d *Domain) search {
	return search{
		domain: d,
		place:  r.place,
		fit:    capacityFor,
		before: func(of *nodeindex.Domains) map[*nodeindex.Domain]bool { return r.chosenBefore(claim.Job, of) },
	}
}

func (r *Reserver) place(stmt *framework.Statement, t *api.TaskInfo, in *Domain) bool {
	if !reservable(r.ssn.Cluster().ClassOf(t)) {
		return false
	}
	r.domain = in
	n := r.best(t)
	r.domain = nil
	if n != nil {
		stmt.Pipeline(t, n)
	}
	return n != nil
}

// reservable reports whether placements can be found for tasks of the class. For classes that depend on other pods or
// on volumes the search takes long and may find nothing. Gangs that must be in one domain are an exception, because all
// nodes of a domain can be evaluated.
func reservable(class *api.EquivalenceClass) bool {
	inDomain := class.RequiredLevel() != nil || class.SubGroup != nil
	return class.NodeLocal() || inDomain && !class.Signature.HasExternalResources()
}

func (r *Reserver) best(t *api.TaskInfo) *api.NodeInfo {
	class := r.ssn.Cluster().ClassOf(t)
	k := reservedKind{kind{class, t.Priority, api.Future}, t.Job}
	c := r.kinds[k]
	switch {
	case c == nil || r.domain != nil || !class.NodeLocal():
		c = r.newCandidates(t)
		r.kinds[k] = c
	case c.round != r.round:
		r.continueWith(c, t)
	}
	return c.best(t)
}

func (r *Reserver) newCandidates(t *api.TaskInfo) *reservedCandidates {
	c := &reservedCandidates{round: r.round, previous: r.previous(t.Job)}
	measure := func(t *api.TaskInfo, n *api.NodeInfo) (wait, bool) { return r.wait(t, n, c.previous) }
	among := anywhere
	if domain := r.domain; domain != nil {
		among = func(*api.TaskInfo) *nodeindex.NodeSet { return domain.Nodes() }
	}
	c.candidates = newCandidates(r.ssn, &r.seen, t, measure, soonest, among)
	c.most = entriesPerNode * len(r.ssn.Cluster().Nodes())
	c.nodes.Grow(r.ssn.Nodes().Feasible(t.Signature).Len()) // nearly all are possible
	return c
}

// continueWith brings candidates of the last session up to this one. Nodes that have changed are measured by best.
func (r *Reserver) continueWith(c *reservedCandidates, t *api.TaskInfo) {
	before, now := c.previous, r.previous(t.Job)
	c.round, c.ssn, c.previous = r.round, r.ssn, now
	for _, placements := range []Placements{before, now} {
		for p := range placements {
			if n := r.ssn.Cluster().Node(p.Node); n != nil && n.Exists() && before[p] != now[p] {
				c.update(t, r.ssn.Cluster().Nodes(), n.Index)
			}
		}
	}
}

// wait is the measure of nodes that could ever hold one more task. All nodes are measured in each session with a gang that has
// waited for long, so it makes no vectors.
func (r *Reserver) wait(t *api.TaskInfo, n *api.NodeInfo, previous Placements) (w wait, ok bool) {
	if !n.Ready() || n.Node.Spec.Unschedulable || !r.domain.Contains(n) {
		return w, false
	}
	own := ownOn(n, t)
	for d, asked := range t.Request {
		if asked > 0 && asked > n.Allocatable.At(d)-n.Foreign.At(d)-n.Pipelined.At(d)-own.held.At(d) {
			return w, false // not even if all other members were gone
		}
	}
	if r.ssn.Predicate(t, n, api.Future) != nil {
		return w, false
	}
	w.members = int(n.Members.At(api.Pods)) - own.holding
	for d, asked := range t.Request {
		if asked <= 0 {
			continue
		}
		if share := (api.Share{Part: asked - n.AvailableIn(d, t.Priority, api.Future), Whole: asked}); share.Compare(w.missing) > 0 {
			w.missing = share
		}
	}
	w.other = w.missing.Part > 0 && own.chosen >= previous[Placement{Node: n.Name, Signature: t.Signature}]
	return w, true
}

// ownTasks are those of the same job on a node.
type ownTasks struct {
	held            api.Resource
	holding, chosen int // chosen are pipelined, and of the same signature
}

// ownOn returns the tasks of the job of t on a node.
func ownOn(n *api.NodeInfo, t *api.TaskInfo) (own ownTasks) {
	if t.Job.Holding() == 0 && t.Job.Count(api.Pipelined) == 0 { // most gangs that wait
		return own
	}
	for _, other := range n.Tasks {
		switch {
		case other.Job != t.Job:
		case other.Status.Holding():
			own.held.Add(other.Request)
			own.holding++
		case other.Status == api.Pipelined && other.Signature == t.Signature:
			own.chosen++
		}
	}
	return own
}
