package schedtest

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

// Events between two cycles. Names are those of the rows.

// Wait advances the clock. It also advances by one second for each created object and before each cycle.
func (c *Cluster) Wait(d time.Duration) { c.clock.SetTime(c.clock.Now().Add(d)) }

// WaitUntilDue advances the clock to the time at which the last session requested the next one.
func (c *Cluster) WaitUntilDue() {
	if c.last != nil && c.last.wake.After(c.clock.Now()) {
		c.clock.SetTime(c.last.wake)
	}
}

// ConfirmBinds makes the API server show binds: of the named pods, or all that are in flight.
func (c *Cluster) ConfirmBinds(pods ...string) {
	c.t.Helper()
	for _, b := range c.takeInFlight("ConfirmBinds", pods) {
		c.edit(b.Pod, func(p *v1.Pod) {
			p.Spec.NodeName = b.Node
			p.Annotations[v1alpha1.AnnotationQueue] = b.queue
			p.Annotations[v1alpha1.AnnotationPodGroupUID] = b.groupUID
		})
	}
}

// FailBinds makes binds fail: of the named pods, or all that are in flight.
func (c *Cluster) FailBinds(pods ...string) {
	c.t.Helper()
	for _, b := range c.takeInFlight("FailBinds", pods) {
		c.enqueue("bind "+string(b.uid), func(m *model.Cluster) { m.Ledger().BindFailed(b.uid, "why") })
	}
}

// takeInFlight removes binds from the list of those in flight.
func (c *Cluster) takeInFlight(what string, pods []string) []Bind {
	c.t.Helper()
	var taken, left []Bind
	for _, b := range c.inFlight {
		if len(pods) == 0 || slices.Contains(pods, b.Pod) {
			taken = append(taken, b)
		} else {
			left = append(left, b)
		}
	}
	if len(taken) < len(pods) {
		c.t.Fatalf("%s(%q): not all of these binds are in flight", what, pods)
	}
	c.inFlight = left
	return taken
}

// EvictionsInFlight returns the pods whose eviction is in flight.
func (c *Cluster) EvictionsInFlight() []string { return slices.Clone(c.evictionsInFlight) }

// CreateAgain creates deleted pods again under the same names, as controllers do.
func (c *Cluster) CreateAgain(pods ...string) {
	c.t.Helper()
	for _, name := range pods {
		c.createAgain(c.deletedPods[name], name)
	}
}

// FinishEvictions deletes evicted pods: the named ones, or all.
func (c *Cluster) FinishEvictions(pods ...string) {
	c.t.Helper()
	c.Delete(c.takeEvictions("FinishEvictions", pods)...)
}

// FailEvictions makes evictions fail: of the named pods, or all.
func (c *Cluster) FailEvictions(pods ...string) {
	c.t.Helper()
	for _, name := range c.takeEvictions("FailEvictions", pods) {
		id := api.TaskID(c.uids[name])
		c.enqueue("eviction "+string(id), func(m *model.Cluster) { m.Ledger().EvictionFailed(id) })
	}
}

// BlockEviction blocks the eviction of pods, as after an eviction that failed.
func (c *Cluster) BlockEviction(pods ...string) { c.t.Helper(); c.setEvictionBlocked(true, pods) }

// AllowEviction allows the eviction of pods again.
func (c *Cluster) AllowEviction(pods ...string) { c.t.Helper(); c.setEvictionBlocked(false, pods) }

// setEvictionBlocked ignores pods that are deleted meanwhile.
func (c *Cluster) setEvictionBlocked(blocked bool, pods []string) {
	for _, name := range pods {
		id := api.TaskID(c.uids[name])
		c.enqueue("protection "+string(id), func(m *model.Cluster) { m.Ledger().SetEvictionBlocked(id, blocked) })
	}
}

// takeEvictions removes pods from the list of evictions in flight.
func (c *Cluster) takeEvictions(what string, pods []string) []string {
	c.t.Helper()
	if len(pods) == 0 {
		pods = slices.Clone(c.evictionsInFlight)
	}
	for _, name := range pods {
		at := slices.Index(c.evictionsInFlight, name)
		if at < 0 {
			c.t.Fatalf("%s(%q): it is not being evicted", what, name)
		}
		c.evictionsInFlight = slices.Delete(c.evictionsInFlight, at, at+1)
	}
	return pods
}

// Start sets the phase of bound pods to Running: the named ones, or all.
func (c *Cluster) Start(pods ...string) {
	c.t.Helper()
	c.phase(v1.PodRunning, v1.PodPending, pods)
}

// Succeed sets the phase of pods to Succeeded: the named ones, or all that run.
func (c *Cluster) Succeed(pods ...string) {
	c.t.Helper()
	c.phase(v1.PodSucceeded, v1.PodRunning, pods)
}

// Fail sets the phase of pods to Failed: the named ones, or all that run.
func (c *Cluster) Fail(pods ...string) {
	c.t.Helper()
	c.phase(v1.PodFailed, v1.PodRunning, pods)
}

func (c *Cluster) phase(to, from v1.PodPhase, pods []string) {
	c.t.Helper()
	if len(pods) == 0 {
		for _, p := range c.sortedPods() {
			if p.Spec.NodeName != "" && p.Status.Phase == from {
				pods = append(pods, c.names[string(p.UID)])
			}
		}
	}
	for _, name := range pods {
		c.edit(name, inPhase(to))
	}
}

// Release starts the deletion of pods; they hold their resources until Delete.
func (c *Cluster) Release(pods ...string) { c.Ending(0, pods...) }

