// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

// Dump writes the whole model as text: one line per queue, node, job, task, and so on, in the order of
// their names. Two models between which no session could distinguish have equal dumps, whatever the order
// of events was, if Recompute was called after the last event. It serves tests and debugging; the format may change.
func Dump(c *model.Cluster) string {
	d := &dumper{c, model.Inspect(c)}
	var b strings.Builder
	for _, id := range sortedKeys(c.Queues()) {
		d.dumpQueue(&b, c.Queues()[id])
	}
	for _, name := range sortedKeys(d.i.Nodes) {
		d.dumpNode(&b, d.i.Nodes[name])
	}
	for _, id := range sortedKeys(c.Jobs()) {
		d.dumpJob(&b, c.Jobs()[id])
	}
	classes := d.namedClasses()
	for _, id := range sortedKeys(c.Tasks()) {
		d.dumpTask(&b, c.Tasks()[id], classes)
	}
	d.dumpRest(&b)
	return b.String()
}

type dumper struct {
	c *model.Cluster
	i model.Inspection
}

// dumpRest writes what has no accounts.
func (d *dumper) dumpRest(b *strings.Builder) {
	for _, name := range sortedKeys(d.i.Namespaces) {
		ns := d.i.Namespaces[name]
		fmt.Fprintf(b, "namespace %s terminating=%t labels=%q\n", name, ns.Terminating, ns.Labels.String())
	}
	for _, name := range sortedKeys(d.i.PriorityClasses) {
		fmt.Fprintf(b, "priority class %s value=%d\n", name, d.i.PriorityClasses[name])
	}
	for _, namespace := range sortedKeys(d.i.Budgets) {
		for _, name := range sortedKeys(d.i.Budgets[namespace]) {
			budget := d.i.Budgets[namespace][name]
			fmt.Fprintf(b, "budget %s/%s selector=%q allowed=%d unconfirmed=%d\n", namespace, name, budget.Selector.String(), budget.Allowed, budget.Unconfirmed)
		}
	}
}

func (d *dumper) dumpQueue(b *strings.Builder, q *api.QueueInfo) {
	fmt.Fprintf(b, "queue %s weight=%d reclaimable=%t created=%d run=%s/%s capability=%s guarantee=%s allocated=%s releasing=%s requested=%s reserved=%s groups=%v jobs=%s\n",
		q.ID, q.Weight, q.Reclaimable, q.Created, q.DefaultRun, q.MaximumRun, limits(d.c, q.Capability), amounts(d.c, q.Guarantee),
		amounts(d.c, q.Allocated), amounts(d.c, q.Releasing), amounts(d.c, q.Requested), amounts(d.c, q.Reserved), q.Groups, sortedKeys(q.Jobs))
}

func (d *dumper) dumpNode(b *strings.Builder, n *api.NodeInfo) {
	waiting := make([]string, 0, len(n.Nominated))
	for _, t := range n.Nominated {
		waiting = append(waiting, string(t.ID))
	}
	slices.Sort(waiting)
	fmt.Fprintf(b, "node %s exists=%t ready=%t unavailable=%d allocatable=%s idle=%s releasing=%s pipelined=%s reserved=%s foreign=%s members=%s tasks=%s nominated=%s\n",
		n.Name, n.Exists(), n.Ready(), n.UnavailableFrom, amounts(d.c, n.Allocatable), amounts(d.c, n.Idle), amounts(d.c, n.Releasing),
		amounts(d.c, n.Pipelined), amounts(d.c, n.Reserved), amounts(d.c, n.Foreign), amounts(d.c, n.Members), sortedKeys(n.Tasks), waiting)
}

func (d *dumper) dumpJob(b *strings.Builder, j *api.JobInfo) {
	queue := api.QueueID("-")
	if j.Queue != nil {
		queue = j.Queue.ID
	}
	ids := make([]api.TaskID, 0, len(j.Tasks))
	for _, t := range j.Tasks {
		ids = append(ids, t.ID)
	}
	slices.Sort(ids)
	fmt.Fprintf(b, "job %s key=%s group=%s/%s queue=%s other=%s in=%s min=%d resources=%s priority=%d created=%d counts=%d gated=%d lost=%d disrupted=%d allocated=%s releasing=%s requested=%s run=%v invalid=%q started=%d tasks=%s\n",
		j.ID, j.Key, j.GroupName, j.GroupUID(), j.QueueName, j.Tracking.OtherQueue, queue, j.MinMember, amounts(d.c, j.MinResources),
		j.Priority, j.Created, j.Tracking.Counts, j.Tracking.Gated, j.Tracking.Lost, j.Tracking.Disrupted, amounts(d.c, j.Allocated), amounts(d.c, j.Releasing), amounts(d.c, j.Requested),
		j.RunTime, j.Tracking.InvalidRunTime, j.Started, ids)
}

func (d *dumper) dumpTask(b *strings.Builder, t *api.TaskInfo, classes map[*api.EquivalenceClass]api.TaskID) {
	job, node := api.JobID("-"), "-"
	if t.Job != nil {
		job = t.Job.ID
	}
	if t.Node != nil {
		node = t.Node.Name
	}
	if s := t.SubGroup(); s != nil {
		job += api.JobID("/" + s.Name)
	}
	bind := "-"
	if t.Tracking.Bind != nil {
		bind = string(t.Tracking.Bind.Queue) + "/" + string(t.Tracking.Bind.GroupUID)
	}
	class := d.c.ClassOf(t)
	fmt.Fprintf(b, "task %s %s %s node=%s job=%s priority=%d gated=%t evicting=%t created=%d started=%d deadline=%d request=%s bind=%s class=%s affected=%t selfAffinity=%q\n",
		t.ID, t.Key, t.Status, node, job, t.Priority, t.Gated, t.Tracking.Evicting, t.Created, t.Tracking.Started, t.Deadline, amounts(d.c, t.Request), bind, classes[class], class.AffectedByPods(), t.Signature.SelfAffinityKey())
}

// namedClasses names every class after its first task, because keys of classes depend on the
// order of events.
func (d *dumper) namedClasses() map[*api.EquivalenceClass]api.TaskID {
	names := map[*api.EquivalenceClass]api.TaskID{}
	for _, id := range sortedKeys(d.c.Tasks()) {
		class := d.c.ClassOf(d.c.Tasks()[id])
		if _, named := names[class]; !named {
			names[class] = id
		}
	}
	return names
}

// amounts writes a vector exactly, dimensions by name, zeros left out.
func amounts(c *model.Cluster, r api.Resource) string {
	parts := make([]string, 0, len(r))
	for i, n := range r {
		if n != 0 {
			parts = append(parts, fmt.Sprintf("%s:%d", c.Dims().Name(i), n))
		}
	}
	slices.Sort(parts)
	return "{" + strings.Join(parts, " ") + "}"
}

// limits writes caps: unlimited dimensions left out, caps of zero not.
func limits(c *model.Cluster, r api.Resource) string {
	parts := make([]string, 0, len(r))
	for i, n := range r {
		if n != api.Unlimited {
			parts = append(parts, fmt.Sprintf("%s:%d", c.Dims().Name(i), n))
		}
	}
	slices.Sort(parts)
	return "{" + strings.Join(parts, " ") + "}"
}
