// Package worklist hands out jobs in the order in which actions serve them: the best queue
// first, and of it the best job.
package worklist

import (
	"container/heap"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

// List holds the jobs that still want a turn. The order of queues is asked anew for each turn,
// because each placement changes shares. The order of jobs within a queue only changes for the
// job that had the turn, which is outside of the list then.
type List struct {
	ssn    *framework.Session
	queues map[*api.QueueInfo]*jobs
	order  []*jobs // the same, in the order of their first job
}

// New returns a list of the given jobs, all of which have a queue.
func New(ssn *framework.Session, all []*api.JobInfo) *List {
	l := &List{ssn: ssn, queues: map[*api.QueueInfo]*jobs{}}
	for _, j := range all {
		q := l.queues[j.Queue]
		if q == nil {
			q = &jobs{ssn: ssn, queue: j.Queue}
			l.queues[j.Queue] = q
			l.order = append(l.order, q)
		}
		q.list = append(q.list, j)
	}
	for _, q := range l.order {
		heap.Init(q)
	}
	return l
}

// Next takes out the best job of the best queue; nil when the list is empty.
func (l *List) Next() *api.JobInfo {
	var best *jobs
	for _, q := range l.order {
		if len(q.list) > 0 && (best == nil || l.compare(q, best) < 0) {
			best = q
		}
	}
	if best == nil {
		return nil
	}
	return heap.Pop(best).(*api.JobInfo)
}

// Return puts a job back after its turn.
func (l *List) Return(j *api.JobInfo) { heap.Push(l.queues[j.Queue], j) }

// compare orders queues: plugins first, then the queue whose best job has waited longest, then
// the older queue, then by name.
func (l *List) compare(a, b *jobs) int {
	if n := l.ssn.CompareQueues(a.queue, b.queue); n != 0 {
		return n
	}
	if n := api.CompareAge(a.list[0].Created, b.list[0].Created, "", ""); n != 0 {
		return n
	}
	return api.CompareAge(a.queue.Created, b.queue.Created, string(a.queue.ID), string(b.queue.ID))
}

// jobs is the heap of one queue's jobs.
type jobs struct {
	ssn   *framework.Session
	queue *api.QueueInfo
	list  []*api.JobInfo
}

func (q *jobs) Len() int           { return len(q.list) }
func (q *jobs) Less(i, j int) bool { return q.ssn.CompareJobs(q.list[i], q.list[j]) < 0 }
func (q *jobs) Swap(i, j int)      { q.list[i], q.list[j] = q.list[j], q.list[i] }

// Push and Pop speak the language of container/heap, which knows no type parameters.
func (q *jobs) Push(x any) { q.list = append(q.list, x.(*api.JobInfo)) }
func (q *jobs) Pop() any {
	last := q.list[len(q.list)-1]
	q.list = q.list[:len(q.list)-1]
	return last
}
