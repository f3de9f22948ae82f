// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/nodeindex"
)

// JobClassAware is a Plugin that tells which jobs it treats differently from other jobs of their job class at the
// extension points JobReady, JobPipelined, JobValid, JobOrder, Overused and Allocatable. All other jobs of one job class
// have equal answers there, until what their queue holds or deserves changes, and none of them comes before another; a
// cap that allows a request allows all smaller ones. If a plugin that registers at one of these points is not
// JobClassAware, the scheduler tries every pending job in each session.
type JobClassAware interface {
	Plugin
	// Distinguished returns the ids of these jobs, in any order. It is called once when a session has opened.
	Distinguished() []api.JobID
}

// Backlog keeps from session to session which job classes the pending jobs have, and why gangs of a job class were
// refused, so that they are tried and explained again only if the outcome could differ.
//
// A refusal depends on the nodes that are feasible for the equivalence class of the pods, and on the queue. Between two
// trials, nodes and queues change by events, by what the session commits, and by what it reserves; a trial that is
// rolled back changes nothing. Backlog lists these changes. If a feasible node or the queue is among them when a
// refusal is needed again, Backlog compares. The refusal still holds if all of this is true:
//
//   - the queue still allows the gang
//   - none of its pods could start, and none can: no node is available, and on none of the changed nodes will one fit
//     when all is free that is being released
//
// The verdict is then the same, but for the reasons why the nodes refuse it.
//
// For example, gangs of 100 equivalence classes in 20 queues wait in a full cluster, and a pod of queue q ends on node
// n. For the 10 classes that n is feasible for, the reasons of n are compared. If a pod of 5 classes would fit there,
// the 5 classes times 20 queues are 100 job classes, and one gang of each is tried.
type Backlog struct {
	ssn     *Session // that is open
	nodes   *nodeindex.Index
	pending pendingJobs
	session uint64 // number of the last session
	enabled bool   // in that session

	used         []*JobClass // with jobs in the session
	unclassified []*api.JobInfo
	decided      []*api.JobInfo // that the session has placed tasks of; each once

	// state counts sessions, and what they commit and reserve; opened is what it was when the session had opened.
	state, opened uint64
	reserved      bool // resources have been reserved in the session
	// apart are the jobs that are unlike others of their job class: plugins distinguish them, or resources were
	// reserved for them in the session.
	apart map[*api.JobInfo]bool

	// generation changes when no refusal holds any more.
	generation uint64
	last       lastState
	changes    []int32 // nodes that have changed, by index
	classes    map[classKey]*classState
	queues     map[*api.QueueInfo]*queueState
}

// lastState is the state of the model when the last session closed.
type lastState struct {
	position uint64 // of NodeChanges
	known    bool
	model    api.Generations
}

type classKey struct {
	class    *api.EquivalenceClass
	priority int32
}

// classState follows the changes of nodes that are feasible for a class.
type classState struct {
	position  int    // in Backlog.changes
	changed   uint64 // number of changes
	releasing uint64 // of these, changes of nodes where a pod will fit when all is free that is being released
	session   uint64 // that used it last
}

// queueState is what refusals depend on of a queue.
type queueState struct {
	changed                               uint64 // number of changes
	held, releasing, capability, deserved api.Resource
	reclaimable                           bool
	stale                                 bool // changed since these were read
}

// refusal is why a job class was refused, and the state of its class and queue then.
type refusal struct {
	outcome                    *Outcome // shared by all jobs of the job class; nil if it is not known
	class                      *classState
	generation                 uint64
	changed, releasing, queued uint64
	compared                   uint64 // Backlog.state when the refusal was found to hold last
}

func newBacklog(nodes *nodeindex.Index) Backlog {
	return Backlog{nodes: nodes, queues: map[*api.QueueInfo]*queueState{}, apart: map[*api.JobInfo]bool{}}
}

// maxChanges is how many changed nodes are followed before all refusals are dropped.
const maxChanges = 1 << 12

// open is called before the functions at Opened. It validates the pending jobs: those of a job class all at once.
func (b *Backlog) open(ssn *Session, tryAll bool) {
	b.ssn = ssn
	b.session++
	b.state++
	b.opened, b.reserved = b.state, false
	b.used, b.unclassified, b.decided = b.used[:0], b.unclassified[:0], b.decided[:0]
	clear(b.apart)
	if ssn.cluster.JobTable().CountWaiting() == 0 { // the rest would cost more than the session
		b.enabled, b.pending = false, b.pending.none()
		return
	}
	aware, ok := jobClassAware(ssn)
	b.enabled = ok && !ssn.Log.V(4).Enabled() // these logs have each attempt
	b.pending.update(ssn.cluster, b.enabled, tryAll)
	for _, jc := range b.pending.list {
		jc.job, jc.jobs, jc.shown = nil, len(jc.members.list), nil
		if jc.jobs > 0 && ssn.validate(jc.members.list[0]) == nil {
			jc.session, jc.job = b.session, jc.members.list[0]
			b.used = append(b.used, jc)
		} else {
			b.validate(jc.members.list)
		}
	}
	b.pending.dropUnused(len(b.used))
	b.validate(b.pending.others.list)
	for _, p := range aware {
		for _, id := range p.Distinguished() {
			b.setApart(ssn.cluster.Jobs()[id])
		}
	}
}

