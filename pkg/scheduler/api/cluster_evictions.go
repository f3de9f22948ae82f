package api

// What the model knows of pods that go: decided evictions, those that are refused, and those that take too long.

// MarkEvicting records that the eviction of t is on its way: from now on t is Releasing, until Spare or
// the watch settles it.
func (c *Cluster) MarkEvicting(t *TaskInfo) {
	c.detach(t)
	t.evicting, t.Status = true, Releasing
	c.attach(t)
}

// EvictionFailed ends an eviction that has certainly not taken effect.
func (c *Cluster) EvictionFailed(id TaskID) {
	t := c.Tasks[id]
	if t == nil || !t.evicting {
		return
	}
	c.detach(t)
	t.evicting = false
	t.Status = t.observedStatus()
	c.attach(t)
}

// EachReleasing calls visit for all pods on nodes that are being deleted, in no order.
func (c *Cluster) EachReleasing(visit func(*TaskInfo)) {
	for t := range c.releasing {
		visit(t)
	}
}

// SetOverdue sets whether a session counts on the end of t, which is being deleted: what an overdue
// pod holds is no room to come.
func (c *Cluster) SetOverdue(t *TaskInfo, overdue bool) {
	c.detach(t)
	t.overdue = overdue
	c.attach(t)
}

// SetEvictionBlocked sets whether t must not be evicted. When a budget of its changes, it may be evicted again.
func (c *Cluster) SetEvictionBlocked(id TaskID, protected bool) {
	t := c.Tasks[id]
	if t == nil || t.evictionBlocked == protected {
		return
	}
	t.evictionBlocked = protected
	c.generation++
	if protected {
		c.evictionBlocked[t] = struct{}{}
	} else {
		delete(c.evictionBlocked, t)
	}
}

func (c *Cluster) trackReleasing(t *TaskInfo, is bool) {
	if is {
		c.releasing[t] = struct{}{}
	} else {
		delete(c.releasing, t)
	}
}
