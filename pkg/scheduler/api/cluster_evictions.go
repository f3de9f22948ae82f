package api

// What the model knows of pods that go: decided evictions, those that are refused, and those that take too long.

// Doom records that the eviction of t is on its way: from now on t is Releasing, until Spare or
// the watch settles it.
func (c *Cluster) Doom(t *TaskInfo) {
	c.detach(t)
	t.leaving, t.Status = true, Releasing
	c.attach(t)
}

// Spare ends an eviction that has certainly not taken effect.
func (c *Cluster) Spare(id TaskID) {
	t := c.Tasks[id]
	if t == nil || !t.leaving {
		return
	}
	c.detach(t)
	t.leaving = false
	t.Status = t.statusShown()
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

// Protect sets whether t must not be evicted. When a budget of its changes, it may be evicted again.
func (c *Cluster) Protect(id TaskID, protected bool) {
	t := c.Tasks[id]
	if t == nil || t.protected == protected {
		return
	}
	t.protected = protected
	c.generation++
	if protected {
		c.protected[t] = struct{}{}
	} else {
		delete(c.protected, t)
	}
}

func (c *Cluster) listReleasing(t *TaskInfo, is bool) {
	if is {
		c.releasing[t] = struct{}{}
	} else {
		delete(c.releasing, t)
	}
}