// validate validates jobs one by one.
func (b *Backlog) validate(jobs []*api.JobInfo) {
	for _, j := range jobs {
		if verdict := b.ssn.validate(j); verdict != nil {
			b.ssn.Explain(j, verdict)
		} else if j.Waiting() > 0 {
			b.pending.record(j).opened = b.session
			b.unclassified = append(b.unclassified, j)
		}
	}
}

// setApart makes a job unclassified; nil is ignored.
func (b *Backlog) setApart(j *api.JobInfo) {
	if j == nil {
		return
	}
	jc := b.JobClass(j)
	if jc == nil {
		return
	}
	b.apart[j] = true
	b.pending.record(j).opened = b.session
	b.unclassified = append(b.unclassified, j)
	if jc.jobs--; jc.jobs == 0 {
		jc.session = 0
		b.used = slices.DeleteFunc(b.used, func(other *JobClass) bool { return other == jc })
	} else if j == jc.job {
		jc.job = jc.members.list[slices.IndexFunc(jc.members.list, func(other *api.JobInfo) bool { return !b.apart[other] })]
	}
}

// Waiting returns one of the jobs that have the job class still; nil if there is none.
func (b *Backlog) Waiting(jc *JobClass) *api.JobInfo {
	for _, j := range jc.members.list {
		if b.JobClass(j) == jc {
			return j
		}
	}
	return nil
}

// IsOpen reports whether the job was valid when the session opened.
func (b *Backlog) IsOpen(j *api.JobInfo) bool {
	r := b.pending.record(j)
	return r != nil && (r.opened == b.session || r.class != nil && r.class.session == b.session)
}

// Count returns the number of jobs that Session.Jobs returns.
func (b *Backlog) Count() int {
	n := len(b.unclassified)
	for _, jc := range b.used {
		n += jc.jobs
	}
	return n
}

// jobClassAware returns the plugins that are, and whether all those are that answer about jobs.
func jobClassAware(ssn *Session) (aware []JobClassAware, all bool) {
	names := map[string]bool{}
	ssn.profile.eachPlugin(func(plugin *configured, _ int) {
		if p, ok := plugin.Plugin.(JobClassAware); ok {
			aware, names[p.Name()] = append(aware, p), true
		}
	})
	return aware, len(ssn.jobPipelined) > 0 && // else there are no gangs
		onlyOf(ssn.jobPipelined, names) && onlyOf(ssn.jobReady, names) && onlyOf(ssn.jobValid, names) && onlyOf(ssn.jobOrder, names) &&
		onlyOf(ssn.overused, names) && onlyOf(ssn.allocatable, names)
}

func onlyOf[F any](c chain[F], names map[string]bool) bool {
	return !slices.ContainsFunc(c, func(l link[F]) bool { return !names[l.plugin] })
}

// begin is called after the functions at Opened: it finds what has changed since the last session.
func (b *Backlog) begin() {
	if !b.enabled {
		b.last.known = false
		return
	}
	now := b.ssn.cluster.Generations()
	changed, known := b.ssn.cluster.NodeChanges().Since(b.last.position)
	before := b.last.model
	if len(b.changes) > maxChanges/2 {
		b.compact()
	}
	if !b.last.known || !known || len(b.changes)+len(changed) > maxChanges || now.NodeSpecs != before.NodeSpecs ||
		now.Foreign != before.Foreign || now.Namespaces != before.Namespaces || now.Terms != before.Terms {
		b.generation++
		b.changes, b.classes = b.changes[:0], map[classKey]*classState{}
	} else {
		b.changes = append(b.changes, changed...)
	}
	for q := range b.queues {
		if b.ssn.cluster.Queues()[q.ID] != q {
			delete(b.queues, q)
		}
	}
	for _, q := range b.ssn.cluster.Queues() {
		b.observeQueue(q)
	}
}

// compact lets all classes follow the changes so far, and forgets these.
func (b *Backlog) compact() {
	for key, c := range b.classes {
		if key.class.Signature.Unreferenced() {
			delete(b.classes, key)
			continue
		}
		b.followClass(c, key)
		c.position = 0
	}
	b.changes = b.changes[:0]
}

