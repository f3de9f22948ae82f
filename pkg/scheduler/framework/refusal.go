// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// Undisturbed reports whether the session has committed and reserved nothing. As long as no job is placed, all jobs then
// find the same state, in whatever order they are tried.
func (b *Backlog) Undisturbed() bool { return b.enabled && !b.pending.apart && b.state == b.opened }

// Refused reports whether a job of the class would be refused as before, without an attempt.
func (b *Backlog) Refused(jc *JobClass, j *api.JobInfo) bool {
	return !b.pending.apart && b.holds(jc, j)
}

// holds brings the refusal of a job class up to date, and reports whether it holds.
func (b *Backlog) holds(jc *JobClass, j *api.JobInfo) bool {
	r := &jc.refusal
	queue := b.queues[jc.queue]
	if r.outcome == nil || r.generation != b.generation || queue == nil {
		return false
	}
	b.use(r.class, j)
	b.follow(r.class, jc)
	same := r.changed == r.class.changed && r.queued == queue.changed
	if same && r.compared == b.state {
		return true
	}
	if !(same && b.sameCapacity(jc, j)) && !b.stillRefused(jc, j, queue) {
		r.outcome = nil
		return false
	}
	r.changed, r.queued, r.compared = r.class.changed, queue.changed, b.state
	return true
}

// stillRefused compares what a refusal depends on after a change of the queue or of nodes.
func (b *Backlog) stillRefused(jc *JobClass, j *api.JobInfo, queue *queueState) bool {
	r, v, task := &jc.refusal, jc.refusal.outcome.Job, j.Tasks[0]
	if v.Plugin != "" { // by a cap, which does not depend on nodes
		return r.queued == queue.changed
	}
	if jc.class.Level != nil { // the verdict has the best domain, which any node can change
		return false
	}
	if v.Nodes.Available > 0 || v.Startable > 0 || r.releasing != r.class.releasing {
		return false
	}
	if b.ssn.CappedBy(j, jc.Request, api.Future) != "" || b.ssn.CappedBy(j, task.Request, api.Future) != "" {
		return false
	}
	if !b.sameCapacity(jc, j) {
		return false
	}
	count := b.nodes.Count
	if v.Reason == v1alpha1.ReasonExceedsClusterCapacity { // such a verdict has no nearest node, see place.Allocator.compareCapacity
		count = b.nodes.CountWithoutNearest
	}
	now := count(task)
	switch {
	case equalCounts(&now, &v.Nodes):
		return true
	case now.Available > 0 || now.Suitable() != v.Nodes.Suitable():
		return false
	}
	again := *v // none of its pods could start: only why the nodes refuse them has changed
	again.Nodes = now
	r.outcome = &Outcome{Job: &again, shared: true}
	jc.last = r.outcome
	return true
}

// sameCapacity reports whether as many pods of a gang would fit the empty nodes as the verdict of its job class says.
func (b *Backlog) sameCapacity(jc *JobClass, j *api.JobInfo) bool {
	v, most := jc.refusal.outcome.Job, b.nodes.MaxMembers(j)
	if v.Plugin != "" || v.Reason != v1alpha1.ReasonExceedsClusterCapacity {
		return v.Plugin != "" || most >= int64(j.MinMember) || v.Reason == v1alpha1.ReasonUnschedulable
	}
	if most != int64(v.Have) {
		return false
	}
	return !v.OnePod || b.nodes.Largest(jc.class.Signature).At(v.Dimension) == v.Limit
}

// SetRefused records that a gang was tried and refused with a verdict. It reports whether that holds for all jobs of the
// job class.
func (b *Backlog) SetRefused(j *api.JobInfo, verdict *api.Verdict) bool {
	jc, queue := b.JobClass(j), b.queues[j.Queue]
	if jc == nil || queue == nil || verdict == nil || verdict.Reservation != nil || verdict.Expected || b.ssn.JobPipelined(j) {
		return false
	}
	class := b.classOf(jc)
	b.use(class, j)
	b.follow(class, jc)
	outcome := jc.last
	if outcome == nil || !equalVerdicts(outcome.Job, verdict) {
		outcome = &Outcome{Job: verdict, shared: true}
		jc.last = outcome
	}
	jc.refusal = refusal{
		outcome: outcome, class: class, generation: b.generation,
		changed: class.changed, releasing: class.releasing, queued: queue.changed, compared: b.state,
	}
	return true
}

// JobClass returns the class of a job; nil if it has none, or is unlike the other jobs of its class.
func (b *Backlog) JobClass(j *api.JobInfo) *JobClass {
	if !b.enabled || b.apart[j] {
		return nil
	}
	r := b.pending.record(j)
	if r == nil || r.class == nil || r.class.session != b.session || !b.pending.hasStill(r) {
		return nil
	}
	return r.class
}

