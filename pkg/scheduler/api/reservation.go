package api

// Reservation is room that a session keeps from all others for a job. It is never more than there is, and no
// task holds it: queues and jobs have as little as before.
type Reservation struct {
	nodes []reservedPart
	queue *QueueInfo
	cap   Resource
}

type reservedPart struct {
	node   *NodeInfo
	amount Resource
}

// Reserve keeps for the tasks of one job as much as there is, or is being released, of the room
// that they would take on their nodes; and of what the caps of its queue still allow, as much as
// they ask for. GiveBack undoes it.
func (c *Cluster) Reserve(queue *QueueInfo, places []Decision) *Reservation {
	a := &Reservation{queue: queue}
	var request Resource
	for _, p := range places {
		amount := atMost(p.Task.Request, p.Node.Available(p.Task.Priority, Future))
		a.nodes = append(a.nodes, reservedPart{p.Node, amount})
		p.Node.Reserved.Add(amount)
		c.touchReserved(p.Node)
		request.Add(p.Task.Request)
	}
	left := a.queue.Capability.Minus(a.queue.Allocated).Minus(a.queue.Reserved)
	a.cap = atMost(request, left[:len(a.queue.Capability)])
	a.queue.Reserved.Add(a.cap)
	return a
}

// Unreserve ends what SetAside began.
func (c *Cluster) Unreserve(a *Reservation) {
	for _, part := range a.nodes {
		part.node.Reserved.Sub(part.amount)
		c.touchReserved(part.node)
	}
	a.queue.Reserved.Sub(a.cap)
}

// touchReserved tells that the room of a node has changed.
func (c *Cluster) touchReserved(n *NodeInfo) {
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
