package framework

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

const (
	// overdue is how long after its deletion should have ended a pod is waited for.
	overdue = 30 * time.Second

	// Who has evicted in vain evicts again after a while, longer each time.
	pauseBase  = time.Second
	pauseLimit = 64 * time.Second
)

// promise is room that pods were evicted for. Until its end the beneficiary keeps its places and goes
// before all others in each session, so that nobody takes the room and the evictions were not for
// nothing.
type promise struct {
	seats   []Seat       // of the tasks that are to be placed
	victims []api.TaskID // some may be gone
}

// pause is how long a job must not evict.
type pause struct {
	length time.Duration
	until  time.Time
}

// makePromise remembers for whom a statement evicts, and the places.
func (s *Statement) makePromise() {
	var taker *api.JobInfo
	var victims []api.TaskID
	var seats []Seat
	for i := range s.ops {
		switch o := &s.ops[i]; o.Kind {
		case api.Evict:
			taker = o.For
			victims = append(victims, o.Task.ID)
		default:
			seats = append(seats, seatOf(o.Decision))
		}
	}
	if taker == nil || len(seats) == 0 {
		return
	}
	p := s.ssn.memory.promises[taker.ID]
	if p == nil {
		p = &promise{victims: s.ssn.outstanding[taker.ID]} // it counts on their room too
		s.ssn.memory.promises[taker.ID] = p
	}
	p.seats = append(p.seats, seats...)
	p.victims = append(p.victims, victims...)
	left, _ := s.ssn.awaits(p)
	s.ssn.explainPromise(taker, left, time.Time{})
}

func seatOf(d api.Decision) Seat { return Seat{Node: d.Node.Name, Shape: d.Task.Shape} }

// promisesShown reads from the API server's objects what an earlier scheduler has promised: the
// tasks that it nominated for nodes, and the victims that name their job as beneficiary.
func promisesShown(c *api.Cluster) map[api.JobID]*promise {
	promises := map[api.JobID]*promise{}
	byKey := map[string]*promise{}
	for _, j := range c.WaitingJobs() {
		p := &promise{}
		for _, t := range j.Tasks {
			if node := t.Pod.Status.NominatedNodeName; t.Waiting() && node != "" {
				p.seats = append(p.seats, Seat{Node: node, Shape: t.Shape})
			}
		}
		if len(p.seats) > 0 {
			promises[j.ID], byKey[j.Key] = p, p
		}
	}
	if len(byKey) == 0 {
		return promises
	}
	for _, t := range c.Tasks {
		if p := byKey[t.Pod.Annotations[v1alpha1.AnnotationEvictedFor]]; p != nil && t.Status == api.Releasing {
			p.victims = append(p.victims, t.ID)
		}
	}
	for _, p := range promises {
		slices.Sort(p.victims)
	}
	return promises
}

// Promise is what is left of a promise to a job.
type Promise struct {
	Job   *api.JobInfo
	Tasks int                             // that still wait for it
	Nodes map[*api.TaskInfo]*api.NodeInfo // where there should be room for them
}

// SetPromisesAside keeps the room that was promised to jobs, as far as it is there, for them and for jobs
// that go before them because of their priority (see Turn). It returns the jobs in job order.
func (ssn *Session) SetPromisesAside() []*api.JobInfo {
	var jobs []*api.JobInfo
	for _, j := range ssn.jobs {
		if ssn.memory.promises[j.ID] != nil {
			jobs = append(jobs, j)
		}
	}
	slices.SortFunc(jobs, ssn.CompareJobs)
	for _, j := range jobs {
		p := ssn.memory.promises[j.ID]
		ssn.setAside(&aside{job: j, places: ssn.places(j, p.seats), promise: p})
	}
	return jobs
}

// places finds tasks for the seats of nodes that are still there.
func (ssn *Session) places(j *api.JobInfo, seats []Seat) []api.Decision {
	waiting := map[*api.Shape][]*api.TaskInfo{}
	for _, t := range ssn.WaitingTasks(j) {
		waiting[t.Shape] = append(waiting[t.Shape], t)
	}
	var places []api.Decision
	for _, seat := range seats {
		n, tasks := ssn.cluster.Node(seat.Node), waiting[seat.Shape]
		if len(tasks) == 0 || n == nil {
			continue
		}
		places = append(places, api.Decision{Kind: api.Pipeline, Task: tasks[0], Node: n})
		waiting[seat.Shape] = tasks[1:]
	}
	return places
}

// KeepPromises calls place for each promise whose room was set aside: first for those whose victims are
// all gone, or others would use the room while their own victims are still there; then in job order. A
// promise ends when it is kept; when there is no room for it, now or later, because victims stay, a node is
// lost, or somebody else was faster; and when the pods take too long that it waits for. Who was too slow or
// waited in vain has to pause before it evicts again. For whom evictions were refused, what room there is
// stays set aside in this session, so that it can make another plan.
func (ssn *Session) KeepPromises(place func(Promise)) {
	m := ssn.memory
	m.promises = map[api.JobID]*promise{}
	slices.SortStableFunc(ssn.aside, func(a, b *aside) int { return cmp.Compare(ssn.waits(a.promise), ssn.waits(b.promise)) })
	var still []*aside
	for _, a := range ssn.aside {
		if a.kept != nil {
			ssn.cluster.GiveBack(a.kept)
			a.kept = nil
		}
		id := a.job.ID
		switch now := ssn.keep(a, place); {
		case now > 0:
			delete(m.pauses, id)
		case m.promises[id] != nil: // waits still
		case ssn.excused(a.promise):
			a.kept = ssn.cluster.SetAside(a.job.Queue, a.places)
			still = append(still, a)
		default:
			m.pauses[id] = m.pauses[id].next(ssn.Now)
		}
	}
	ssn.aside = still
	for id := range m.pauses {
		if ssn.cluster.Jobs[id] == nil {
			delete(m.pauses, id)
		}
	}
}

