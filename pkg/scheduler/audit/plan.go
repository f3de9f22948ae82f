// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/nodeindex"
)

// Session is what Plan reads of an open session.
type Session interface {
	Cluster() api.ClusterView
	Nodes() *nodeindex.Index
	// Deserved returns nil if no plugin divides the cluster between queues.
	Deserved(q *api.QueueInfo) api.Resource
}

// Plan returns an error if a statement with evictions does not raise its potential, which is why
// evictions cannot cycle (docs/design/preemption-convergence.md). The model contains the statement already. Plan
// computes from what jobs and queues hold and deserve, without the plugins that permitted the evictions.
// It reports entitled if a queue takes what it deserves although that does not raise the least shares.
func Plan(ssn Session, decisions []api.Decision) (entitled bool, err error) {
	p := &plan{ssn: ssn, gained: map[*api.JobInfo]api.Resource{}}
	for _, d := range decisions {
		if d.Cause == api.GangDegraded || d.Cause == api.Overran {
			return false, nil // the victims cannot run without their gang, or have run for as long as they may
		}
		p.add(d)
	}
	switch {
	case len(p.victims) == 0:
		return false, nil
	case slices.ContainsFunc(p.victims, func(t *api.TaskInfo) bool { return t.Tracking.EvictionBlocked || t.Tracking.NodeBound }):
		return false, p.fault("includes pods that must not be evicted")
	case p.victims[0].Job.Queue == p.preemptor.Queue:
		return false, p.auditJobs()
	case !p.divided() || p.queuesRise():
		return false, nil
	}
	return true, p.auditEntitlement()
}

// plan is what a statement with evictions has changed.
type plan struct {
	ssn             Session
	preemptor       *api.JobInfo
	victims, placed []*api.TaskInfo
	gained          map[*api.JobInfo]api.Resource // negative for jobs of victims
}

func (p *plan) add(d api.Decision) {
	gained := p.gained[d.Task.Job]
	if d.Kind == api.Evict {
		p.preemptor = d.For
		p.victims = append(p.victims, d.Task)
		gained.Sub(d.Task.ShareRequest)
	} else {
		p.placed = append(p.placed, d.Task)
		gained.Add(d.Task.ShareRequest)
	}
	p.gained[d.Task.Job] = gained
}

func (p *plan) fault(what string) error {
	var victims []string
	for _, v := range p.victims {
		victims = append(victims, v.Key)
	}
	return fmt.Errorf("a plan for %s that evicts %q %s", p.preemptor.Key, victims, what)
}

// auditJobs checks plans within a queue: victims of the same job have a lower priority, and victims of
// other jobs raise the least shares of the priority.
func (p *plan) auditJobs() error {
	var others []*api.TaskInfo
	var kept api.Resource
	for _, v := range p.victims {
		if v.Job != p.preemptor {
			others = append(others, v)
			continue
		}
		kept.Add(v.ShareRequest)
		for _, t := range p.placed {
			if v.Priority >= t.Priority {
				return p.fault("is for tasks of the same job that do not rank higher")
			}
		}
	}
	if len(others) > 0 && !p.levelsRise(others, kept) {
		return p.fault("takes more than it leaves to jobs of the same priority")
	}
	return nil
}

// level is what the jobs of one priority hold.
type level struct {
	before, after []api.Share // dominant shares
	more          int         // tasks
}

// rises is positive if the least share rises, or the next if that is constant, and so on; or if
// all are constant and there are more tasks.
func (l *level) rises() int {
	return cmp.Or(compareShares(l.after, l.before), l.more)
}

func compareShares(a, b []api.Share) int {
	slices.SortFunc(a, api.Share.Compare)
	slices.SortFunc(b, api.Share.Compare)
	return slices.CompareFunc(a, b, api.Share.Compare)
}

