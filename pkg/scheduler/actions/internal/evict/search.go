package evict

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// search is what is known about claims of one kind: they come from the same queue, at the same
// priority, for jobs that hold the same, and ask for tasks of the same classes. To plugins they are
// equal, so what was found out for one holds for the next; and because givers only lose while an
// action makes plans, who had to stay for one stays for the next.
type search struct {
	planner *Planner
	kind    string
	// judged by our own predicates alone: what others read is not known to stand still.
	memorable bool

	singles map[*api.TaskInfo]bool       // whether the pod may go as surplus, as asked at the start of a plan
	gangs   map[*api.JobInfo]bool        // the same of all the rest of a gang
	offers  map[candidateKey]*candidates // left by the last attempt

	protected map[*api.TaskInfo]struct{} // by disruption budgets
}

func (p *Planner) searchFor(claim *api.Claim, rules Rules) *search {
	kind, memorable := p.kindOf(claim, rules)
	if s := p.searches[kind]; s != nil && memorable {
		return s
	}
	s := &search{planner: p, kind: kind, memorable: memorable, singles: map[*api.TaskInfo]bool{}, gangs: map[*api.JobInfo]bool{},
		protected: map[*api.TaskInfo]struct{}{}}
	p.searches[kind] = s
	return s
}

// kindOf names the kind of a claim, and tells whether claims of that kind are alike at all.
func (p *Planner) kindOf(claim *api.Claim, rules Rules) (kind string, memorable bool) {
	job := claim.Job
	key := fmt.Appendf(nil, "%s/%s/%d/%v/%t", rules.Cause, job.Queue.ID, job.Priority, claim.JobHeld, rules.SurplusOnly)
	if job.Shadow() {
		key = append(key, "/shadow"...)
	}
	if job.Holding() > 0 && job.Surplus() > 0 { // its own pods could go
		key = append(append(key, '/'), job.ID...)
	}
	memorable = true
	var last *api.TaskInfo
	run := 0
	flush := func() {
		if last != nil {
			key = fmt.Appendf(key, "/%dx%s:%d:%t", run, last.Signature.Key(), last.Priority, preempts(last))
		}
	}
	for _, t := range claim.Tasks {
		if last == nil || t.Signature != last.Signature || p.ssn.Cluster().ClassOf(t) != p.ssn.Cluster().ClassOf(last) {
			memorable = memorable && !t.Signature.HasExternalResources() && !p.ssn.Cluster().ClassOf(t).AffectedByPods()
		}
		if last == nil || t.Signature != last.Signature || t.Priority != last.Priority || preempts(t) != preempts(last) {
			flush()
			last, run = t, 0
		}
		run++
	}
	flush()
	return string(key), memorable
}

func preempts(t *api.TaskInfo) bool {
	return t.Pod.Spec.PreemptionPolicy == nil || *t.Pod.Spec.PreemptionPolicy != v1.PreemptNever
}

// hopeless tells whether a claim of this kind has found no plan since the model changed last.
func (s *search) hopeless(claim *api.Claim) bool {
	if !s.memorable {
		return false
	}
	protected, hopeless := s.planner.ssn.KnownInfeasible(s.kind)
	s.planner.ssn.ExplainBlocked(claim.Job, protected)
	return hopeless
}

func (s *search) giveUp(claim *api.Claim) {
	s.planner.ssn.ExplainBlocked(claim.Job, len(s.protected))
	if s.memorable {
		s.planner.ssn.SetInfeasible(s.kind, len(s.protected))
	}
}

// admits asks about a unit once.
func (s *search) admits(u api.Unit, ask func(api.Unit) bool) bool {
	if u.Whole {
		answer, known := s.gangs[u.Job]
		if !known {
			answer = ask(u)
			s.gangs[u.Job] = answer
		}
		return answer
	}
	answer, known := s.singles[u.Tasks[0]]
	if !known {
		answer = ask(u)
		s.singles[u.Tasks[0]] = answer
	}
	return answer
}