// observeQueue notes a change of a queue between sessions.
func (b *Backlog) observeQueue(q *api.QueueInfo) {
	known, deserved := b.queues[q], b.ssn.Deserved(q)
	if known == nil {
		known = &queueState{}
		b.queues[q] = known
	} else if !known.stale && known.held.Equal(q.Allocated) && known.releasing.Equal(q.Releasing) && slices.Equal(known.capability, q.Capability) &&
		known.deserved.Equal(deserved) && known.reclaimable == q.Reclaimable {
		return
	}
	known.changed++
	known.stale = false
	known.held, known.releasing, known.capability = q.Allocated.Clone(), q.Releasing.Clone(), q.Capability.Clone()
	known.deserved, known.reclaimable = deserved.Clone(), q.Reclaimable
}

// closing is called before a session undoes what it holds: the next session finds what has changed since.
func (b *Backlog) closing(ssn *Session) {
	b.last = lastState{ssn.cluster.NodeChanges().Position(), b.enabled && b.ssn == ssn, ssn.cluster.Generations()}
}

// close drops the session. What it has found out about jobs stays until the next one opens.
func (b *Backlog) close() { b.ssn = nil }

// committed notes what a statement has changed.
func (b *Backlog) committed(decisions []api.Decision) {
	b.state++
	for _, d := range decisions {
		b.touch(d.Node)
		if j := d.Task.Job; j != nil {
			b.touchQueue(j.Queue)
			if r := b.pending.record(j); r != nil && r.decided != b.session {
				r.decided = b.session
				b.decided = append(b.decided, j)
			}
		}
	}
}

// reserves notes that resources are reserved for a job, or not any more.
func (b *Backlog) reserves(q *api.QueueInfo, r *api.Reservation) {
	b.state++
	b.reserved = true
	b.touchQueue(q)
	for _, part := range r.Parts {
		b.touch(part.Node)
	}
	b.setApart(r.Job)
}

func (b *Backlog) touch(n *api.NodeInfo) {
	if b.enabled && n != nil && n.Exists() {
		b.changes = append(b.changes, int32(n.Index))
	}
}

func (b *Backlog) touchQueue(q *api.QueueInfo) {
	if known := b.queues[q]; known != nil {
		known.changed++
		known.stale = true
	}
}

// Unclassified returns the valid jobs of the session that have no job class, or are unlike others of it.
func (b *Backlog) Unclassified() []*api.JobInfo { return b.unclassified }

// Others returns all waiting jobs that have no job class, also those that are not valid, oldest first.
func (b *Backlog) Others() []*api.JobInfo { return b.pending.others.list }

// Decided returns the jobs that the session has placed tasks of, each once.
func (b *Backlog) Decided() []*api.JobInfo { return b.decided }

// HadJobClass reports whether the job was one of the jobs that JobClasses counts.
func (b *Backlog) HadJobClass(j *api.JobInfo) bool {
	r := b.pending.record(j)
	return r != nil && r.class != nil && r.class.session == b.session && !b.apart[j]
}

// Apart reports whether a job is unlike the others of its job class in this session.
func (b *Backlog) Apart(j *api.JobInfo) bool { return b.apart[j] }

// Reserved reports whether the session has reserved resources for jobs.
func (b *Backlog) Reserved() bool { return b.reserved }

// Declassified returns the jobs that had a job class when the session opened and have none any more, because the session
// has placed tasks of them.
func (b *Backlog) Declassified() []*api.JobInfo {
	var jobs []*api.JobInfo
	for _, j := range b.decided {
		if b.HadJobClass(j) && b.JobClass(j) == nil {
			jobs = append(jobs, j)
		}
	}
	return jobs
}

// EachWaiting visits the job classes that jobs still have, with their number.
func (b *Backlog) EachWaiting(visit func(jc *JobClass, jobs int)) {
	gone := map[*JobClass]int{}
	for _, j := range b.Declassified() {
		gone[b.pending.record(j).class]++
	}
	for _, jc := range b.used {
		if n := jc.jobs - gone[jc]; n > 0 {
			visit(jc, n)
		}
	}
}

// EachRun visits the jobs that still have a job class, those of one job class oldest first, which is their job order: all at
// once, or in several runs if others of it are unlike them. The caller must not change the slices.
func (b *Backlog) EachRun(visit func(jobs []*api.JobInfo)) {
	unlike := map[*JobClass][]*api.JobInfo{}
	for j := range b.apart {
		jc := b.pending.record(j).class
		unlike[jc] = append(unlike[jc], j)
	}
	for _, j := range b.Declassified() {
		jc := b.pending.record(j).class
		unlike[jc] = append(unlike[jc], j)
	}
	for _, jc := range b.used {
		list, others := jc.members.list, unlike[jc]
		slices.SortFunc(others, api.CompareJobAge)
		for _, j := range others {
			i, _ := slices.BinarySearchFunc(list, j, api.CompareJobAge)
			if i > 0 {
				visit(list[:i])
			}
			list = list[i+1:]
		}
		if len(list) > 0 {
			visit(list)
		}
	}
}

// JobClasses returns the job classes of the other jobs, in the order in which they came up.
func (b *Backlog) JobClasses() []*JobClass { return b.used }