// levelsRise compares what the queue's jobs hold, from the highest priority down. Victims of
// the preemptor itself count as kept.
func (p *plan) levelsRise(others []*api.TaskInfo, kept api.Resource) bool {
	priority := func(j *api.JobInfo) int32 { return j.Priority }
	if slices.ContainsFunc(others, func(v *api.TaskInfo) bool { return v.Job.Priority > p.preemptor.Priority }) {
		priority = func(*api.JobInfo) int32 { return 0 } // this configuration ignores priorities
	}
	levels := map[int32]*level{}
	for _, j := range p.preemptor.Queue.Jobs {
		l := levels[priority(j)]
		if l == nil {
			l = &level{}
			levels[priority(j)] = l
		}
		after := j.Allocated
		if j == p.preemptor {
			after = after.Plus(kept)
		}
		l.before = append(l.before, p.ssn.Cluster().Dims().Dominant(j.Allocated.Minus(p.gained[j]), p.ssn.Nodes().Total()))
		l.after = append(l.after, p.ssn.Cluster().Dims().Dominant(after, p.ssn.Nodes().Total()))
	}
	levels[priority(p.preemptor)].more += len(p.placed)
	for _, v := range others {
		levels[priority(v.Job)].more--
	}
	for _, at := range slices.Backward(slices.Sorted(maps.Keys(levels))) {
		if n := levels[at].rises(); n != 0 {
			return n > 0
		}
	}
	return false
}

// queuesRise checks plans that evict from other queues: the least shares of queues rise.
func (p *plan) queuesRise() bool {
	gained := map[*api.QueueInfo]api.Resource{}
	for j, n := range p.gained {
		gained[j.Queue] = n.Plus(gained[j.Queue])
	}
	var before, after []api.Share
	for _, q := range p.ssn.Cluster().SortedQueues() {
		before = append(before, p.share(q, q.Allocated.Minus(gained[q])))
		after = append(after, p.share(q, q.Allocated))
	}
	return compareShares(after, before) > 0
}

// share is the greatest part of what a queue deserves that it holds in any dimension.
func (p *plan) share(q *api.QueueInfo, held api.Resource) api.Share {
	var most api.Share
	for d, n := range held {
		if s := (api.Share{Part: api.InParts(d, n), Whole: p.ssn.Deserved(q).At(d)}); p.ssn.Cluster().Dims().Shared(d) && s.Compare(most) > 0 {
			most = s
		}
	}
	return most
}

// auditEntitlement checks plans that do not raise them: the preemptor's queue is then within what it
// deserves, and the victim queues had borrowed what they lose.
func (p *plan) auditEntitlement() error {
	for d := range p.preemptor.Queue.Allocated {
		if p.over(p.preemptor.Queue, p.preemptor.Queue.Allocated, d) {
			return p.fault("takes more than it leaves to other queues, and more than its own deserves")
		}
	}
	for _, v := range p.victims {
		if !p.borrowed(v.Job.Queue) {
			return p.fault(fmt.Sprintf("takes from queue %s what that deserves", v.Job.Queue.ID))
		}
	}
	return nil
}

// over reports whether a queue that holds that much has more of dimension d than it deserves.
func (p *plan) over(q *api.QueueInfo, held api.Resource, d int) bool {
	return p.ssn.Cluster().Dims().Shared(d) && api.InParts(d, held.At(d)) > p.ssn.Deserved(q).At(d)
}

// borrowed reports whether a queue had more than it deserves, of a dimension that the plan requests,
// before it lost the last of its units: a pod, or all of a job or of a subgroup that has none left. Plans do not record
// which was the last, so one that could have been is enough.
func (p *plan) borrowed(q *api.QueueInfo) bool {
	for _, last := range p.victims {
		if last.Job.Queue != q {
			continue
		}
		held := q.Allocated.Plus(p.lastUnit(last))
		for d, n := range p.gained[p.preemptor] {
			if n > 0 && p.over(q, held, d) {
				return true
			}
		}
	}
	return false
}

// lastUnit returns what the largest unit held that a victim could have been evicted in.
func (p *plan) lastUnit(last *api.TaskInfo) api.Resource {
	if last.Job.Holding() == 0 {
		return api.Resource{}.Minus(p.gained[last.Job])
	}
	held := last.ShareRequest.Clone()
	for s := last.SubGroup(); s != nil && s.Holding() == 0; s = s.Parent {
		held = nil
		for _, v := range p.victims {
			for at := v.SubGroup(); at != nil; at = at.Parent {
				if at == s {
					held.Add(v.ShareRequest)
				}
			}
		}
	}
	return held
}

// divided reports whether a plugin divides the cluster between queues.
func (p *plan) divided() bool {
	for _, q := range p.ssn.Cluster().Queues() {
		if p.ssn.Deserved(q) != nil {
			return true
		}
	}
	return false
}
