// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// planning is a policy that plans starts.
const planning = `
starvationAfter: 0s
reservations: {depth: 1, margin: 0s, preemptionDelay: 5m}
` + evictingPolicy

// overrun sets what happens to a gang after its limit.
func overrun(p v1alpha1.OverrunPolicy) part {
	return func(g *gangParts) { g.group.Spec.OnOverrun = p }
}

// setLimit changes the limit of a gang, so that it has so long left from now on.
func (h *harness) setLimit(name string, left time.Duration) {
	h.t.Helper()
	g := h.podGroup(name)
	limit := int((time.Since(g.Status.StartTime.Time) + left).Seconds()) + 1
	patch := fmt.Appendf(nil, `{"spec":{"maximumExecutionTimeSeconds":%d}}`, limit)
	_, err := h.batch.SchedulingV1alpha1().PodGroups(namespace).Patch(h.ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	h.must(err)
}

func (h *harness) podGroup(name string) *v1alpha1.PodGroup {
	h.t.Helper()
	g, err := h.batch.SchedulingV1alpha1().PodGroups(namespace).Get(h.ctx, name, metav1.GetOptions{})
	h.must(err)
	return g
}

// planned waits until the start of a gang is known, and returns it, in minutes, as the status has it.
func (h *harness) planned(name string) (estimated, latest time.Time) {
	h.t.Helper()
	h.eventually(func() error {
		s := h.podGroup(name).Status
		if s.EstimatedStartTime == nil || s.LatestStartTime == nil {
			return fmt.Errorf("PodGroup %s has no planned start: %+v", name, s)
		}
		estimated, latest = s.EstimatedStartTime.Time, s.LatestStartTime.Time
		return nil
	})
	return estimated, latest
}

// TestPlannedStarts: a gang waits for pods with a limit. A job that is over by then runs before it (TI3), one that does not end,
// or need not, waits with advice (TI7). The next process tells no later start (TI9). When the time has come, the job that should
// have ended is evicted (TI6).
func TestPlannedStarts(t *testing.T) {
	h := newHarness(t, noControllers)
	h.do(nodes("n", 2, "4cpu"), queue("default", 1), queue("team", 1), gang("held", 2, pods(2, "3cpu"), in("team"), limited(7200)))
	args := "--scheduler-conf=" + h.file("policy.yaml", strings.Replace(planning, "reclaim, allocate, backfill, preempt", "allocate, backfill", 1))
	h.start(args)
	h.boundNow("held-0", "held-1")
	h.eventually(func() error {
		return h.podGroupHas("held", func(s *v1alpha1.PodGroupStatus) bool { return s.StartTime != nil })
	})
	h.do(gang("wide", 2, pods(2, "4cpu"), limited(600)))
	h.waitNow("Unschedulable", "planned to start at", "wide-0", "wide-1")
	end := h.podGroup("held").Status.StartTime.Add(2 * time.Hour)
	estimated, latest := h.planned("wide")
	if !estimated.Equal(latest) || latest.Before(end) || latest.After(end.Add(2*time.Minute)) {
		t.Errorf("wide is planned to start at %s, at the latest at %s; held ends at %s", estimated, latest, end)
	}
	h.do(gang("short", 1, pods(1, "1cpu"), limited(3600)),
		gang("long", 1, pods(1, "1cpu"), limited(9000)),
		gang("ignoring", 1, pods(1, "1cpu"), limited(60), overrun(v1alpha1.OverrunIgnore)))
	h.boundNow("held-0", "held-1", "short-0")
	h.waitNow("Unschedulable", "would fit now with maximumExecutionTimeSeconds of at most", "long-0", "ignoring-0")
	ada := h.newPlugin()
	ada.eventuallySays("why wide", "planned to start at", "Run time: limit 10m")
	ada.eventuallySays("get podgroups --start", "wide - Pending 10m")

	h.stop()
	h.start(args)
	h.waitNow("Unschedulable", "planned to start at", "wide-0", "wide-1")
	if _, now := h.planned("wide"); now.After(latest) {
		t.Errorf("the next process says %s at the latest, before it was %s", now, latest)
	}
	h.boundNow("held-0", "held-1", "short-0")

	h.setPhase(corev1.PodSucceeded, "short-0")
	h.setLimit("held", 8*time.Second)
	h.awaitStable(`
		held: Pending NotEnoughPods
		ignoring: Pending NotEnoughResources; 1 waiting Unschedulable
		long: Pending NotEnoughResources; 1 waiting Unschedulable
		short: Finished Scheduled; 1 succeeded
		wide: Running Scheduled; 2 running`, "")
	h.eventually(func() error {
		return differs("True ExecutionTimeExceeded: the gang (2 pods) was evicted by overrun at TIME for default/wide (queue default, priority 0)", h.evictedConditions()["held"])
	})
}

// TestStartsAppearAndMove: the start of a gang is not known until the queue has a default run time (TI5), and becomes later if a
// node is deleted, which its condition names (TI10).
func TestStartsAppearAndMove(t *testing.T) {
	h := newHarness(t, noControllers)
	on := func(node string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node} }
	}
	h.do(nodes("n", 2, "4cpu"), queue("default", 1), gang("near", 1, pods(1, "3cpu", on("n1"))), gang("far", 1, pods(1, "3cpu", on("n2"))))
	h.start("--scheduler-conf=" + h.file("policy.yaml", strings.Replace(planning, "reclaim, allocate, backfill, preempt", "allocate, backfill", 1)))
	h.boundNow("far-0", "near-0")
	for _, name := range []string{"far", "near"} {
		h.eventually(func() error {
			return h.podGroupHas(name, func(s *v1alpha1.PodGroupStatus) bool { return s.StartTime != nil })
		})
	}
	h.do(gang("large", 1, pods(1, "4cpu"), limited(600)))
	h.waitNow("Unschedulable", "no start time: 1 pod there declares no run time", "large-0")

	h.do(queue("default", 1, func(q *v1alpha1.Queue) {
		q.Spec.ExecutionTime = &v1alpha1.QueueExecutionTime{Default: new(int32(3600))}
	}))
	h.waitNow("Unschedulable", "planned to start at", "large-0")
	h.setLimit("far", 2*time.Hour)
	h.do(gang("short", 1, pods(1, "1cpu", on("n1")), limited(1800)))
	h.boundNow("far-0", "near-0", "short-0")
	_, early := h.planned("large")

	h.must(h.client.CoreV1().Nodes().Delete(h.ctx, "n1", metav1.DeleteOptions{}))
	h.waitNow("Unschedulable", "later than before: node n1 is gone", "large-0")
	h.eventually(func() error {
		if _, late := h.planned("large"); late.Sub(early) < 50*time.Minute {
			return fmt.Errorf("large was to start at %s, and now at %s", early, late)
		}
		return nil
	})
}

