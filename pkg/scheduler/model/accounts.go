// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package model

import "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"

// attach adds t to the sums of its node, its job and its queue; detach subtracts it. Every change of a task
// is bracketed: detach, change, attach.
func (c *Cluster) attach(t *api.TaskInfo) { c.account(t, +1) }
func (c *Cluster) detach(t *api.TaskInfo) { c.account(t, -1) }

func (c *Cluster) account(t *api.TaskInfo, sign int32) {
	c.generations.Model++
	if t.Node != nil {
		c.generations.Placement++
		accountNode(t.Node, t, sign)
		c.nodes.touch(t.Node)
		if t.Status == api.Releasing {
			c.evictions.trackReleasing(t, sign > 0)
		}
	}
	c.budgets.countUnconfirmed(t, sign)
	if t.Job == nil {
		if t.Node != nil {
			c.generations.Foreign++
		}
		return
	}
	accountJob(t.Job, t, sign)
	t.Job.Generation = c.generations.Model
	c.jobs.markChanged(t.Job)
	if t.Holds() || t.Status == api.Pipelined || t.Waiting() {
		before := t.Signature.HasMembers()
		t.Signature.Tracking.Members += int(sign)
		if t.Signature.HasMembers() != before {
			c.generations.Members++
			kind := t.Signature.Tracking.Kind
			if kind.Members += int(sign); kind.Members == 0 || kind.Members == 1 && sign > 0 {
				c.generations.MemberKinds++
			}
		}
	}
}

func (c *Cluster) detachAll(tasks []*api.TaskInfo) {
	for _, t := range tasks {
		c.detach(t)
	}
}

func (c *Cluster) attachAll(tasks []*api.TaskInfo) {
	for _, t := range tasks {
		c.attach(t)
	}
}

// accountNode adds (sign +1) or subtracts (sign −1) t in the sums of its node.
func accountNode(n *api.NodeInfo, t *api.TaskInfo, sign int32) {
	if t.Status.Ended() {
		return
	}
	add, sub := (*api.Resource).Add, (*api.Resource).Sub
	if sign < 0 {
		add, sub = sub, add
	}
	if sign > 0 {
		n.Tasks[t.ID] = t
	} else {
		delete(n.Tasks, t.ID)
	}
	if t.Status == api.Pipelined {
		add(&n.Pipelined, t.Request)
	} else {
		sub(&n.Idle, t.Request)
		switch {
		case t.Job == nil:
			add(&n.Foreign, t.Request)
		case t.Status.Holding():
			add(&n.Members, t.Request)
		}
		if t.Status == api.Releasing && !t.Tracking.Overdue {
			add(&n.Releasing, t.Request)
		}
	}
	if len(t.Signature.Ports) > 0 {
		n.PortTasks = withOrWithout(n.PortTasks, t, sign > 0)
	}
}

func withOrWithout(tasks []*api.TaskInfo, t *api.TaskInfo, with bool) []*api.TaskInfo {
	if with {
		return append(tasks, t)
	}
	for i, other := range tasks {
		if other == t {
			tasks[i] = tasks[len(tasks)-1]
			return tasks[:len(tasks)-1]
		}
	}
	return tasks
}

// accountJob adds (sign +1) or subtracts (sign −1) t in the sums of its job and queue.
func accountJob(j *api.JobInfo, t *api.TaskInfo, sign int32) {
	j.Tracking.Add(t, sign)
	for s := t.SubGroup(); s != nil; s = s.Parent {
		s.Add(t, sign)
	}
	move := (*api.Resource).Add
	if sign < 0 {
		move = (*api.Resource).Sub
	}
	switch {
	case t.Holds(), t.Status == api.Pipelined:
		move(&j.Allocated, t.ShareRequest)
		if j.Queue != nil {
			move(&j.Queue.Allocated, t.ShareRequest)
		}
	case t.Status == api.Releasing && t.Node != nil && t.Node.Exists():
		move(&j.Releasing, t.ShareRequest)
		if j.Queue != nil {
			move(&j.Queue.Releasing, t.ShareRequest)
		}
	case t.Waiting() && j.Unsupported == nil && !j.Owner.Missing():
		move(&j.Requested, t.ShareRequest)
		if j.Queue != nil {
			move(&j.Queue.Requested, t.ShareRequest)
		}
	}
}
