// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/test/capacity"
)

// TestBesideStock is A20: the stock kube-scheduler fills the same nodes at the same time. Neither
// scheduler knows what the other has decided and not bound yet, so that kubelets refuse pods. All
// pods are of ReplicaSets, members of groups too: who is refused comes back.
func TestBesideStock(t *testing.T) {
	t.Parallel()
	const rounds = 2 // what happens in one is a matter of milliseconds
	for name, policy := range map[string]string{"the built-in policy": "", "the policy that evicts": evictingPolicy} {
		t.Run(name, func(t *testing.T) {
			s := newShared(t, policy)
			for range rounds {
				s.next()
				s.create( // each scheduler has enough to fill all nodes
					stockPods("web1", 6), groupPods("a", 4, 4, "q1"),
					stockPods("web2", 6), groupPods("b", 4, 4, "q1"),
					stockPods("web3", 6), groupPods("c", 2, 6, "q1"),
					stockPods("web4", 6), queuePods("plain", 10, "q1"))
				s.awaitFull()
				s.delete("web1", "web2", "web3", "web4")
				s.awaitRunning(map[string]int{"a": 4, "b": 4, "c": 6, "plain": 10})
			}
		})
	}
	t.Run("the stock scheduler binds pods to the resources of victims", func(t *testing.T) {
		s := newShared(t, evictingPolicy)
		for range rounds {
			s.next()
			s.create(queuePods("plain", 16, "q1"))
			s.awaitRunning(map[string]int{"plain": 16})
			s.create(stockPods("web", 24))
			s.awaitFull()
			s.create(groupPods("a", 4, 4, "q2"), groupPods("b", 2, 6, "q2"))
			s.awaitFull()
			s.delete("web")
			s.awaitRunning(map[string]int{"a": 4, "b": 6, "plain": 14}) // as q1 and q2 deserve
		}
	})
}

const (
	sharedNodes = 6
	podsPerNode = 4 // of each
)

// shared is a cluster for 1-cpu pods of both schedulers.
type shared struct {
	*harness
	round int
	sets  []podSet
}

// podSet is a ReplicaSet of 1-cpu pods.
type podSet struct {
	name  string
	count int32
	queue string // empty: the stock scheduler's
	min   int32  // of the group that they are in; 0: none
}

func stockPods(name string, count int32) podSet { return podSet{name: name, count: count} }

func queuePods(name string, count int32, queue string) podSet {
	return podSet{name: name, count: count, queue: queue}
}

func groupPods(name string, min, count int32, queue string) podSet {
	return podSet{name: name, count: count, queue: queue, min: min}
}

// newShared returns when both schedulers are awake.
func newShared(t *testing.T, policy string) *shared {
	t.Helper()
	s := &shared{harness: newHarness(t, stock)}
	s.do(nodes("n", sharedNodes, fmt.Sprint(podsPerNode, "cpu")), queue("q1", 1), queue("q2", 1))
	var args []string
	if policy != "" {
		args = append(args, "--scheduler-conf="+s.file("policy.yaml", policy))
	}
	s.start(args...)
	s.create(stockPods("theirs", 1), queuePods("ours", 1, "q1"))
	s.awaitRunning(map[string]int{"theirs": 1, "ours": 1})
	return s
}

// next begins a round, in which all is new.
func (s *shared) next() {
	s.t.Helper()
	for _, set := range slices.Clone(s.sets) {
		s.delete(set.name)
	}
	s.awaitStable("", "")
	s.round++
}

// called is the name of a set in this round.
func (s *shared) called(name string) string { return fmt.Sprintf("%s-%d", name, s.round) }

func (s *shared) create(sets ...podSet) {
	s.t.Helper()
	for _, set := range sets { // before all pods, so that these come at once
		if set.min > 0 {
			s.do(group(s.called(set.name), set.min, in(set.queue)))
		}
	}
	for _, set := range sets {
		edit := byDefaultScheduler
		switch {
		case set.min > 0:
			edit = label(v1alpha1.LabelPodGroup, s.called(set.name))
		case set.queue != "":
			edit = label(v1alpha1.LabelQueue, set.queue)
		}
		s.do(replicaSet(s.called(set.name), set.count, "1cpu", edit))
	}
	s.sets = append(s.sets, sets...)
}

func (s *shared) delete(names ...string) {
	s.t.Helper()
	s.sets = slices.DeleteFunc(s.sets, func(set podSet) bool {
		if !slices.Contains(names, set.name) {
			return false
		}
		s.do(noReplicaSet(s.called(set.name)))
		if set.min > 0 {
			s.do(noGroup(s.called(set.name)))
		}
		return true
	})
}

// awaitFull waits until every node is full, because enough pods wait, and nothing changes any more.
func (s *shared) awaitFull() {
	s.t.Helper()
	s.must(s.await(func() error {
		held := map[string]int{}
		for _, p := range s.podsNow() {
			if p.Spec.NodeName != "" && !capacity.Ended(p) {
				held[p.Spec.NodeName]++
			}
		}
		want := map[string]int{}
		for i := range sharedNodes {
			want[fmt.Sprint("n", i+1)] = podsPerNode
		}
		return errors.Join(difference(want, held), s.consistent())
	}))
}

// awaitRunning waits until so many pods of each set run, and nothing changes any more.
func (s *shared) awaitRunning(want map[string]int) {
	s.t.Helper()
	s.must(s.await(func() error {
		got := map[string]int{}
		for _, set := range s.sets {
			got[set.name] = int(s.observe(set).running)
		}
		return errors.Join(difference(want, got), s.consistent())
	}))
}

// state is what has become of a set.
type state struct{ running, waiting, refused int32 }

func (s *shared) observe(set podSet) state {
	var now state
	for _, p := range s.podsNow() {
		switch {
		case p.Labels[jobLabel] != s.called(set.name) || p.DeletionTimestamp != nil:
		case p.Status.Phase == corev1.PodRunning:
			now.running++
		case p.Status.Reason == "OutOfcpu":
			now.refused++
		case p.Spec.NodeName == "":
			now.waiting++
		}
	}
	return now
}

// consistent checks what holds however the schedulers share the resources.
func (s *shared) consistent() error {
	pods := s.podsNow()
	errs := []error{s.view.capacityKept(pods), committed(pods)}
	for _, set := range s.sets {
		now := s.observe(set)
		if now.running+now.waiting != set.count {
			errs = append(errs, fmt.Errorf("of %d pods of %s %d run and %d wait", set.count, set.name, now.running, now.waiting))
		}
		if set.min > 0 {
			errs = append(errs, s.reported(set, now))
		}
	}
	return errors.Join(errs...)
}

// reported: a group is whole or has not started, unless kubelets have refused pods of it, and knows.
func (s *shared) reported(set podSet, now state) error {
	want := v1alpha1.PodGroupStatus{Phase: v1alpha1.PodGroupRunning, Pending: now.waiting, Running: now.running, Failed: now.refused}
	switch {
	case now.running == 0:
		want.Phase = v1alpha1.PodGroupPending
	case now.running < set.min && now.refused == 0:
		return fmt.Errorf("group %s runs with %d pods of at least %d", set.name, now.running, set.min)
	case now.running < set.min:
		want.Phase = v1alpha1.PodGroupUnknown
	}
	g, err := s.view.groups.PodGroups(namespace).Get(s.called(set.name))
	if err != nil {
		return err
	}
	got := g.Status
	if now.running >= set.min && got.StartTime == nil {
		return fmt.Errorf("group %s runs without a start time", set.name)
	}
	got.Conditions, got.UnschedulablePlugins, got.StartTime = nil, nil, nil
	return difference(want, got)
}
