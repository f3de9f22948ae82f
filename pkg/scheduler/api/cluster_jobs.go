package api

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// addJob creates the job that t is the first member of.
func (c *Cluster) addJob(m Membership, t *TaskInfo) *JobInfo {
	if m.Group != "" {
		j := c.newJob(m.Job, m.Group)
		c.rereadGroup(j, c.groupByName[m.Group])
		return j
	}
	j := c.newJob(m.Job, "")
	j.Namespace = t.Pod.Namespace
	j.Key = shadowKey(t)
	j.MinMember = m.MinMember
	j.QueueName = m.Queue
	if uid := j.orphanedGroup(); uid != "" {
		if c.orphaned[uid] == nil {
			c.orphaned[uid] = map[JobID]*JobInfo{}
		}
		c.orphaned[uid][j.ID] = j
	}
	c.enqueue(j)
	return j
}

// SetBackoff sets why the job must not be tried for the time being; empty readmits it.
func (c *Cluster) SetBackoff(id JobID, why string) {
	j := c.Jobs[id]
	if j == nil || j.backoff == why {
		return
	}
	j.backoff = why
	c.generation++
	c.markDirty(j)
}

func (c *Cluster) newJob(id JobID, group string) *JobInfo {
	j := &JobInfo{ID: id, GroupName: group, Key: group, MinMember: 1}
	if group != "" {
		j.Namespace, _, _ = strings.Cut(group, "/")
	}
	c.Jobs[id] = j
	c.markDirty(j)
	return j
}

func (c *Cluster) removeJob(j *JobInfo) {
	if j.Queue != nil {
		j.Queue.count(j.counted, -1)
		delete(j.Queue.Jobs, j.ID)
	}
	delete(c.Jobs, j.ID)
	delete(c.waiting, j)
	if uid := j.orphanedGroup(); uid != "" {
		delete(c.orphaned[uid], j.ID)
		if len(c.orphaned[uid]) == 0 {
			delete(c.orphaned, uid)
		}
	}
}

// rereadGroup takes over the spec of a group; nil when it is gone.
func (c *Cluster) rereadGroup(j *JobInfo, g *v1alpha1.PodGroup) {
	c.generation++
	if j.Holding() == 0 {
		c.arrivals++ // nobody stands on a node because of it
	}
	j.Group = g
	j.MinMember, j.QueueName, j.MinResources, j.Created = 1, c.DefaultQueue, nil, 0
	if g != nil {
		j.MinMember = max(g.Spec.MinMember, 1)
		j.QueueName = c.queueOf(g)
		j.Created = g.CreationTimestamp.UnixNano()
		if len(g.Spec.MinResources) > 0 {
			j.MinResources = c.Dims.Vector(g.Spec.MinResources)
		}
	}
	c.readPriority(j)
	c.enqueue(j)
	c.markDirty(j)
}

func (c *Cluster) readPriority(j *JobInfo) {
	j.groupPriority = nil
	if j.Group != nil && j.Group.Spec.PriorityClassName != "" {
		if value, ok := c.priorities[j.Group.Spec.PriorityClassName]; ok {
			j.groupPriority = &value
		}
	}
}

// enqueue lets the job count in the queue that it names, else in the default queue.
func (c *Cluster) enqueue(j *JobInfo) {
	q := c.Queues[j.QueueName]
	if q == nil {
		q = c.Queues[c.DefaultQueue]
	}
	if q == j.Queue {
		return
	}
	if old := j.Queue; old != nil {
		old.Allocated.Sub(j.Allocated)
		old.Releasing.Sub(j.Releasing)
		old.Requested.Sub(j.Requested)
		old.count(j.counted, -1)
		delete(old.Jobs, j.ID)
	}
	if j.Queue = q; q != nil {
		q.Allocated.Add(j.Allocated)
		q.Releasing.Add(j.Releasing)
		q.Requested.Add(j.Requested)
		q.count(j.counted, +1)
		q.Jobs[j.ID] = j
	}
	c.markDirty(j)
}

// requeue asks every job again where it counts, after a queue came or went.
func (c *Cluster) requeue() {
	for _, j := range c.SortedJobs() {
		c.enqueue(j)
	}
}

// QueueFound tells whether the queue that the job names exists.
func (j *JobInfo) QueueFound() bool { return j.Queue != nil && j.Queue.ID == j.QueueName }

// orphanedGroup returns the UID of the group of which the job collects former members, else "".
func (j *JobInfo) orphanedGroup() types.UID {
	rest, ok := strings.CutPrefix(string(j.ID), "former/")
	if !ok {
		return ""
	}
	uid, _, _ := strings.Cut(rest, "/")
	return types.UID(uid)
}

// shadowKey is what a shadow with the member t may be called: its owner, else the pod itself.
func shadowKey(t *TaskInfo) string {
	if owner := metav1.GetControllerOf(t.Pod); owner != nil {
		return t.Pod.Namespace + "/" + owner.Name
	}
	return t.Key
}

// updateShadow derives what a PodGroup would say from the members, in whatever order they came.
func (j *JobInfo) updateShadow() {
	j.MinMember, j.Created, j.Key = 1, 0, ""
	for _, t := range j.Tasks {
		if key := shadowKey(t); j.Key == "" || key < j.Key {
			j.Key = key
		}
		if j.orphanedGroup() == "" {
			j.MinMember = max(j.MinMember, shadowMinMember(t.Pod))
		}
		if j.Created == 0 || t.Created < j.Created {
			j.Created = t.Created
		}
	}
}
