package framework

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

const (
	// terminationSlack is how long after its deletion should have ended a pod is waited for.
	terminationSlack = 30 * time.Second

	// Who has evicted in vain evicts again after a while, longer each time.
	backoffBase  = time.Second
	backoffLimit = 64 * time.Second
)

// nomination is room that pods were evicted for. Until its end the beneficiary keeps its places and goes
// before all others in each session, so that nobody takes the room and the evictions were not for
// nothing.
type nomination struct {
	placements []Placement  // of the tasks that are to be placed
	victims    []api.TaskID // some may be gone
}

// backoff is how long a job must not evict.
type backoff struct {
	length time.Duration
	until  time.Time
}

// recordNomination remembers for whom a statement evicts, and the places.
func (s *Statement) recordNomination() {
	var preemptor *api.JobInfo
	var victims []api.TaskID
	var placements []Placement
	for i := range s.ops {
		switch o := &s.ops[i]; o.Kind {
		case api.Evict:
			preemptor = o.For
			victims = append(victims, o.Task.ID)
		default:
			placements = append(placements, placementOf(o.Decision))
		}
	}
	if preemptor == nil || len(placements) == 0 {
		return
	}
	p := s.ssn.memory.nominations[preemptor.ID]
	if p == nil {
		p = &nomination{victims: s.ssn.outstanding[preemptor.ID]} // it counts on their room too
		s.ssn.memory.nominations[preemptor.ID] = p
	}
	p.placements = append(p.placements, placements...)
	p.victims = append(p.victims, victims...)
	left, _ := s.ssn.pendingVictims(p)
	s.ssn.explainNomination(preemptor, left, time.Time{})
}

func placementOf(d api.Decision) Placement {
	return Placement{Node: d.Node.Name, Signature: d.Task.Signature}
}

// restoreNominations reads from the API server's objects what an earlier scheduler has promised: the
// tasks that it nominated for nodes, and the victims that name their job as beneficiary.
func restoreNominations(c *model.Cluster) map[api.JobID]*nomination {
	promises := map[api.JobID]*nomination{}
	byKey := map[string]*nomination{}
	for _, j := range c.WaitingJobs() {
		p := &nomination{}
		for _, t := range j.Tasks {
			if node := t.Pod.Status.NominatedNodeName; t.Waiting() && node != "" {
				p.placements = append(p.placements, Placement{Node: node, Signature: t.Signature})
			}
		}
		if len(p.placements) > 0 {
			promises[j.ID], byKey[j.Key] = p, p
		}
	}
	if len(byKey) == 0 {
		return promises
	}
	for _, t := range c.Tasks() {
		if p := byKey[t.Pod.Annotations[v1alpha1.AnnotationEvictedFor]]; p != nil && t.Status == api.Releasing {
			p.victims = append(p.victims, t.ID)
		}
	}
	for _, p := range promises {
		slices.Sort(p.victims)
	}
	return promises
}

// Nomination is what is left of a promise to a job.
type Nomination struct {
	Job   *api.JobInfo
	Tasks int                             // that still wait for it
	Nodes map[*api.TaskInfo]*api.NodeInfo // where there should be room for them
}

// ReserveNominated keeps the room that was promised to jobs, as far as it is there, for them and for jobs
// that go before them because of their priority (see Turn). It returns the jobs in job order.
func (ssn *Session) ReserveNominated() []*api.JobInfo {
	var jobs []*api.JobInfo
	for _, j := range ssn.jobs {
		if ssn.memory.nominations[j.ID] != nil {
			jobs = append(jobs, j)
		}
	}
	slices.SortFunc(jobs, ssn.CompareJobs)
	for _, j := range jobs {
		p := ssn.memory.nominations[j.ID]
		ssn.addReservation(&reservation{job: j, placements: ssn.placementsOf(j, p.placements), nomination: p})
	}
	return jobs
}

