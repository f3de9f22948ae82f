// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package nodeindex

import (
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// capacityIndex counts how many tasks nodes could hold that run no members of queues.
//
// A feasible node counts as often as the request of the signature fits in what is allocatable and not used by
// foreign pods. For example, a request of 3 cpu counts twice on a node with 8 cpu of which foreign pods use 1, and
// not at all if they use 6. Members of queues do not matter, because they can be evicted. The counts are made
// signature by signature: nodes that are counted for one signature are counted for another one too, so
// the sum may exceed what fits.
//
// A signature with a self-affinity counts in one topology domain only, the one with the highest count. For example, of
// two racks with nodes for 2 and 3 tasks the count is 3, and not 5. Members that run determine the domain, so the count
// of all domains is used then.
//
// The empty capacity ignores foreign pods as well: what exceeds it cannot run whatever pods end.
type capacityIndex struct {
	feasible *feasibleIndex
	domains  *domainIndex
}

// capacityCount is the count of one signature. It is valid while node objects stand still, and foreign pods
// if they matter.
type capacityCount struct {
	tasks   int64  // on all feasible nodes
	domain  int64  // on those of one topology domain if the signature has a self-affinity, else tasks
	foreign uint64 // ForeignGeneration of the count
	known   bool

	largest api.Resource // of each dimension, on one node; nil if it is not known
}

// left returns how many tasks could run in addition to those that run already.
func (c capacityCount) left(running int64) int64 {
	if running == 0 {
		return c.domain
	}
	return max(c.tasks-running, 0)
}

func (x *capacityIndex) count(signature *api.Signature) capacityCount {
	feasible, foreign := x.feasible.of(signature), x.feasible.cluster.Generations().Foreign
	if c := &feasible.capacity; !c.known || c.foreign != foreign {
		*c = x.sum(signature, &feasible.set, func(n *api.NodeInfo) api.Resource { return n.Foreign })
		c.foreign = foreign
	}
	return feasible.capacity
}

// empty returns the count on nodes without any pods.
func (x *capacityIndex) empty(signature *api.Signature) capacityCount {
	feasible := x.feasible.of(signature)
	if c := &feasible.empty; !c.known {
		*c = x.sum(signature, &feasible.set, func(*api.NodeInfo) api.Resource { return nil })
	}
	return feasible.empty
}

// largestNode returns the most of each dimension that is allocatable on one feasible node.
func (x *capacityIndex) largestNode(signature *api.Signature) api.Resource {
	x.empty(signature)
	feasible := x.feasible.of(signature)
	if feasible.empty.largest == nil {
		largest := make(api.Resource, x.feasible.dims.Len())
		nodes := x.feasible.cluster.Nodes()
		feasible.set.Each(func(i int) {
			if n := nodes[i]; acceptsPods(n) {
				for d := range largest {
					largest[d] = max(largest[d], n.Allocatable.At(d))
				}
			}
		})
		feasible.empty.largest = largest
	}
	return feasible.empty.largest
}

// couldHold reports whether the empty capacity suffices for a number of tasks. The capacity with foreign pods, which is at
// most as large, is mostly known already and suffices for most jobs.
func (x *capacityIndex) couldHold(signature *api.Signature, tasks int64) bool {
	return x.count(signature).domain >= tasks || x.empty(signature).domain >= tasks
}

// sum counts the tasks that fit into a set of nodes besides what is taken there.
func (x *capacityIndex) sum(signature *api.Signature, set *NodeSet, taken func(*api.NodeInfo) api.Resource) capacityCount {
	c := capacityCount{known: true}
	key, domains := signature.SelfAffinityKey(), map[string]int64{}
	nodes := x.feasible.cluster.Nodes()
	set.Each(func(i int) {
		n := nodes[i]
		if !acceptsPods(n) {
			return
		}
		tasks := signature.Request.TimesInRest(n.Allocatable, taken(n))
		c.tasks += tasks
		if key == "" {
			c.domain = c.tasks
		} else if value, labelled := n.Node.Labels[key]; labelled {
			domains[value] += tasks
			c.domain = max(c.domain, domains[value])
		}
	})
	return c
}

// couldFit compares the capacity counts with what the job requests. Members of the job that run where capacity is
// counted use some of it. Members that are being deleted count as started, since they may come back.
//
// For example, a gang of 8 has 2 members that run and 6 that wait, all with one signature. If the capacity
// count is 6, then 4 of the waiting tasks could run, and the gang has 2 + 4 = 6 members: enough for a minimum of 6,
// and not for one of 7.
func (x *capacityIndex) couldFit(j *api.JobInfo) (tasks map[*api.Signature]int64, enough bool) {
	tasks, members := x.fill(j, capacityOfTasks)
	return tasks, members >= int64(j.MinMember)
}

// maxMembers is the number of members that couldFit compares with the minimum, with the empty capacity.
func (x *capacityIndex) maxMembers(j *api.JobInfo) int64 {
	anywhere := j.TopologyLevel == nil && !j.SubGroups.HasConstraint()
	if signature := soleSignature(j.Tasks); anywhere && signature != nil && x.couldHold(signature, int64(len(j.Tasks))) {
		return int64(j.ReadyCount() + j.Count(api.Releasing) + j.Waiting()) // most jobs in a large cluster
	}
	_, members := x.fill(j, emptyCapacity)
	return members
}

// fill counts how many waiting tasks of each signature and how many members of a job could run on nodes with a kind of
// capacity: all nodes, or the best domain of the level that the job requires.
func (x *capacityIndex) fill(j *api.JobInfo, kind sumKind) (tasks map[*api.Signature]int64, members int64) {
	tasks, members = x.fillDomain(j, kind)
	if j.SubGroups.HasConstraint() && !x.holdsSubGroups(j, j.SubGroups, kind) {
		members = min(members, int64(j.MinMember)-1)
	}
	return tasks, members
}

func (x *capacityIndex) fillDomain(j *api.JobInfo, kind sumKind) (tasks map[*api.Signature]int64, members int64) {
	capacity := x.count
	if kind == emptyCapacity {
		capacity = x.empty
	}
	if j.TopologyLevel == nil {
		return x.fillNodes(j, capacity)
	}
	domains := x.domains.get(j.TopologyLevel)
	candidates := domains.All()
	if pinned := domains.OfJob(j); pinned != nil {
		candidates = []*Domain{pinned}
	}
	members = int64(j.ReadyCount() + j.Count(api.Releasing))
	all := members + int64(j.Waiting())
	for _, domain := range candidates {
		there, n := x.fillNodes(j, func(s *api.Signature) capacityCount {
			sum := domains.counts(sumKey{kind: kind, signature: s}).In(domain)
			return capacityCount{tasks: sum, domain: sum}
		})
		if tasks == nil || n > members {
			tasks, members = there, n
		}
		if members == all {
			break
		}
	}
	return tasks, members
}

func (x *capacityIndex) fillNodes(j *api.JobInfo, capacity func(*api.Signature) capacityCount) (tasks map[*api.Signature]int64, members int64) {
	tasks, running := map[*api.Signature]int64{}, map[*api.Signature]int64{}
	for _, t := range j.Tasks {
		switch {
		case t.Waiting():
			tasks[t.Signature]++
		case x.usesCapacity(t):
			running[t.Signature]++
		}
	}
	members = int64(j.ReadyCount() + j.Count(api.Releasing))
	for signature, waiting := range tasks {
		n := min(waiting, capacity(signature).left(running[signature]))
		tasks[signature] = n
		members += n
	}
	return tasks, members
}

// soleSignature returns the signature that all tasks have, or nil.
func soleSignature(tasks []*api.TaskInfo) *api.Signature {
	for _, t := range tasks {
		if t.Signature != tasks[0].Signature {
			return nil
		}
	}
	if len(tasks) == 0 {
		return nil
	}
	return tasks[0].Signature
}

// usesCapacity reports whether the task runs on a node that count includes.
func (x *capacityIndex) usesCapacity(t *api.TaskInfo) bool {
	return !t.Status.Ended() && t.Node != nil && t.Node.Exists() && acceptsPods(t.Node) && x.feasible.nodes(t.Signature).Has(t.Node.Index)
}
