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

// What happens between two cycles. Names are those of the rows.

// Wait lets time pass. One second passes with each object that is created, and before each cycle.
func (c *Cluster) Wait(d time.Duration) { c.clock.SetTime(c.clock.Now().Add(d)) }

// WaitUntilDue lets as much time pass as the last session wanted to have the next one after.
func (c *Cluster) WaitUntilDue() {
	if c.last != nil && c.last.wake.After(c.clock.Now()) {
		c.clock.SetTime(c.last.wake)
	}
}

// Confirm lets the API server show binds: of the named pods, or all that are in flight.
func (c *Cluster) Confirm(pods ...string) {
	c.t.Helper()
	for _, b := range c.answered("Confirm", pods) {
		c.edit(b.Pod, func(p *v1.Pod) {
			p.Spec.NodeName = b.Node
			p.Annotations[v1alpha1.AnnotationQueue] = b.queue
			p.Annotations[v1alpha1.AnnotationPodGroupUID] = b.groupUID
		})
	}
}

// Refuse lets binds fail: of the named pods, or all that are in flight.
func (c *Cluster) Refuse(pods ...string) {
	c.t.Helper()
	for _, b := range c.answered("Refuse", pods) {
		c.tell("bind "+string(b.uid), func(m *model.Cluster) { m.Ledger().BindFailed(b.uid, "why") })
	}
}

// answered takes binds off the list of those in flight.
func (c *Cluster) answered(what string, pods []string) []Bind {
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

// Leaving returns the pods whose eviction is not answered.
func (c *Cluster) Leaving() []string { return slices.Clone(c.leaving) }

// Again creates pods again that are gone, under the same names, as controllers do.
func (c *Cluster) Again(pods ...string) {
	c.t.Helper()
	for _, name := range pods {
		c.reborn(c.orphaned[name], name)
	}
}

// Gone lets pods end that were evicted: the named ones, or all.
func (c *Cluster) Gone(pods ...string) {
	c.t.Helper()
	c.Delete(c.evicted("Gone", pods)...)
}

// Spare lets evictions be refused: of the named pods, or all.
func (c *Cluster) Spare(pods ...string) {
	c.t.Helper()
	for _, name := range c.evicted("Spare", pods) {
		id := api.TaskID(c.uids[name])
		c.tell("eviction "+string(id), func(m *model.Cluster) { m.Ledger().EvictionFailed(id) })
	}
}

// Protect lets pods be left alone, as after an eviction that was refused; Pardon ends that.
func (c *Cluster) Protect(pods ...string) { c.t.Helper(); c.protect(true, pods) }

// Pardon undoes Protect.
func (c *Cluster) Pardon(pods ...string) { c.t.Helper(); c.protect(false, pods) }

// protect does nothing about pods that are gone meanwhile.
func (c *Cluster) protect(protected bool, pods []string) {
	for _, name := range pods {
		id := api.TaskID(c.uids[name])
		c.tell("protection "+string(id), func(m *model.Cluster) { m.Ledger().SetEvictionBlocked(id, protected) })
	}
}

// evicted takes pods off the list of those whose eviction is not answered.
func (c *Cluster) evicted(what string, pods []string) []string {
	c.t.Helper()
	if len(pods) == 0 {
		pods = slices.Clone(c.leaving)
	}
	for _, name := range pods {
		at := slices.Index(c.leaving, name)
		if at < 0 {
			c.t.Fatalf("%s(%q): it is not being evicted", what, name)
		}
		c.leaving = slices.Delete(c.leaving, at, at+1)
	}
	return pods
}

// Start lets pods that have a node run: the named ones, or all.
func (c *Cluster) Start(pods ...string) {
	c.t.Helper()
	c.phase(v1.PodRunning, v1.PodPending, pods)
}

// Succeed lets pods end well: the named ones, or all that run.
func (c *Cluster) Succeed(pods ...string) {
	c.t.Helper()
	c.phase(v1.PodSucceeded, v1.PodRunning, pods)
}

// Fail lets pods end badly: the named ones, or all that run.
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

// Release begins the deletion of pods; they hold their room until Delete.
func (c *Cluster) Release(pods ...string) { c.Ending(0, pods...) }

// Ending lets the API server show that pods are being deleted and should be gone after the grace
// period.
func (c *Cluster) Ending(grace time.Duration, pods ...string) {
	c.t.Helper()
	for _, name := range pods {
		c.edit(name, func(p *v1.Pod) {
			end := metav1.NewTime(c.clock.Now().Add(grace))
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &end, ptr.To(int64(grace/time.Second))
		})
	}
}

// Ungate lifts the scheduling gates of pods.
func (c *Cluster) Ungate(pods ...string) {
	c.t.Helper()
	for _, name := range pods {
		c.edit(name, func(p *v1.Pod) { p.Spec.SchedulingGates = nil })
	}
}

// Relabel changes a label of a pod; an empty value takes it off.
func (c *Cluster) Relabel(pod, key, value string) {
	c.t.Helper()
	c.edit(pod, func(p *v1.Pod) {
		if p.Labels[key] = value; value == "" {
			delete(p.Labels, key)
		}
	})
}

// Delete removes pods for good. A bind of theirs that is in flight will never be answered.
func (c *Cluster) Delete(pods ...string) {
	c.t.Helper()
	for _, name := range pods {
		p := c.pod(name)
		delete(c.pods, p.UID)
		c.orphaned[name] = p
		c.leaving = slices.DeleteFunc(c.leaving, func(leaving string) bool { return leaving == name })
		c.inFlight = slices.DeleteFunc(c.inFlight, func(b Bind) bool { return b.Pod == name })
		c.tell("pod "+string(p.UID), func(m *model.Cluster) { m.Events().DeletePod(p.UID) })
	}
}

// Recreate deletes pods and creates them again under the same names, as controllers do.
func (c *Cluster) Recreate(pods ...string) {
	c.t.Helper()
	for _, name := range pods {
		p := c.pod(name)
		c.Delete(name)
		c.reborn(p, name)
	}
}

func (c *Cluster) reborn(former *v1.Pod, name string) {
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
	c.tell("group "+string(g.UID), func(m *model.Cluster) { m.Events().DeletePodGroup(key, g.UID) })
}

// DeleteNode removes a node; its pods stay.
func (c *Cluster) DeleteNode(name string) {
	c.t.Helper()
	if c.nodes[name] == nil {
		c.t.Fatalf("DeleteNode(%q): no such node", name)
	}
	delete(c.nodes, name)
	c.tell("node "+name, func(m *model.Cluster) { m.Events().DeleteNode(name) })
}

// DeleteQueue removes a queue; its groups stay.
func (c *Cluster) DeleteQueue(name string) {
	c.t.Helper()
	if c.queues[name] == nil {
		c.t.Fatalf("DeleteQueue(%q): no such queue", name)
	}
	delete(c.queues, name)
	c.tell("queue "+name, func(m *model.Cluster) { m.Events().DeleteQueue(name) })
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
