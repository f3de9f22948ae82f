// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/uuid"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

// Session is one cycle over the model. Only the scheduling goroutine may use it.
type Session struct {
	// ID names the session in logs.
	ID string
	// Log carries the session's id and, while an action runs, its name.
	Log logr.Logger
	// Now is when the session was opened. It does not change within the session.
	Now time.Time

	registration
	explanations
	cluster *model.Cluster
	profile *Profile
	effects Effects

	jobs []*api.JobInfo // what Jobs returns; nil until it is called
	held []op           // placements that were committed and wait for resources
	// nominatedNodes is where tasks wait for victims.
	nominatedNodes map[*api.TaskInfo]string
	deserved       map[*api.QueueInfo]api.Resource
	counts         [api.Evict + 1]int
	wake           time.Time
	watchers       []WatchFn
}

// WatchFn observes the statements that one session commits, for audits and tests. The model contains the decisions.
type WatchFn func(ssn *Session, decisions []api.Decision)

// Open opens a session. Plugins register in the order of the configuration, then components. Then every job with tasks
// to place is validated, and the functions at Opened are called.
func (p *Profile) Open(cluster *model.Cluster, effects Effects, log logr.Logger, watchers ...WatchFn) *Session {
	p.bind(cluster)
	p.memory = p.memory.of(cluster)
	model.TimePassed(cluster)
	id := uuid.NewString()
	ssn := &Session{
		ID:           id,
		Log:          log.WithValues("session", id),
		Now:          p.clock.Now(),
		cluster:      cluster,
		profile:      p,
		explanations: explanations{memory: p.memory, number: p.memory.backlog.session + 1},
		effects:      effects,
		deserved:     map[*api.QueueInfo]api.Resource{},
		watchers:     watchers,

		nominatedNodes: map[*api.TaskInfo]string{},
	}
	p.eachPlugin(func(plugin *configured, tier int) {
		ssn.opening, ssn.tier = plugin, tier
		plugin.OnSessionOpen(ssn)
	})
	ssn.opening = nil
	logAnswers(ssn)
	ssn.memory.nodes.Open(&ssn.points)
	ssn.memory.plans.open(ssn)
	ssn.Backlog().open(ssn, p.tryAll)
	for i := range ssn.opened {
		ssn.opened[i].fn()
	}
	ssn.Backlog().begin()
	return ssn
}

// TryAll makes sessions try and explain all pending jobs, whatever the Backlog knows about refusals. Tests compare the
// results.
func (p *Profile) TryAll() { p.tryAll = true }

// eachPlugin visits the plugins tier by tier, and then the components.
func (p *Profile) eachPlugin(visit func(plugin *configured, tier int)) {
	for tier, plugins := range p.tiers {
		for i := range plugins {
			visit(&plugins[i], tier)
		}
	}
	for i := range p.components {
		visit(&p.components[i], len(p.tiers))
	}
}

// validate returns why nothing of the job may be placed, or nil.
func (ssn *Session) validate(j *api.JobInfo) *api.Verdict {
	if verdict := ssn.cluster.Admissible(j); verdict != nil {
		verdict.Plugin = api.RefusedByModel
		return verdict
	}
	for i := range ssn.jobValid {
		if verdict := ssn.jobValid[i].fn(j); verdict != nil {
			verdict.Plugin = ssn.jobValid[i].plugin
			return verdict
		}
	}
	return nil
}

// Cluster returns the model, to read. Statements change what tasks hold; Reserve, Unreserve and SetOverdue what is
// available.
func (ssn *Session) Cluster() api.ClusterView { return ssn.cluster }

// TopologyLevels returns the levels of a Topology, the widest first, or of the only one if the name is empty; or why there are
// none. Topologies are read from the first call on if no PodGroup has a constraint, so they may be missing until a later
// session.
func (ssn *Session) TopologyLevels(name string) (levels []*api.TopologyLevel, unknown string) {
	return model.TopologiesOf(ssn.cluster).Levels(name)
}

// Actions returns the actions that run in the session, in their order.
func (ssn *Session) Actions() []Action { return ssn.profile.actions }

// Jobs returns the valid jobs with tasks to place, as of when the session opened, oldest first. The first call visits all
// pending jobs; Backlog has them by job class. The caller must not change the slice.
func (ssn *Session) Jobs() []*api.JobInfo {
	if ssn.jobs == nil {
		ssn.jobs = make([]*api.JobInfo, 0, ssn.Backlog().Count())
		for _, j := range ssn.cluster.WaitingJobs() {
			if ssn.Backlog().IsOpen(j) {
				ssn.jobs = append(ssn.jobs, j)
			}
		}
	}
	return ssn.jobs
}