// placementsOf finds tasks for the seats of nodes that are still there.
func (ssn *Session) placementsOf(j *api.JobInfo, placements []Placement) []api.Decision {
	waiting := map[*api.Signature][]*api.TaskInfo{}
	for _, t := range ssn.WaitingTasks(j) {
		waiting[t.Signature] = append(waiting[t.Signature], t)
	}
	var places []api.Decision
	for _, placement := range placements {
		n, tasks := ssn.cluster.Node(placement.Node), waiting[placement.Signature]
		if len(tasks) == 0 || n == nil {
			continue
		}
		places = append(places, api.Decision{Kind: api.Pipeline, Task: tasks[0], Node: n})
		waiting[placement.Signature] = tasks[1:]
	}
	return places
}

// PlaceNominated calls place for each promise whose room was set aside: first for those whose victims are
// all gone, or others would use the room while their own victims are still there; then in job order. A
// promise ends when it is kept; when there is no room for it, now or later, because victims stay, a node is
// lost, or somebody else was faster; and when the pods take too long that it waits for. Who was too slow or
// waited in vain has to pause before it evicts again. For whom evictions were refused, what room there is
// stays set aside in this session, so that it can make another plan.
func (ssn *Session) PlaceNominated(place func(Nomination)) {
	m := ssn.memory
	m.nominations = map[api.JobID]*nomination{}
	slices.SortStableFunc(ssn.reservations, func(a, b *reservation) int {
		return cmp.Compare(ssn.victimsPending(a.nomination), ssn.victimsPending(b.nomination))
	})
	var still []*reservation
	for _, a := range ssn.reservations {
		if a.held != nil {
			ssn.cluster.Ledger().Unreserve(a.held)
			a.held = nil
		}
		id := a.job.ID
		switch now := ssn.placeNomination(a, place); {
		case now > 0:
			delete(m.backoffs, id)
		case m.nominations[id] != nil: // waits still
		case ssn.blameless(a.nomination):
			a.held = ssn.cluster.Ledger().Reserve(a.job.Queue, a.placements)
			still = append(still, a)
		default:
			m.backoffs[id] = m.backoffs[id].next(ssn.Now)
		}
	}
	ssn.reservations = still
	for id := range m.backoffs {
		if ssn.cluster.Jobs()[id] == nil {
			delete(m.backoffs, id)
		}
	}
}

// placeNomination returns how many tasks are on their way to their nodes. What waits still is promised again.
func (ssn *Session) placeNomination(a *reservation, place func(Nomination)) (now int) {
	p, job := a.nomination, a.job
	bound, held := job.Count(api.Binding), len(ssn.held)
	nodes := make(map[*api.TaskInfo]*api.NodeInfo, len(a.placements))
	for _, d := range a.placements {
		nodes[d.Task] = d.Node
	}
	place(Nomination{Job: job, Tasks: len(p.placements), Nodes: nodes})
	p.placements = nil
	for _, o := range ssn.held[held:] {
		p.placements = append(p.placements, placementOf(o.Decision))
	}
	left, until := ssn.pendingVictims(p)
	if left == 0 && len(p.placements) > 0 { // others have taken its room and left it theirs
		p.victims = ssn.terminatingOn(p.placements)
		left, until = ssn.pendingVictims(p)
	}
	switch {
	case left == 0:
	case len(p.placements) > 0:
		ssn.memory.nominations[job.ID] = p
		ssn.explainNomination(job, left, until)
	default:
		ssn.outstanding[job.ID] = p.victims
	}
	return int(job.Count(api.Binding) - bound)
}

func (p backoff) next(now time.Time) backoff {
	length := min(max(2*p.length, backoffBase), backoffLimit)
	return backoff{length, now.Add(length)}
}

// MayEvict tells whether a job may evict now. It may not for a while after it has evicted and got
// nothing.
func (ssn *Session) MayEvict(j *api.JobInfo) bool {
	p, paused := ssn.memory.backoffs[j.ID]
	if !paused || !ssn.Now.Before(p.until) {
		return true
	}
	ssn.WakeAt(p.until)
	return false
}