// Ending starts the deletion of pods with a grace period.
func (c *Cluster) Ending(grace time.Duration, pods ...string) {
	c.t.Helper()
	for _, name := range pods {
		c.edit(name, func(p *v1.Pod) {
			end := metav1.NewTime(c.clock.Now().Add(grace))
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &end, ptr.To(int64(grace/time.Second))
		})
	}
}

// Ungate removes the scheduling gates of pods.
func (c *Cluster) Ungate(pods ...string) {
	c.t.Helper()
	for _, name := range pods {
		c.edit(name, func(p *v1.Pod) { p.Spec.SchedulingGates = nil })
	}
}

// Relabel sets a label of a pod; an empty value removes it.
func (c *Cluster) Relabel(pod, key, value string) {
	c.t.Helper()
	c.edit(pod, func(p *v1.Pod) {
		if p.Labels[key] = value; value == "" {
			delete(p.Labels, key)
		}
	})
}

// Delete removes pods. A bind of theirs that is in flight gets no result.
func (c *Cluster) Delete(pods ...string) {
	c.t.Helper()
	for _, name := range pods {
		p := c.pod(name)
		delete(c.pods, p.UID)
		c.deletedPods[name] = p
		c.evictionsInFlight = slices.DeleteFunc(c.evictionsInFlight, func(pod string) bool { return pod == name })
		c.inFlight = slices.DeleteFunc(c.inFlight, func(b Bind) bool { return b.Pod == name })
		c.enqueue("pod "+string(p.UID), func(m *model.Cluster) { m.Events().DeletePod(p.UID) })
	}
}

// Recreate deletes pods and creates them again under the same names, as controllers do.
func (c *Cluster) Recreate(pods ...string) {
	c.t.Helper()
	for _, name := range pods {
		p := c.pod(name)
		c.Delete(name)
		c.createAgain(p, name)
	}
}

func (c *Cluster) createAgain(former *v1.Pod, name string) {
	p := former.DeepCopy()
	p.ObjectMeta = c.meta(former.Namespace, former.Name)
	p.Labels, p.OwnerReferences = former.Labels, former.OwnerReferences
	p.Spec.NodeName, p.Status = "", v1.PodStatus{Phase: v1.PodPending}
	c.name(p, name)
	c.setPod(p)
}

// DeleteGroup removes a PodGroup; its pods stay.
func (c *Cluster) DeleteGroup(name string) {
	c.t.Helper()
	g := c.group(name)
	key := g.Namespace + "/" + g.Name
	delete(c.groups, key)
	c.enqueue("group "+string(g.UID), func(m *model.Cluster) { m.Events().DeletePodGroup(key, g.UID) })
}

// DeleteNode removes a node; its pods stay.
func (c *Cluster) DeleteNode(name string) {
	c.t.Helper()
	if c.nodes[name] == nil {
		c.t.Fatalf("DeleteNode(%q): no such node", name)
	}
	delete(c.nodes, name)
	c.enqueue("node "+name, func(m *model.Cluster) { m.Events().DeleteNode(name) })
}

// DeleteQueue removes a queue; its groups stay.
func (c *Cluster) DeleteQueue(name string) {
	c.t.Helper()
	if c.queues[name] == nil {
		c.t.Fatalf("DeleteQueue(%q): no such queue", name)
	}
	delete(c.queues, name)
	c.enqueue("queue "+name, func(m *model.Cluster) { m.Events().DeleteQueue(name) })
}

// EditNode changes a node.
func (c *Cluster) EditNode(name string, change func(*v1.Node)) {
	c.t.Helper()
	old := c.nodes[name]
	if old == nil {
		c.t.Fatalf("EditNode(%q): no such node", name)
	}
	n := old.DeepCopy()
	change(n)
	c.setNode(n)
}

// EditQueue changes a queue.
func (c *Cluster) EditQueue(name string, change func(*v1alpha1.Queue)) {
	c.t.Helper()
	old := c.queues[name]
	if old == nil {
		c.t.Fatalf("EditQueue(%q): no such queue", name)
	}
	q := old.DeepCopy()
	change(q)
	c.setQueue(q)
}

func (c *Cluster) edit(pod string, change func(*v1.Pod)) {
	c.t.Helper()
	p := c.pod(pod).DeepCopy()
	change(p)
	c.setPod(p)
}

func (c *Cluster) pod(name string) *v1.Pod {
	c.t.Helper()
	p := c.pods[c.uids[name]]
	if p == nil {
		c.t.Fatalf("there is no pod %q", name)
	}
	return p
}

func (c *Cluster) group(name string) *v1alpha1.PodGroup {
	c.t.Helper()
	for key, g := range c.groups {
		if c.names[key] == name {
			return g
		}
	}
	c.t.Fatalf("there is no group %q", name)
	return nil
}

func (c *Cluster) sortedPods() []*v1.Pod {
	pods := make([]*v1.Pod, 0, len(c.pods))
	for _, p := range c.pods {
		pods = append(pods, p)
	}
	slices.SortFunc(pods, func(a, b *v1.Pod) int {
		return api.CompareAge(a.CreationTimestamp.UnixNano(), b.CreationTimestamp.UnixNano(), a.Name, b.Name)
	})
	return pods
}

// FinishEvictionsAndRecreate deletes all evicted pods and creates them again under the same names, as controllers do.
func FinishEvictionsAndRecreate(c *Cluster) {
	for _, name := range c.EvictionsInFlight() {
		c.FinishEvictions(name)
		c.CreateAgain(name)
	}
}