// WaitingTasks returns the tasks of a job that may be placed, in task order.
func (ssn *Session) WaitingTasks(j *api.JobInfo) []*api.TaskInfo {
	tasks := make([]*api.TaskInfo, 0, j.Waiting())
	for _, t := range j.Tasks {
		if t.Waiting() {
			tasks = append(tasks, t)
		}
	}
	slices.SortFunc(tasks, ssn.CompareTasks)
	return tasks
}

// SetDeserved records what a queue deserves, in parts of units (see api.Parts).
func (ssn *Session) SetDeserved(q *api.QueueInfo, parts api.Resource) { ssn.deserved[q] = parts }

// Deserved returns what a plugin has recorded, in parts of units; nil if no plugin divides the cluster between queues.
func (ssn *Session) Deserved(q *api.QueueInfo) api.Resource { return ssn.deserved[q] }

// Statement begins a new statement.
func (ssn *Session) Statement() *Statement { return &Statement{ssn: ssn} }

// Decided returns how many decisions of a kind were committed.
func (ssn *Session) Decided(kind api.DecisionKind) int { return ssn.counts[kind] }

// announceCommit reports a committed statement to those that observe it.
func (ssn *Session) announceCommit(decisions []api.Decision, held bool) {
	for _, d := range decisions {
		ssn.counts[d.Kind]++
	}
	ssn.Backlog().committed(decisions)
	logCommit(ssn, decisions, held)
	for i := range ssn.committed {
		ssn.committed[i].fn(decisions, held)
	}
	for _, watch := range ssn.watchers {
		watch(ssn, decisions)
	}
}

// WakeAt asks for a session at t at the latest, even if no event arrives before: from t on a decision may differ. The
// earliest time counts.
func (ssn *Session) WakeAt(t time.Time) {
	if ssn.wake.IsZero() || t.Before(ssn.wake) {
		ssn.wake = t
	}
}

// Wake returns when the next session must be at the latest; zero if no time was asked for.
func (ssn *Session) Wake() time.Time { return ssn.wake }

// Reserve keeps resources for a job of a queue at its placements, as far as they are free or being released. They count
// as taken until Unreserve, which must be called before the session closes.
func (ssn *Session) Reserve(q *api.QueueInfo, placements []api.Decision) *api.Reservation {
	r := ssn.cluster.Ledger().Reserve(q, placements)
	ssn.Backlog().reserves(q, r)
	return r
}

// ReserveParts keeps amounts of nodes for a job, for none of its tasks, otherwise as Reserve does.
func (ssn *Session) ReserveParts(j *api.JobInfo, parts []api.ReservedPart) *api.Reservation {
	r := ssn.cluster.Ledger().ReserveParts(j, parts)
	ssn.Backlog().reserves(j.Queue, r)
	return r
}

// Unreserve ends a reservation.
func (ssn *Session) Unreserve(r *api.Reservation) {
	ssn.cluster.Ledger().Unreserve(r)
	ssn.Backlog().reserves(r.Queue, r)
}

// SetOverdue sets whether the session counts on the end of t, which is being deleted. Before the session has closed it
// must be set back.
func (ssn *Session) SetOverdue(t *api.TaskInfo, overdue bool) {
	ssn.cluster.Ledger().SetOverdue(t, overdue)
}

// SetNominatedNode records that t waits for victims to end on a node.
func (ssn *Session) SetNominatedNode(t *api.TaskInfo, node string) { ssn.nominatedNodes[t] = node }

// NominatedNode returns the node where t waits for victims to end; empty if it does not. It is complete when the
// session has closed.
func (ssn *Session) NominatedNode(t *api.TaskInfo) string { return ssn.nominatedNodes[t] }

// Close calls the functions at Closed, undoes the placements that wait for resources, and closes the plugins.
func (ssn *Session) Close() {
	ssn.Backlog().closing(ssn)
	for i := range ssn.closed {
		ssn.closed[i].fn()
	}
	s := &Statement{ssn: ssn, ops: ssn.held}
	s.undoTo(0)
	ssn.held = nil
	ssn.profile.eachPlugin(func(plugin *configured, _ int) { plugin.OnSessionClose(ssn) })
	ssn.Backlog().close()
	ssn.memory.nodes.Close()
	ssn.memory.plans.placement = ssn.cluster.Generations().Placement
}