// pendingVictims returns how many victims are on their way, and by when the last will be gone or no longer be
// waited for; zero if the API server has not said yet.
func (ssn *Session) pendingVictims(p *nomination) (left int, until time.Time) {
	for _, id := range p.victims {
		t := ssn.cluster.Tasks()[id]
		if t == nil || t.Status != api.Releasing || t.Node == nil || !t.Node.Ready() {
			continue
		}
		if e, said := ssn.memory.terminations[id]; said {
			if !ssn.Now.Before(e.deadline) {
				continue
			}
			if e.observed.After(until) {
				until = e.observed
			}
		}
		left++
	}
	return left, until
}

// victimsPending is 1 if a victim is still on its way, else 0.
func (ssn *Session) victimsPending(p *nomination) int {
	left, _ := ssn.pendingVictims(p)
	return min(left, 1)
}

// terminatingOn returns the pods that are being deleted where the seats are.
func (ssn *Session) terminatingOn(placements []Placement) []api.TaskID {
	var list []api.TaskID
	known := map[string]bool{}
	for _, placement := range placements {
		n := ssn.cluster.Node(placement.Node)
		if n == nil || known[placement.Node] {
			continue
		}
		known[placement.Node] = true
		for id, t := range n.Tasks {
			if t.Status == api.Releasing {
				list = append(list, id)
			}
		}
	}
	slices.Sort(list)
	return list
}

// termination is the end of a pod that is being deleted.
type termination struct {
	observed time.Time // as the API server shows it, by its own clock
	deadline time.Time // by when it must have happened, by ours
}

// excludeOverdue takes pods that outstay their deletion out of the room to come, until the session closes:
// whoever waited for that would hold its other places for nothing. How long a pod may take counts from when
// its deletion was first seen, since clocks differ and are set: after a restart it begins anew.
func (ssn *Session) excludeOverdue() {
	before := ssn.memory.terminations
	ssn.memory.terminations = map[api.TaskID]termination{}
	ssn.cluster.EachReleasing(func(t *api.TaskInfo) {
		shown := t.Pod.DeletionTimestamp
		if shown == nil { // the API server has not said yet
			return
		}
		e, known := before[t.ID]
		if !known || !e.observed.Equal(shown.Time) {
			grace := time.Duration(ptr.Deref(t.Pod.DeletionGracePeriodSeconds, 0)) * time.Second
			e = termination{shown.Time, ssn.Now.Add(grace + terminationSlack)}
		}
		ssn.memory.terminations[t.ID] = e
		if ssn.Now.Before(e.deadline) {
			ssn.WakeAt(e.deadline)
		} else {
			ssn.overdue = append(ssn.overdue, t)
		}
	})
	for _, t := range ssn.overdue {
		ssn.cluster.Ledger().SetOverdue(t, true)
	}
}

// blameless tells whether an eviction of the promise was refused, or a node was lost: then the room was
// not taken by somebody else.
func (ssn *Session) blameless(p *nomination) bool {
	return slices.ContainsFunc(p.victims, func(id api.TaskID) bool {
		t := ssn.cluster.Tasks()[id]
		return t != nil && !t.Status.Ended() && (t.Status != api.Releasing || t.Node == nil || !t.Node.Ready())
	})
}

func (ssn *Session) explainNomination(j *api.JobInfo, left int, until time.Time) {
	v := &api.Verdict{Reason: v1alpha1.ReasonPreempting, Victims: int32(left)}
	if !until.IsZero() {
		v.Until = until
	}
	if ssn.JobReady(j) {
		for _, t := range j.Tasks {
			if t.Status == api.Pipelined {
				ssn.ExplainTasks(j, t.Signature, v)
			}
		}
		return
	}
	ssn.Explain(j, v)
}
