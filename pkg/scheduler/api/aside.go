package api

// Aside is room that a session keeps from all others for a job. It is never more than there is, and no
// task holds it: queues and jobs have as little as before.
type Aside struct {
	nodes []asidePart
	queue *QueueInfo
	cap   Resource
}

type asidePart struct {
	node   *NodeInfo
	amount Resource
}

// SetAside keeps for the tasks of one job as much as there is, or is being released, of the room
// that they would take on their nodes; and of what the caps of its queue still allow, as much as
// they ask for. GiveBack undoes it.
func (c *Cluster) SetAside(queue *QueueInfo, places []Decision) *Aside {
	a := &Aside{queue: queue}
	var request Resource
	for _, p := range places {
		amount := atMost(p.Task.Request, p.Node.Room(p.Task.Priority, Future))
		a.nodes = append(a.nodes, asidePart{p.Node, amount})
		p.Node.Aside.Add(amount)
		c.setAside(p.Node)
		request.Add(p.Task.Request)
	}
	left := a.queue.Capability.Minus(a.queue.Allocated).Minus(a.queue.Aside)
	a.cap = atMost(request, left[:len(a.queue.Capability)])
	a.queue.Aside.Add(a.cap)
	return a
}

// GiveBack ends what SetAside began.
func (c *Cluster) GiveBack(a *Aside) {
	for _, part := range a.nodes {
		part.node.Aside.Sub(part.amount)
		c.setAside(part.node)
	}
	a.queue.Aside.Sub(a.cap)
}

// setAside tells that the room of a node has changed.
func (c *Cluster) setAside(n *NodeInfo) {
	c.generation++
	c.touch(n)
}

// atMost is as much of request as there is.
func atMost(request, there Resource) Resource {
	part := request.Clone()
	for d := range part {
		part[d] = min(part[d], max(there.At(d), 0))
	}
	return part
}
