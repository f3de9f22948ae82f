package allocate

import (
	"cmp"
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

// placeGang tries to place the gang in task order, and once more largest first if its shapes
// differ; a gang that must stay together is tried domain by domain.
func (r *run) placeGang(claim *api.Claim) bool {
	stmt := r.ssn.Statement()
	tasks := r.waiting(claim.Job)
	failure := r.tryDomains(stmt, claim, tasks)
	if failure != nil && shapesDiffer(claim.Tasks) {
		stmt.Discard()
		if r.tryDomains(stmt, claim, r.largestFirst(claim, tasks)) == nil {
			failure = nil
		}
	}
	if failure != nil {
		stmt.Discard()
		r.explainGang(claim, failure)
		return false
	}
	stmt.Commit()
	r.explainHeld(claim)
	return true
}

// failure is where an attempt ended: the first task that found no room, and how many of the
// gang had been placed by the end of the attempt.
type failure struct {
	task   *api.TaskInfo
	placed int32
}

// try places tasks in the given order until the gang is complete; nil on success. A class
// without a node does not stop the others, because the gang may be completed by them.
func (r *run) try(stmt *framework.Statement, job *api.JobInfo, tasks []*api.TaskInfo) *failure {
	var first *failure
	failed := map[*api.Class]bool{}
	placed := int32(0)
	for i, t := range tasks {
		class := r.ssn.Cluster().ClassOf(t)
		if failed[class] {
			continue
		}
		if !r.placer.Place(stmt, t) {
			failed[class] = true
			if first == nil {
				first = &failure{task: t}
			}
			if !r.couldComplete(job, tasks[i+1:], failed) {
				break
			}
			continue
		}
		placed++
		if r.ssn.JobPipelined(job) {
			return nil
		}
	}
	if first == nil { // fewer members than needed; only without the gang plugin's check
		first = &failure{task: tasks[len(tasks)-1]}
	}
	first.placed = placed
	return first
}

// couldComplete tells whether enough tasks of classes that have not failed are left.
func (r *run) couldComplete(job *api.JobInfo, rest []*api.TaskInfo, failed map[*api.Class]bool) bool {
	missing := job.MinMember - job.ReadyCount() - job.Count(api.Pipelined)
	for _, t := range rest {
		if missing <= 0 {
			break
		}
		if !failed[r.ssn.Cluster().ClassOf(t)] {
			missing--
		}
	}
	return missing <= 0
}

func shapesDiffer(tasks []*api.TaskInfo) bool {
	for _, t := range tasks[1:] {
		if t.Shape != tasks[0].Shape {
			return true
		}
	}
	return false
}

// largestFirst orders the gang by the greatest share of the usable total that a task asks for
// in any one dimension; tasks beyond the gang stay behind as substitutes.
func (r *run) largestFirst(claim *api.Claim, tasks []*api.TaskInfo) []*api.TaskInfo {
	dims, total := r.ssn.Cluster().Dims, r.ssn.Total()
	sorted := slices.Clone(tasks)
	slices.SortStableFunc(sorted[:len(claim.Tasks)], func(a, b *api.TaskInfo) int {
		return dims.Dominant(b.Request, total).Compare(dims.Dominant(a.Request, total))
	})
	return sorted
}

// tryDomains is try, domain by domain if the gang must stay together in one: largest room
// first, so that the domain that can hold it is found early.
func (r *run) tryDomains(stmt *framework.Statement, claim *api.Claim, tasks []*api.TaskInfo) *failure {
	key := claim.Tasks[0].Shape.TogetherIn()
	if key == "" || claim.Job.ReadyCount() > 0 { // members that run say where the rest must go
		return r.try(stmt, claim.Job, tasks)
	}
	var first *failure
	for _, d := range r.domains(claim.Tasks[0], key) {
		if first != nil && d.slots < int64(len(claim.Tasks)) && !shapesDiffer(claim.Tasks) {
			break // smaller domains cannot hold it either
		}
		r.placer.Within(func(n *api.NodeInfo) bool { return n.Node.Labels[key] == d.value })
		failure := r.try(stmt, claim.Job, tasks)
		r.placer.Within(nil)
		if failure == nil {
			return nil
		}
		stmt.Discard()
		if first == nil {
			first = failure
		}
	}
	// Members may differ in labels and so in whether the affinity means them: the predicates
	// have the last word.
	if last := r.try(stmt, claim.Job, tasks); last == nil || first == nil {
		return last
	}
	return first
}

type domain struct {
	value string
	slots int64 // how many tasks of the first shape its nodes have room for
}

func (r *run) domains(t *api.TaskInfo, key string) []domain {
	slots := map[string]int64{}
	nodes := r.ssn.Cluster().Nodes()
	r.ssn.Passing(t.Shape).Each(func(i int) {
		n := nodes[i]
		if value, ok := n.Node.Labels[key]; ok {
			slots[value] += t.Request.TimesIn(n.Room(t.Priority, api.Future))
		}
	})
	list := make([]domain, 0, len(slots))
	for value, n := range slots {
		list = append(list, domain{value, n})
	}
	slices.SortFunc(list, func(a, b domain) int {
		if n := cmp.Compare(b.slots, a.slots); n != 0 {
			return n
		}
		return cmp.Compare(a.value, b.value)
	})
	return list
}
