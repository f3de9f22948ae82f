// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package schedtest

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

// Results of binds and evictions, and deletions of pods, which end them. Names are those of the rows.

// ConfirmBinds makes the API server show binds: of the named pods, or all that are in flight.
func (s *Scenario) ConfirmBinds(pods ...string) {
	s.t.Helper()
	for _, b := range s.takeInFlight("ConfirmBinds", pods) {
		s.edit(b.Pod, func(p *v1.Pod) {
			p.Spec.NodeName = b.Node
			p.Annotations[v1alpha1.AnnotationQueue] = b.queue
			p.Annotations[v1alpha1.AnnotationPodGroupUID] = b.groupUID
			scheduled := v1.PodCondition{Type: v1.PodScheduled, Status: v1.ConditionTrue, LastTransitionTime: metav1.NewTime(s.clock.Now())}
			p.Status.Conditions = append(p.Status.Conditions, scheduled)
		})
	}
}

// FailBinds makes binds fail: of the named pods, or all that are in flight.
func (s *Scenario) FailBinds(pods ...string) {
	s.t.Helper()
	for _, b := range s.takeInFlight("FailBinds", pods) {
		s.enqueue("bind "+string(b.uid), func(m *model.Cluster) { m.Ledger().BindFailed(b.uid, "why") })
	}
}

// takeInFlight removes binds from the list of those in flight.
func (s *Scenario) takeInFlight(what string, pods []string) []Bind {
	s.t.Helper()
	var taken, left []Bind
	for _, b := range s.inFlight {
		if len(pods) == 0 || slices.Contains(pods, b.Pod) {
			taken = append(taken, b)
		} else {
			left = append(left, b)
		}
	}
	if len(taken) < len(pods) {
		s.t.Fatalf("%s(%q): not all of these binds are in flight", what, pods)
	}
	s.inFlight = left
	return taken
}

// InFlight returns the names of pods whose bind has no result yet, in the order of decisions.
func (s *Scenario) InFlight() []string {
	names := make([]string, len(s.inFlight))
	for i, b := range s.inFlight {
		names[i] = b.Pod
	}
	return names
}

// EvictionsInFlight returns the pods whose eviction is in flight.
func (s *Scenario) EvictionsInFlight() []string { return slices.Clone(s.evictionsInFlight) }

// CreateAgain creates deleted pods again under the same names, as controllers do.
func (s *Scenario) CreateAgain(pods ...string) {
	s.t.Helper()
	for _, name := range pods {
		s.createAgain(s.deletedPods[name], name)
	}
}

// FinishEvictions deletes evicted pods: the named ones, or all.
func (s *Scenario) FinishEvictions(pods ...string) {
	s.t.Helper()
	s.Delete(s.takeEvictions("FinishEvictions", pods)...)
}

// FailEvictions makes evictions fail: of the named pods, or all.
func (s *Scenario) FailEvictions(pods ...string) {
	s.t.Helper()
	for _, name := range s.takeEvictions("FailEvictions", pods) {
		id := api.TaskID(s.uids[name])
		s.enqueue("eviction "+string(id), func(m *model.Cluster) { m.Ledger().EvictionFailed(id) })
	}
}

// BlockEviction blocks the eviction of pods, as after an eviction that failed.
func (s *Scenario) BlockEviction(pods ...string) { s.t.Helper(); s.setEvictionBlocked(true, pods) }

// AllowEviction allows the eviction of pods again.
func (s *Scenario) AllowEviction(pods ...string) { s.t.Helper(); s.setEvictionBlocked(false, pods) }

// setEvictionBlocked ignores pods that are deleted meanwhile.
func (s *Scenario) setEvictionBlocked(blocked bool, pods []string) {
	for _, name := range pods {
		id := api.TaskID(s.uids[name])
		s.enqueue("protection "+string(id), func(m *model.Cluster) { m.Ledger().SetEvictionBlocked(id, blocked) })
	}
}

// takeEvictions removes pods from the list of evictions in flight.
func (s *Scenario) takeEvictions(what string, pods []string) []string {
	s.t.Helper()
	if len(pods) == 0 {
		pods = slices.Clone(s.evictionsInFlight)
	}
	for _, name := range pods {
		at := slices.Index(s.evictionsInFlight, name)
		if at < 0 {
			s.t.Fatalf("%s(%q): it is not being evicted", what, name)
		}
		s.evictionsInFlight = slices.Delete(s.evictionsInFlight, at, at+1)
	}
	return pods
}

// Delete removes pods. A bind of theirs that is in flight gets no result.
func (s *Scenario) Delete(pods ...string) {
	s.t.Helper()
	for _, name := range pods {
		p := s.pod(name)
		delete(s.pods, p.UID)
		s.deletedPods[name] = p
		s.evictionsInFlight = slices.DeleteFunc(s.evictionsInFlight, func(pod string) bool { return pod == name })
		s.inFlight = slices.DeleteFunc(s.inFlight, func(b Bind) bool { return b.Pod == name })
		s.enqueue("pod "+string(p.UID), func(m *model.Cluster) { m.Events().DeletePod(p.UID) })
	}
}

// Recreate deletes pods and creates them again under the same names, as controllers do.
func (s *Scenario) Recreate(pods ...string) {
	s.t.Helper()
	for _, name := range pods {
		p := s.pod(name)
		s.Delete(name)
		s.createAgain(p, name)
	}
}

func (s *Scenario) createAgain(former *v1.Pod, name string) {
	p := former.DeepCopy()
	p.ObjectMeta = s.meta(former.Namespace, former.Name)
	p.Labels, p.OwnerReferences = former.Labels, former.OwnerReferences
	for _, key := range append(api.TopologyAnnotations(),
		v1alpha1.AnnotationGroupName, v1alpha1.AnnotationGroupKey, v1alpha1.AnnotationMinMember, api.AnnotationKAIGroup, api.VolcanoTaskSpec) {
		if value, annotated := former.Annotations[key]; annotated {
			p.Annotations[key] = value
		}
	}
	p.Spec.NodeName, p.Status = "", v1.PodStatus{Phase: v1.PodPending}
	s.name(p, name)
	s.setPod(p)
}

// FinishEvictionsAndRecreate deletes all evicted pods and creates them again under the same names, as controllers do.
func FinishEvictionsAndRecreate(s *Scenario) {
	for _, name := range s.EvictionsInFlight() {
		s.FinishEvictions(name)
		s.CreateAgain(name)
	}
}
