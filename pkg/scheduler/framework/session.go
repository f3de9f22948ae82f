package framework

import (
	"fmt"
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
	// Log carries the session's id.
	Log logr.Logger
	// Now is when the session was opened; time stands still in it.
	Now time.Time

	points
	cluster *model.Cluster
	profile *Profile
	memory  *memory
	effects Effects

	// opening is the plugin whose OnSessionOpen runs; nil otherwise.
	opening     *configured
	openingTier int

	// jobs are those with tasks to place, valid ones only, oldest first.
	jobs         []*api.JobInfo
	verdicts     map[*api.JobInfo]*Outcome
	held         []op
	reservations []*reservation
	overdue      []*api.TaskInfo // see giveUpOverdue
	// outstanding are victims of promises that have ended in this session.
	outstanding map[api.JobID][]api.TaskID
	// nominatedNodes is filled when the session closes.
	nominatedNodes map[*api.TaskInfo]string
	deserved       map[*api.QueueInfo]api.Resource
	counts         [api.Evict + 1]int
	wake           time.Time
	repeats        bool
	watch          func([]api.Decision) // hears of commits, nil if nobody listens
}

// Outcome is what a session found out about a job that still waits.
type Outcome struct {
	// Job is why the gang has not started; nil when it has.
	Job *api.Verdict
	// Tasks is why members of a shape wait; members without entry share Job.
	Tasks map[*api.Signature]*api.Verdict
	// BlockedByBudgets is how many pods disruption budgets keep from being evicted for the job.
	BlockedByBudgets int
	// Degraded is set of gangs that have run for long without all that they need.
	Degraded bool
}

// Message words one of the verdicts.
func (o *Outcome) Message(v *api.Verdict, dims *api.Dimensions) string {
	text := v.Message(dims)
	if o.BlockedByBudgets > 0 && v.Nodes.Total > 0 {
		text += fmt.Sprintf("; %d pods that could make room are protected by disruption budgets", o.BlockedByBudgets)
	}
	return text
}

// Open opens a session: plugins register in the order of the configuration, then every job
// with tasks to place is asked whether it is valid.
func (p *Profile) Open(cluster *model.Cluster, effects Effects, log logr.Logger) *Session {
	id := uuid.NewString()
	ssn := &Session{
		ID:       id,
		Log:      log.WithValues("session", id),
		Now:      p.clock.Now(),
		cluster:  cluster,
		profile:  p,
		memory:   p.memoryOf(cluster),
		effects:  effects,
		verdicts: map[*api.JobInfo]*Outcome{},
		deserved: map[*api.QueueInfo]api.Resource{},

		nominatedNodes: map[*api.TaskInfo]string{},
		outstanding:    map[api.JobID][]api.TaskID{},
	}
	for tier, plugins := range p.tiers {
		for i := range plugins {
			ssn.opening, ssn.openingTier = &plugins[i], tier
			plugins[i].OnSessionOpen(ssn)
		}
	}
	ssn.opening = nil
	ssn.excludeOverdue()
	ssn.memory.nodes.Open(ssn)
	ssn.memory.plans.open(ssn)
	if !ssn.takeUp(&ssn.memory.repeat) {
		waiting := cluster.WaitingJobs()
		ssn.trackDegraded(waiting)
		ssn.validateAll(waiting)
	}
	for i := range ssn.opened {
		ssn.opened[i].fn()
	}
	return ssn
}

func (ssn *Session) validateAll(waiting []*api.JobInfo) {
	for _, j := range waiting {
		if verdict := ssn.validate(j); verdict != nil {
			ssn.Explain(j, verdict)
		} else if j.Waiting() > 0 {
			ssn.jobs = append(ssn.jobs, j)
		}
	}
}

// validate returns why nothing of the job may be placed, or nil.
func (ssn *Session) validate(j *api.JobInfo) *api.Verdict {
	if verdict := ssn.cluster.Admissible(j); verdict != nil {
		return verdict
	}
	for i := range ssn.jobValid {
		if verdict := ssn.jobValid[i].fn(j); verdict != nil {
			return verdict
		}
	}
	return nil
}

// Cluster returns the model, to read. Statements alone change it.
func (ssn *Session) Cluster() api.ClusterView { return ssn.cluster }