// ExplainRefusals explains the jobs of job classes whose refusal is known, also those that were explained before.
func (b *Backlog) ExplainRefusals() {
	for _, jc := range b.used {
		if j := b.Waiting(jc); j != nil && b.holds(jc, j) {
			jc.shown = jc.refusal.outcome
		}
	}
	for _, j := range b.ssn.explained {
		if jc := b.JobClass(j); jc != nil && jc.shown != nil {
			b.ssn.explainAs(j, jc.shown)
		}
	}
}

func (b *Backlog) classOf(jc *JobClass) *classState {
	key := classKey{jc.class, jc.priority}
	c := b.classes[key]
	if c == nil {
		c = &classState{}
		b.classes[key] = c
	}
	return c
}

// use keeps the node verdicts of the class for the next session.
func (b *Backlog) use(c *classState, j *api.JobInfo) {
	if c.session != b.session {
		c.session = b.session
		b.nodes.Keep(j.Tasks[0])
	}
}

// follow counts the changes of nodes that are feasible for the class of a job class.
func (b *Backlog) follow(c *classState, jc *JobClass) {
	b.followClass(c, classKey{jc.class, jc.priority})
}

func (b *Backlog) followClass(c *classState, key classKey) {
	if c.position == len(b.changes) {
		return
	}
	feasible, nodes := b.nodes.Feasible(key.class.Signature), b.ssn.cluster.Nodes()
	for _, i := range b.changes[c.position:] {
		if !feasible.Has(int(i)) {
			if key.class.Level != nil { // whole domains come last, whatever runs there
				c.changed++
			}
			continue
		}
		c.changed++
		if n := nodes[i]; n != nil && n.HasReleasing() && willFit(n, key) {
			c.releasing++
		}
	}
	c.position = len(b.changes)
}

// willFit reports whether a pod of a class fits on the node when all is free that is being released.
func willFit(n *api.NodeInfo, key classKey) bool {
	request := key.class.Signature.Request
	return request.Fits(n.Allocatable) && request.Fits(n.Available(key.priority, api.Future))
}

// equalVerdicts reports whether two verdicts on gangs of one job class have equal messages.
func equalVerdicts(a, b *api.Verdict) bool {
	return a.Reason == b.Reason && a.Plugin == b.Plugin && a.Need == b.Need && a.Have == b.Have && a.Missing == b.Missing &&
		a.Startable == b.Startable && slices.Equal(a.Request, b.Request) && equalCounts(&a.Nodes, &b.Nodes) && a.Name == b.Name &&
		a.Dimension == b.Dimension && a.Limit == b.Limit && a.Held == b.Held && a.Asked == b.Asked &&
		a.OnePod == b.OnePod && a.Borrowed == b.Borrowed && a.Yielding == b.Yielding && a.Expected == b.Expected &&
		a.Start == b.Start && a.Backfill == b.Backfill && a.Detail == b.Detail && equalDomains(a.Domain, b.Domain)
}

func equalDomains(a, b *api.DomainCount) bool { return a == b || a != nil && b != nil && *a == *b }

// equalCounts reports whether nodes refuse a task for the same reasons, so that messages are equal.
func equalCounts(a, b *api.NodeCounts) bool {
	return a.Total == b.Total && a.Available == b.Available && slices.Equal(a.Unfit, b.Unfit) && equalNearest(a.Nearest, b.Nearest)
}

func equalNearest(a, b *api.NearestNode) bool {
	return a == b || a != nil && b != nil && a.Node == b.Node && a.Devices == b.Devices && slices.Equal(a.Shortfall, b.Shortfall)
}

// deferral is whether plugins let a claim of a job class wait because of its queue, and the state of its class and
// queue then.
type deferral struct {
	by                          int // index of the function; -1: none does
	class                       *classState
	generation, changed, queued uint64
}

// Deferred returns what Overused returns for a claim of the job class, and counts the answer for so many jobs. It asks
// again if the queue or a feasible node has changed.
func (b *Backlog) Deferred(jc *JobClass, claim func() *api.Claim, jobs int) bool {
	d, chain, class, queue := &jc.defers, b.ssn.overused, b.classOf(jc), b.queues[jc.queue]
	b.follow(class, jc)
	if d.class != class || d.generation != b.generation || d.changed != class.changed || d.queued != queue.changed {
		*d = deferral{-1, class, b.generation, class.changed, queue.changed}
		asked := claim()
		d.by = slices.IndexFunc(chain, func(l link[QueueFn]) bool { return l.fn(asked.Job.Queue, asked) })
	}
	if d.by >= 0 {
		chain[d.by].refusals += jobs
	}
	return d.by >= 0
}

// KeepCounts returns a function that sets the counts of overused queues back to what they are now.
func (b *Backlog) KeepCounts() (restore func()) {
	chain := b.ssn.overused
	before := make([]int, len(chain))
	for i := range chain {
		before[i] = chain[i].refusals
	}
	return func() {
		for i := range chain {
			chain[i].refusals = before[i]
		}
	}
}