// TestStartsInOneRack: a gang that requires a rack is planned to start in the one that is free first, although two nodes of
// different racks are free before. Its condition names the rack, and it starts there.
func TestStartsInOneRack(t *testing.T) {
	h := newHarness(t, noControllers)
	h.do(rackNodes("b1", "r1", 2), rackNodes("b1", "r2", 2), queue("default", 1))
	_, err := h.batch.SchedulingV1alpha1().Topologies().Create(h.ctx, topology("default"), metav1.CreateOptions{})
	h.must(err)
	h.start("--scheduler-conf=" + h.file("policy.yaml", strings.Replace(planning, "reclaim, allocate, backfill, preempt", "allocate, backfill", 1)))
	h.do(gang("long", 2, pods(2, "1cpu"), within("rack"), limited(36000)))
	h.boundNow("long-0", "long-1")
	h.do(gang("short", 2, pods(2, "1cpu"), within("rack"), limited(3600)))
	h.boundNow("long-0", "long-1", "short-0", "short-1")
	h.do(gang("gang", 2, pods(2, "1cpu"), within("rack"), limited(600)))
	h.waitNow("Unschedulable", "on 2 nodes of rack b1/r2, by the run times that running jobs declare", "gang-0", "gang-1")
	h.newPlugin().eventuallySays("why gang", "planned to start at", "of rack b1/r2")
	h.setPhase(corev1.PodSucceeded, "short-0", "short-1")
	h.boundNow("gang-0", "gang-1", "long-0", "long-1", "short-0", "short-1")
}

// podGroupHas waits for a status.
func (h *harness) podGroupHas(name string, has func(*v1alpha1.PodGroupStatus) bool) error {
	if s := h.podGroup(name).Status; !has(&s) {
		return fmt.Errorf("the status of PodGroup %s is %+v", name, s)
	}
	return nil
}

// TestNoEvictionForWhatEndsAnyway is TI12: a gang with a higher priority waits for pods that end in two minutes instead of
// evicting them, and evicts those that end in an hour.
func TestNoEvictionForWhatEndsAnyway(t *testing.T) {
	h := newHarness(t, noControllers)
	h.do(nodes("n", 2, "4cpu"), queue("default", 1), priorityClass("high", 100),
		gang("near", 1, pods(1, "4cpu"), limited(120)))
	h.start("--scheduler-conf=" + h.file("policy.yaml", planning))
	h.boundNow("near-0")
	h.eventually(func() error {
		return h.podGroupHas("near", func(s *v1alpha1.PodGroupStatus) bool { return s.StartTime != nil })
	})
	h.do(gang("far", 1, pods(1, "4cpu"), limited(3600)))
	h.boundNow("far-0", "near-0")
	h.eventually(func() error {
		return h.podGroupHas("far", func(s *v1alpha1.PodGroupStatus) bool { return s.StartTime != nil })
	})
	h.do(gang("one", 1, pods(1, "4cpu", priority("high")), limited(600)))
	h.waitNow("Unschedulable", "planned to start at", "one-0")
	h.boundNow("far-0", "near-0")
	h.setPhase(corev1.PodSucceeded, "near-0")
	h.boundNow("far-0", "near-0", "one-0")
	h.do(gang("two", 1, pods(1, "4cpu", priority("high")), limited(600)))
	h.awaitStable(`
		far: Pending NotEnoughPods
		near: Finished Scheduled; 1 succeeded
		one: Running Scheduled; 1 running
		two: Running Scheduled; 1 running`, "")
}

// TestEvictedAtTheLimit is TI13: a gang is evicted when its time is over, but not while a PodDisruptionBudget forbids it.
func TestEvictedAtTheLimit(t *testing.T) {
	h := newHarness(t, controllers)
	h.do(nodes("n", 1, "4cpu"), queue("default", 1), gang("timed", 2, pods(2, "1cpu"), limited(1), overrun(v1alpha1.OverrunEvict)), budget("timed", 1))
	h.start()
	h.eventually(func() error {
		err := h.podGroupEvent("timed", "The limit of its run time has passed, and the API server refuses to evict its pods")
		if err != nil && strings.Contains(err.Error(), "was evicted") {
			t.Fatal("it is evicted although a budget forbids it")
		}
		return err
	})
	h.boundNow("timed-0", "timed-1")
	h.do(noBudget("timed"))
	h.awaitStable(`timed: Pending NotEnoughPods`, "")
	h.eventually(func() error {
		return differs("True ExecutionTimeExceeded: the gang (2 pods) was evicted by overrun at TIME because its limit has passed", h.evictedConditions()["timed"])
	})
}
