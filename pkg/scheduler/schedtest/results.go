// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package schedtest

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

// Results of binds and evictions, and deletions of pods, which end them. Names are those of the rows.

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

// InFlight returns the names of pods whose bind has no result yet, in the order of decisions.
func (c *Cluster) InFlight() []string {
	names := make([]string, len(c.inFlight))
	for i, b := range c.inFlight {
		names[i] = b.Pod
	}
	return names
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

// FinishEvictionsAndRecreate deletes all evicted pods and creates them again under the same names, as controllers do.
func FinishEvictionsAndRecreate(c *Cluster) {
	for _, name := range c.EvictionsInFlight() {
		c.FinishEvictions(name)
		c.CreateAgain(name)
	}
}
