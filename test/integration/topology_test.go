// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// topology is a Topology of blocks and racks.
func topology(name string) *v1alpha1.Topology {
	return &v1alpha1.Topology{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.TopologySpec{Levels: []v1alpha1.TopologyLevel{
		{Name: "block", NodeLabel: "example.com/block"}, {Name: "rack", NodeLabel: "example.com/rack"},
	}}}
}

// rackNodes are nodes of 1 cpu in a rack.
func rackNodes(block, rack string, count int) row {
	return nodes(block+"-"+rack+"-", count, "1cpu", func(n *corev1.Node) {
		n.Labels["example.com/block"], n.Labels["example.com/rack"] = block, rack
	})
}

// within sets the level that a gang requires.
func within(level string) part {
	return func(g *gangParts) {
		g.group.Spec.TopologyConstraint = &v1alpha1.TopologyConstraint{RequiredTopologyLevel: level}
	}
}

// topologyShows waits until topology default shows its levels with the numbers of domains and nodes, and of nodes without label.
func (h *harness) topologyShows(want string) {
	h.t.Helper()
	h.eventually(func() error {
		shown, err := h.batch.SchedulingV1alpha1().Topologies().Get(h.ctx, "default", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if got := fmt.Sprint(shown.Status); got != want {
			return fmt.Errorf("status of the topology: %s, want %s", got, want)
		}
		return nil
	})
}

// TestTopologiesAreValidated: the API server refuses topologies that contradict themselves.
func TestTopologiesAreValidated(t *testing.T) {
	h := newHarness(t, noControllers)
	for want, change := range map[string]func(*v1alpha1.TopologySpec){
		"no two levels may have the same nodeLabel": func(s *v1alpha1.TopologySpec) { s.Levels[1].NodeLabel = s.Levels[0].NodeLabel },
		"no two levels may have the same name":      func(s *v1alpha1.TopologySpec) { s.Levels[1].Name = s.Levels[0].Name },
		"must be the key of a node label":           func(s *v1alpha1.TopologySpec) { s.Levels[1].NodeLabel = "a b" },
		"should have at least 1 items":              func(s *v1alpha1.TopologySpec) { s.Levels = []v1alpha1.TopologyLevel{} },
	} {
		topology := topology("default")
		change(&topology.Spec)
		_, err := h.batch.SchedulingV1alpha1().Topologies().Create(h.ctx, topology, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("the API server answers %v, want an error with %q", err, want)
		}
	}
}

// TestTopologyConstraintsAreValidated: the API server refuses constraints that require nothing, or that wait for nothing.
func TestTopologyConstraintsAreValidated(t *testing.T) {
	h := newHarness(t, noControllers)
	wait := &metav1.Duration{Duration: time.Minute}
	for want, constraint := range map[string]v1alpha1.TopologyConstraint{
		"needs a requiredTopologyLevel, a preferredTopologyLevel, or both": {Topology: "default"},
		"preferredWait needs a preferredTopologyLevel":                     {RequiredTopologyLevel: "rack", PreferredWait: wait},
		"must not be negative": {PreferredTopologyLevel: "rack", PreferredWait: &metav1.Duration{Duration: -time.Minute}},
	} {
		group := &v1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: "gang", Namespace: namespace}, Spec: v1alpha1.PodGroupSpec{TopologyConstraint: &constraint}}
		_, err := h.batch.SchedulingV1alpha1().PodGroups(namespace).Create(h.ctx, group, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("the API server answers %v, want an error with %q", err, want)
		}
	}
}

