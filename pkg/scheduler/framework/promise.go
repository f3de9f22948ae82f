package framework

import (
	"slices"
	"strings"
	"time"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

const (
	// overdue is how long after its deletion should have ended a victim is waited for.
	overdue = 30 * time.Second

	// Who has evicted in vain evicts again after a while, longer each time.
	pauseBase  = time.Second
	pauseLimit = 64 * time.Second
)

// promise is room that pods were evicted for. Until their end the beneficiary goes before all
// others in each session, so that nobody takes the room and the evictions were not for nothing.
type promise struct {
	job     api.JobID
	tasks   int // how many tasks of the job were to be placed
	victims []api.TaskID
}

// pause is how long a job must not evict.
type pause struct {
	length time.Duration
	until  time.Time
}

// makePromise remembers for whom a statement evicts.
func (s *Statement) makePromise() {
	var p promise
	for i := range s.ops {
		switch o := &s.ops[i]; o.Kind {
		case api.Evict:
			p.job = o.For.ID
			p.victims = append(p.victims, o.Task.ID)
		default:
			p.tasks++
		}
	}
	if len(p.victims) > 0 && p.tasks > 0 {
		p.victims = append(p.victims, s.ssn.outstanding[p.job]...) // it counts on their room too
		s.ssn.memory.promises = append(s.ssn.memory.promises, &p)
		s.ssn.explainPromise(s.ssn.cluster.Jobs[p.job], len(p.victims), time.Time{})
	}
}

// promisesShown reads from the API server's objects what an earlier scheduler has promised: the
// tasks that it nominated for nodes, and the victims that name their job as beneficiary.
func promisesShown(c *api.Cluster) []*promise {
	byKey := map[string]*promise{}
	for _, j := range c.WaitingJobs() {
		p := &promise{job: j.ID}
		for _, t := range j.Tasks {
			if t.Waiting() && t.Pod.Status.NominatedNodeName != "" {
				p.tasks++
			}
		}
		if p.tasks > 0 {
			byKey[j.Key] = p
		}
	}
	if len(byKey) == 0 {
		return nil
	}
	for _, t := range c.Tasks {
		if p := byKey[t.Pod.Annotations[v1alpha1.AnnotationEvictedFor]]; p != nil && t.Status == api.Releasing {
			p.victims = append(p.victims, t.ID)
		}
	}
	var list []*promise
	for _, p := range byKey {
		slices.Sort(p.victims)
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b *promise) int { return strings.Compare(string(a.job), string(b.job)) })
	return list
}

// Kept is what became of a promise in a session: how many tasks are on their way to their nodes, and
// how many have room that is still being released.
type Kept struct{ Now, Later int }

// KeepPromises calls place for each job that room was promised to, in job order, with the number
// of tasks that still wait for it; now is set when all victims are gone, so that what others still wait
// for is not its room. A promise ends when it is kept; when there is no room for it, now or
// later, because victims stay, a node is lost, or somebody else was faster; and when the victims take too
// long. Who was too slow or waited in vain has to pause before it evicts again.
func (ssn *Session) KeepPromises(place func(job *api.JobInfo, tasks int, now bool) Kept) {
	jobs := map[api.JobID]*api.JobInfo{}
	for _, j := range ssn.jobs {
		jobs[j.ID] = j
	}
	m := ssn.memory
	list := slices.DeleteFunc(m.promises, func(p *promise) bool { return jobs[p.job] == nil })
	slices.SortStableFunc(list, func(a, b *promise) int {
		if a.job == b.job {
			return 0
		}
		return ssn.CompareJobs(jobs[a.job], jobs[b.job])
	})
	m.promises = nil
	for _, p := range list {
		job := jobs[p.job]
		left, until := ssn.awaits(p)
		kept := place(job, p.tasks, left == 0)
		switch {
		case kept.Later > 0 && left > 0:
			p.tasks = kept.Later
			m.promises = append(m.promises, p)
			ssn.explainPromise(job, left, until)
		case kept.Now > 0:
			delete(m.pauses, p.job)
		case !ssn.excused(p):
			m.pauses[p.job] = m.pauses[p.job].next(ssn.Now)
		}
		if kept.Later == 0 && left > 0 {
			ssn.outstanding[p.job] = append(ssn.outstanding[p.job], p.victims...)
		}
	}
	for id := range m.pauses {
		if ssn.cluster.Jobs[id] == nil {
			delete(m.pauses, id)
		}
	}
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
		if end := t.Pod.DeletionTimestamp; end != nil {
			last := end.Add(overdue)
			if !ssn.Now.Before(last) {
				continue
			}
			ssn.WakeAt(last)
			if end.After(until) {
				until = end.Time
			}
		}
		left++
	}
	return left, until
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