// keep returns how many tasks are on their way to their nodes. What waits still is promised again.
func (ssn *Session) keep(a *aside, place func(Promise)) (now int) {
	p, job := a.promise, a.job
	bound, held := job.Count(api.Binding), len(ssn.held)
	nodes := make(map[*api.TaskInfo]*api.NodeInfo, len(a.places))
	for _, d := range a.places {
		nodes[d.Task] = d.Node
	}
	place(Promise{Job: job, Tasks: len(p.seats), Nodes: nodes})
	p.seats = nil
	for _, o := range ssn.held[held:] {
		p.seats = append(p.seats, seatOf(o.Decision))
	}
	left, until := ssn.awaits(p)
	if left == 0 && len(p.seats) > 0 { // others have taken its room and left it theirs
		p.victims = ssn.leaving(p.seats)
		left, until = ssn.awaits(p)
	}
	switch {
	case left == 0:
	case len(p.seats) > 0:
		ssn.memory.promises[job.ID] = p
		ssn.explainPromise(job, left, until)
	default:
		ssn.outstanding[job.ID] = p.victims
	}
	return int(job.Count(api.Binding) - bound)
}

func (p pause) next(now time.Time) pause {
	length := min(max(2*p.length, pauseBase), pauseLimit)
	return pause{length, now.Add(length)}
}

// MayEvict tells whether a job may evict now. It may not for a while after it has evicted and got
// nothing.
func (ssn *Session) MayEvict(j *api.JobInfo) bool {
	p, paused := ssn.memory.pauses[j.ID]
	if !paused || !ssn.Now.Before(p.until) {
		return true
	}
	ssn.WakeAt(p.until)
	return false
}

// awaits returns how many victims are on their way, and by when the last will be gone or no longer be
// waited for; zero if the API server has not said yet.
func (ssn *Session) awaits(p *promise) (left int, until time.Time) {
	for _, id := range p.victims {
		t := ssn.cluster.Tasks[id]
		if t == nil || t.Status != api.Releasing || t.Node == nil || !t.Node.Ready() {
			continue
		}
		if e, said := ssn.memory.endings[id]; said {
			if !ssn.Now.Before(e.last) {
				continue
			}
			if e.shown.After(until) {
				until = e.shown
			}
		}
		left++
	}
	return left, until
}

// waits is 1 if a victim is still on its way, else 0.
func (ssn *Session) waits(p *promise) int {
	left, _ := ssn.awaits(p)
	return min(left, 1)
}

// leaving returns the pods that are being deleted where the seats are.
func (ssn *Session) leaving(seats []Seat) []api.TaskID {
	var list []api.TaskID
	known := map[string]bool{}
	for _, seat := range seats {
		n := ssn.cluster.Node(seat.Node)
		if n == nil || known[seat.Node] {
			continue
		}
		known[seat.Node] = true
		for id, t := range n.Tasks {
			if t.Status == api.Releasing {
				list = append(list, id)
			}
		}
	}
	slices.Sort(list)
	return list
}

// ending is the end of a pod that is being deleted.
type ending struct {
	shown time.Time // as the API server shows it, by its own clock
	last  time.Time // by when it must have happened, by ours
}

// giveUpOverdue takes pods that outstay their deletion out of the room to come, until the session closes:
// whoever waited for that would hold its other places for nothing. How long a pod may take counts from when
// its deletion was first seen, since clocks differ and are set: after a restart it begins anew.
func (ssn *Session) giveUpOverdue() {
	before := ssn.memory.endings
	ssn.memory.endings = map[api.TaskID]ending{}
	ssn.cluster.EachReleasing(func(t *api.TaskInfo) {
		shown := t.Pod.DeletionTimestamp
		if shown == nil { // the API server has not said yet
			return
		}
		e, known := before[t.ID]
		if !known || !e.shown.Equal(shown.Time) {
			grace := time.Duration(ptr.Deref(t.Pod.DeletionGracePeriodSeconds, 0)) * time.Second
			e = ending{shown.Time, ssn.Now.Add(grace + overdue)}
		}
		ssn.memory.endings[t.ID] = e
		if ssn.Now.Before(e.last) {
			ssn.WakeAt(e.last)
		} else {
			ssn.overdue = append(ssn.overdue, t)
		}
	})
	for _, t := range ssn.overdue {
		ssn.cluster.SetOverdue(t, true)
	}
}

// excused tells whether an eviction of the promise was refused, or a node was lost: then the room was
// not taken by somebody else.
func (ssn *Session) excused(p *promise) bool {
	return slices.ContainsFunc(p.victims, func(id api.TaskID) bool {
		t := ssn.cluster.Tasks[id]
		return t != nil && !t.Status.Ended() && (t.Status != api.Releasing || t.Node == nil || !t.Node.Ready())
	})
}

func (ssn *Session) explainPromise(j *api.JobInfo, left int, until time.Time) {
	v := &api.Verdict{Reason: v1alpha1.ReasonPreempting, Victims: int32(left)}
	if !until.IsZero() {
		v.Until = until
	}
	if ssn.JobReady(j) {
		for _, t := range j.Tasks {
			if t.Status == api.Pipelined {
				ssn.ExplainTasks(j, t.Shape, v)
			}
		}
		return
	}
	ssn.Explain(j, v)
}