// TestTopology: the scheduler reads topologies from the first PodGroup with a constraint on. A gang starts within one rack,
// one that fits no rack waits, and one with an unknown level waits until the level exists (TO1, TO5, TO15).
func TestTopology(t *testing.T) {
	h := newHarness(t, noControllers)
	h.do(rackNodes("b1", "r1", 2), rackNodes("b1", "r2", 3), rackNodes("b2", "r1", 2), queue("default", 1))
	h.start()
	h.do(gang("early", 2, pods(2, "1cpu"), within("rack")))
	h.waitNow("TopologyNotFound", "no topology exists", "early-0", "early-1")

	_, err := h.batch.SchedulingV1alpha1().Topologies().Create(h.ctx, topology("default"), metav1.CreateOptions{})
	h.must(err)
	h.boundNow("early-0", "early-1")
	h.topologyShows("{[{block 2 7} {rack 3 7}] 0}")
	h.do(gang("three", 3, pods(3, "1cpu"), within("example.com/rack")), gang("four", 4, pods(4, "1cpu"), within("rack")),
		gang("wrong", 1, pods(1, "1cpu"), within("rak")))
	h.boundNow("early-0", "early-1", "three-0", "three-1", "three-2")
	h.waitNow("Unschedulable", "in one rack; rack b1/r1 has resources for 2 of 4 pods", "four-0", "four-3")
	h.waitNow("TopologyNotFound", `no level "rak" in topology default: block, rack; did you mean "rack"?`, "wrong-0")
	for name, count := range map[string]int{"early": 2, "three": 3} {
		in := map[string]bool{}
		for i := range count {
			pod, err := h.client.CoreV1().Pods(namespace).Get(h.ctx, fmt.Sprintf("%s-%d", name, i), metav1.GetOptions{})
			h.must(err)
			in[pod.Spec.NodeName[:len("b1-r1")]] = true
		}
		if len(in) != 1 {
			t.Errorf("PodGroup %s is in the racks %v", name, in)
		}
	}

	h.eventually(func() error {
		three, err := h.batch.SchedulingV1alpha1().PodGroups(namespace).Get(h.ctx, "three", metav1.GetOptions{})
		if got := fmt.Sprint(three.Status.Topology); err == nil && got != "[{rack [b1/r2] 0}]" {
			return fmt.Errorf("status.topology of PodGroup three: %s", got)
		}
		return err
	})

	h.stop() // the next process knows the topologies before it decides
	h.start()
	h.do(rackNodes("b2", "r2", 4), nodes("bare-", 1, "1cpu"))
	h.boundNow("early-0", "early-1", "four-0", "four-1", "four-2", "four-3", "three-0", "three-1", "three-2")
	h.topologyShows("{[{block 2 11} {rack 4 11}] 1}")
}

// TestTopologyOfSubGroups: of the blocks of KEP-6012's example, only one has a rack for each of two subgroups (TO6), and
// segments of 2 pods start on as few hosts as possible (TO4).
func TestTopologyOfSubGroups(t *testing.T) {
	h := newHarness(t, noControllers)
	levels := topology("default")
	levels.Spec.Levels = append(levels.Spec.Levels, v1alpha1.TopologyLevel{Name: "host", NodeLabel: corev1.LabelHostname})
	_, err := h.batch.SchedulingV1alpha1().Topologies().Create(h.ctx, levels, metav1.CreateOptions{})
	h.must(err)
	h.do(rackNodes("a", "r1", 3), rackNodes("a", "r2", 5), rackNodes("b", "r1", 5), rackNodes("b", "r2", 5), queue("default", 1))
	h.start()
	inRack, onHost := &v1alpha1.RequiredTopology{RequiredTopologyLevel: "rack"}, &v1alpha1.RequiredTopology{RequiredTopologyLevel: "host"}
	h.do(gang("pair", 1, within("block"), set("x", 5, "1cpu"), set("y", 5, "1cpu"), subGroups(
		v1alpha1.SubGroup{Name: "x", MinMember: ptr.To[int32](5), TopologyConstraint: inRack},
		v1alpha1.SubGroup{Name: "y", MinMember: ptr.To[int32](5), TopologyConstraint: inRack})))
	h.eventually(h.placed("x", "b-r1 b-r1 b-r1 b-r1 b-r1"))
	h.eventually(h.placed("y", "b-r2 b-r2 b-r2 b-r2 b-r2"))

	for i, cpus := range []int{6, 5, 4, 3, 2} {
		h.do(node(fmt.Sprintf("c-%d", i), fmt.Sprintf("%dcpu", cpus), func(n *corev1.Node) {
			n.Labels["example.com/block"], n.Labels["example.com/rack"], n.Labels[corev1.LabelHostname] = "c", "r", n.Name
		}))
	}
	h.do(gang("segments", 12, set("w", 12, "1cpu", numbered()), subGroups(
		v1alpha1.SubGroup{Name: "w", SegmentSize: 2, MinSubGroup: ptr.To[int32](6), SegmentTopologyConstraint: onHost})))
	h.eventually(h.placed("w", "c-0 c-0 c-0 c-0 c-0 c-0 c-2 c-2 c-2 c-2 c-4 c-4"))
}