// Jobs returns the valid jobs with tasks to place. The caller must not change the slice.
func (ssn *Session) Jobs() []*api.JobInfo { return ssn.jobs }

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

// Deserved returns what a plugin has recorded, in parts of units; nil if none shares out the cluster.
func (ssn *Session) Deserved(q *api.QueueInfo) api.Resource { return ssn.deserved[q] }

// Statement begins a new statement.
func (ssn *Session) Statement() *Statement { return &Statement{ssn: ssn} }

// Explain records why a job waits; the latest explanation counts.
func (ssn *Session) Explain(j *api.JobInfo, verdict *api.Verdict) {
	ssn.outcome(j).Job = verdict
}

// ExplainTasks records why members of a shape wait although the gang has started or waits for
// another reason.
func (ssn *Session) ExplainTasks(j *api.JobInfo, signature *api.Signature, verdict *api.Verdict) {
	o := ssn.outcome(j)
	if o.Tasks == nil {
		o.Tasks = map[*api.Signature]*api.Verdict{}
	}
	o.Tasks[signature] = verdict
}

// ExplainBlocked records how many pods could not be evicted for a job because of disruption
// budgets.
func (ssn *Session) ExplainBlocked(j *api.JobInfo, pods int) {
	if pods > 0 {
		o := ssn.outcome(j)
		o.BlockedByBudgets = max(o.BlockedByBudgets, pods)
	}
}

func (ssn *Session) outcome(j *api.JobInfo) *Outcome {
	o := ssn.verdicts[j]
	if o == nil {
		o = &Outcome{}
		ssn.verdicts[j] = o
	}
	return o
}

// Outcome returns what was found out about a job, nil if it does not wait.
func (ssn *Session) Outcome(j *api.JobInfo) *Outcome { return ssn.verdicts[j] }

// OnCommit lets watch hear of every statement that is committed, placements that wait for room
// included, while the model contains it.
func (ssn *Session) OnCommit(watch func([]api.Decision)) { ssn.watch = watch }

// Decided returns how many decisions of a kind were committed.
func (ssn *Session) Decided(kind api.DecisionKind) int { return ssn.counts[kind] }

func (ssn *Session) decided(decisions []api.Decision) {
	for _, d := range decisions {
		ssn.counts[d.Kind]++
	}
}

func (ssn *Session) announce(t *api.TaskInfo, placed bool) {
	chain := ssn.allocated
	if !placed {
		chain = ssn.deallocated
	}
	for i := range chain {
		chain[i].fn(t)
	}
}

// WakeAt asks for a session at t at the latest, even if nothing happens until then: from t on,
// something is to be decided otherwise. The earliest wish counts.
func (ssn *Session) WakeAt(t time.Time) {
	if ssn.wake.IsZero() || t.Before(ssn.wake) {
		ssn.wake = t
	}
}

// Wake returns when the next session must be at the latest; zero if time alone changes nothing.
func (ssn *Session) Wake() time.Time { return ssn.wake }

// Nominated returns the node where a task waits for victims to end; empty if it does not.
func (ssn *Session) Nominated(t *api.TaskInfo) string { return ssn.nominatedNodes[t] }

// collectNominatedNodes remembers where tasks wait for the room that was promised to them.
func (ssn *Session) collectNominatedNodes() {
	for _, o := range ssn.held {
		if ssn.memory.nominations[o.Task.Job.ID] != nil {
			ssn.nominatedNodes[o.Task] = o.Node.Name
		}
	}
}

// Close undoes what was held or set aside for waiting gangs and lets the plugins go.
func (ssn *Session) Close() {
	ssn.collectNominatedNodes()
	ssn.releaseReservations()
	s := &Statement{ssn: ssn, ops: ssn.held}
	s.Discard()
	ssn.held = nil
	for _, t := range ssn.overdue {
		ssn.cluster.Ledger().SetOverdue(t, false)
	}
	for _, plugins := range ssn.profile.tiers {
		for i := range plugins {
			plugins[i].OnSessionClose(ssn)
		}
	}
	ssn.leaveRepeat()
	if !ssn.repeats {
		ssn.memory.nodes.Close()
	}
	ssn.memory.plans.placement = ssn.cluster.Generations().Placement
}
