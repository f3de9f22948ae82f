package api

import (
	"fmt"
	"slices"
	"strings"
)

// Dump writes the whole model as text: one line per queue, node, job, task, and so on, in the order of
// their names. Two models that no session could tell apart have equal dumps, whatever the order
// of events was, provided that both are settled. It serves tests and debugging; no format is
// promised.
func (c *Cluster) Dump() string {
	var b strings.Builder
	for _, id := range sortedKeys(c.Queues) {
		c.dumpQueue(&b, c.Queues[id])
	}
	for _, name := range sortedKeys(c.nodes) {
		c.dumpNode(&b, c.nodes[name])
	}
	for _, id := range sortedKeys(c.Jobs) {
		c.dumpJob(&b, c.Jobs[id])
	}
	classes := c.namedClasses()
	for _, id := range sortedKeys(c.Tasks) {
		c.dumpTask(&b, c.Tasks[id], classes)
	}
	c.dumpRest(&b)
	return b.String()
}

// dumpRest writes what has no accounts.
func (c *Cluster) dumpRest(b *strings.Builder) {
	for _, name := range sortedKeys(c.namespaces) {
		ns := c.namespaces[name]
		fmt.Fprintf(b, "namespace %s terminating=%t labels=%q\n", name, ns.terminating, ns.labels.String())
	}
	for _, name := range sortedKeys(c.priorities) {
		fmt.Fprintf(b, "priority class %s value=%d\n", name, c.priorities[name])
	}
	for _, namespace := range sortedKeys(c.budgets) {
		for _, name := range sortedKeys(c.budgets[namespace]) {
			of := c.budgets[namespace][name]
			fmt.Fprintf(b, "budget %s/%s selector=%q allowed=%d unseen=%d\n", namespace, name, of.selector.String(), of.allowed, of.unconfirmed)
		}
	}
}

func (c *Cluster) dumpQueue(b *strings.Builder, q *QueueInfo) {
	fmt.Fprintf(b, "queue %s weight=%d reclaimable=%t created=%d capability=%s guarantee=%s allocated=%s releasing=%s requested=%s aside=%s groups=%v jobs=%s\n",
		q.ID, q.Weight, q.Reclaimable, q.Created, c.limits(q.Capability), c.amounts(q.Guarantee),
		c.amounts(q.Allocated), c.amounts(q.Releasing), c.amounts(q.Requested), c.amounts(q.Reserved), q.Groups, sortedKeys(q.Jobs))
}

func (c *Cluster) dumpNode(b *strings.Builder, n *NodeInfo) {
	waiting := make([]string, 0, len(n.nominated))
	for _, t := range n.nominated {
		waiting = append(waiting, string(t.ID))
	}
	slices.Sort(waiting)
	fmt.Fprintf(b, "node %s exists=%t ready=%t allocatable=%s idle=%s releasing=%s pipelined=%s aside=%s outside=%s members=%s tasks=%s nominated=%s\n",
		n.Name, n.Exists(), n.Ready(), c.amounts(n.Allocatable), c.amounts(n.Idle), c.amounts(n.Releasing),
		c.amounts(n.Pipelined), c.amounts(n.Reserved), c.amounts(n.Foreign), c.amounts(n.Members), sortedKeys(n.Tasks), waiting)
}

func (c *Cluster) dumpJob(b *strings.Builder, j *JobInfo) {
	queue := QueueID("-")
	if j.Queue != nil {
		queue = j.Queue.ID
	}
	ids := make([]TaskID, 0, len(j.Tasks))
	for _, t := range j.Tasks {
		ids = append(ids, t.ID)
	}
	slices.Sort(ids)
	fmt.Fprintf(b, "job %s key=%s group=%s/%s queue=%s in=%s min=%d resources=%s priority=%d created=%d counts=%d gated=%d lost=%d allocated=%s releasing=%s requested=%s tasks=%s\n",
		j.ID, j.Key, j.GroupName, j.GroupUID(), j.QueueName, queue, j.MinMember, c.amounts(j.MinResources),
		j.Priority, j.Created, j.counts, j.gated, j.lost, c.amounts(j.Allocated), c.amounts(j.Releasing), c.amounts(j.Requested), ids)
}

func (c *Cluster) dumpTask(b *strings.Builder, t *TaskInfo, classes map[*EquivalenceClass]TaskID) {
	job, node := JobID("-"), "-"
	if t.Job != nil {
		job = t.Job.ID
	}
	if t.Node != nil {
		node = t.Node.Name
	}
	flight := "-"
	if t.inFlight != nil {
		flight = string(t.inFlight.Queue) + "/" + string(t.inFlight.GroupUID)
	}
	class := c.ClassOf(t)
	fmt.Fprintf(b, "task %s %s %s node=%s job=%s priority=%d gated=%t leaving=%t created=%d request=%s flight=%s class=%s social=%t together=%q\n",
		t.ID, t.Key, t.Status, node, job, t.Priority, t.Gated, t.evicting, t.Created, c.amounts(t.Request), flight, classes[class], class.AffectedByPods(), t.Signature.SelfAffinityKey())
}

// namedClasses names every class after its first task, because keys of classes depend on the
// order of events.
func (c *Cluster) namedClasses() map[*EquivalenceClass]TaskID {
	names := map[*EquivalenceClass]TaskID{}
	for _, id := range sortedKeys(c.Tasks) {
		class := c.ClassOf(c.Tasks[id])
		if _, named := names[class]; !named {
			names[class] = id
		}
	}
	return names
}

// amounts writes a vector exactly, dimensions by name, zeros left out.
func (c *Cluster) amounts(r Resource) string {
	parts := make([]string, 0, len(r))
	for i, n := range r {
		if n != 0 {
			parts = append(parts, fmt.Sprintf("%s:%d", c.Dims.Name(i), n))
		}
	}
	slices.Sort(parts)
	return "{" + strings.Join(parts, " ") + "}"
}

// limits writes caps: unlimited dimensions left out, caps of zero not.
func (c *Cluster) limits(r Resource) string {
	parts := make([]string, 0, len(r))
	for i, n := range r {
		if n != Unlimited {
			parts = append(parts, fmt.Sprintf("%s:%d", c.Dims.Name(i), n))
		}
	}
	slices.Sort(parts)
	return "{" + strings.Join(parts, " ") + "}"
}