// placed compares where the pods of a set are: the first four letters of their nodes' names, which name racks and hosts.
func (h *harness) placed(set, want string) func() error {
	return func() error {
		var on []string
		for _, pod := range h.podsNow() {
			if pod.Labels[setLabel] == set {
				name := pod.Spec.NodeName
				on = append(on, name[:min(len(name), len("b-r1"))])
			}
		}
		slices.Sort(on)
		if got := strings.Join(on, " "); got != want {
			return fmt.Errorf("the pods of set %s are on %s, want %s", set, got, want)
		}
		return nil
	}
}

// TestTopologyPacking: with topologypacking, the scheduler reads topologies although no PodGroup has a constraint, and a pod
// prefers the rack that is in use.
func TestTopologyPacking(t *testing.T) {
	h := newHarness(t, noControllers)
	h.do(rackNodes("b1", "r1", 2), rackNodes("b1", "r2", 2), queue("default", 1))
	_, err := h.batch.SchedulingV1alpha1().Topologies().Create(h.ctx, topology("default"), metav1.CreateOptions{})
	h.must(err)
	h.startPacking(10)
	h.do(gang("first", 1, pods(1, "1cpu", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"example.com/rack": "r2"} })))
	h.boundNow("first-0")
	h.do(gang("second", 1, pods(1, "1cpu")))
	h.boundNow("first-0", "second-0")
	pod, err := h.client.CoreV1().Pods(namespace).Get(h.ctx, "second-0", metav1.GetOptions{})
	h.must(err)
	if !strings.HasPrefix(pod.Spec.NodeName, "b1-r2") {
		t.Errorf("the second pod runs on %s, want a node of rack b1/r2", pod.Spec.NodeName)
	}
}

// TestTopologyPackingAtFullSize is TO17: 200 small pods without constraint arrive in ten portions in 40 racks. At least one rack is
// left whole, and a gang that needs one starts.
func TestTopologyPackingAtFullSize(t *testing.T) {
	const racks, portions = 40, 10
	h := newHarness(t, noControllers)
	blocksAndRacks(h)
	for i := range racks {
		rack := fmt.Sprintf("r%02d", i)
		h.do(nodes("b-"+rack+"-", 4, "8cpu", func(n *corev1.Node) { n.Labels["example.com/block"], n.Labels[rackLabel] = "b", rack }))
	}
	h.do(queue("default", 1))
	h.startPacking(1)
	var small []string
	for i := range portions {
		job := fmt.Sprint("small", i)
		h.do(plain(job, 20, "1cpu 8Gi"))
		for pod := range 20 {
			small = append(small, fmt.Sprint(job, "-", pod))
		}
		slices.Sort(small)
		h.boundNow(small...) // later ones see where they run
	}
	list, err := h.client.CoreV1().Pods(namespace).List(h.ctx, metav1.ListOptions{})
	h.must(err)
	inUse := map[string]bool{}
	for _, pod := range list.Items {
		inUse[pod.Spec.NodeName[:len("b-r00")]] = true
	}
	if len(inUse) >= racks {
		t.Fatalf("small pods run in all %d racks", racks)
	}
	h.do(gang("gang", 4, pods(4, "8cpu 64Gi"), within("rack")))
	h.boundNow(append([]string{"gang-0", "gang-1", "gang-2", "gang-3"}, small...)...)
}

// startPacking starts the scheduler with a weight of topologypacking, and waits until it reads topologies.
func (h *harness) startPacking(weight int) {
	h.t.Helper()
	h.start("--scheduler-conf=" + h.file("policy.yaml", fmt.Sprintf(`
actions: [allocate]
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: proportion}]
- plugins: [{name: nodeorder, arguments: {topologypacking.weight: %d}}]
`, weight)))
	h.eventually(func() error {
		log, failed := os.ReadFile(h.scheduler.Log)
		if failed == nil && !bytes.Contains(log, []byte(`"Watch started" logger="cache.topologies"`)) {
			failed = errors.New("the scheduler does not watch topologies")
		}
		return failed
	})
}
