// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate"
	"github.com/batch-scheduler/batch-scheduler/test/scheduler"
)

// TestSimulate has simulate foretell what a scheduler then does, with placements, evictions and a gang that waits. It
// runs as the scheduler's account, and writes nothing.
func TestSimulate(t *testing.T) {
	h := newHarness(t, noControllers)
	policy := h.file("policy.yaml", evictingPolicy)
	h.do(threeNodes, priorityClass("high", 1000), priorityClass("low", 10), queue("q1", 1),
		gang("a", 2, pods(12, "1cpu", priority("low")), in("q1")))
	h.start("--scheduler-conf=" + policy)
	h.awaitStable(`a: Running Scheduled; 12 running`, "")
	h.stop()
	h.do(gang("b", 3, pods(3, "1cpu", priority("high")), in("q1")),
		gang("c", 9, pods(9, "2cpu", priority("high")), in("q1")))
	h.eventually(func() error { return difference(24, len(h.places())) })

	before := h.versions()
	foretold := h.simulate("--config=" + policy)
	if diff := cmp.Diff(before, h.versions()); diff != "" {
		t.Errorf("simulate has changed objects (-before +after):\n%s", diff)
	}
	want := h.places()
	for _, e := range foretold.Evicted {
		delete(want, e.Pod)
	}
	for _, b := range foretold.Bound {
		want[b.Pod] = b.Node
	}
	if len(foretold.Bound) != 3 || len(foretold.Evicted) != 3 || len(foretold.Waiting) != 1 {
		t.Fatalf("foretold are %d bindings, %d evictions and %d groups that wait, want 3, 3 and 1", len(foretold.Bound), len(foretold.Evicted), len(foretold.Waiting))
	}

	h.start("--scheduler-conf=" + policy)
	h.awaitStable(`
		a: Running Scheduled; 9 running
		b: Running Scheduled; 3 running
		c: Pending ExceedsClusterCapacity; 9 waiting Unschedulable`, "")
	h.must(difference(want, h.places()))
	h.must(difference(foretold.Waiting[0].Message, h.view.message("c")))
}

// simulate runs the command on the cluster.
func (h *harness) simulate(args ...string) *simulate.Result {
	h.t.Helper()
	binary, err := scheduler.Build(h.ctx, true)
	h.must(err)
	kubeconfig := filepath.Join(h.dir, "simulate.kubeconfig")
	h.must(h.cluster.ServiceAccountKubeconfig(h.ctx, scheduler.Namespace, scheduler.Account, kubeconfig))
	var errs bytes.Buffer
	command := exec.CommandContext(h.ctx, binary, append([]string{"simulate", "--from-cluster", "--kubeconfig=" + kubeconfig, "--output=json"}, args...)...)
	command.Stderr = &errs
	out, err := command.Output()
	if err != nil || errs.Len() > 0 {
		h.t.Fatalf("simulate: %v: %s", err, &errs)
	}
	var result simulate.Result
	h.must(json.Unmarshal(out, &result))
	return &result
}

// places are the nodes of all pods, by namespace and name; empty for those that wait.
func (h *harness) places() map[string]string {
	places := map[string]string{}
	pods, _ := h.view.pods.List(labels.Everything())
	for _, p := range pods {
		places[p.Namespace+"/"+p.Name] = p.Spec.NodeName
	}
	return places
}

// versions are those of all objects that a scheduler writes to.
func (h *harness) versions() map[string]string {
	h.t.Helper()
	versions := map[string]string{}
	note := func(kind string, o metav1.Object) {
		versions[kind+" "+o.GetNamespace()+"/"+o.GetName()] = o.GetResourceVersion()
	}
	pods, err := h.client.CoreV1().Pods("").List(h.ctx, metav1.ListOptions{})
	h.must(err)
	for i := range pods.Items {
		note("pod", &pods.Items[i])
	}
	groups, err := h.batch.SchedulingV1alpha1().PodGroups("").List(h.ctx, metav1.ListOptions{})
	h.must(err)
	for i := range groups.Items {
		note("group", &groups.Items[i])
	}
	queues, err := h.batch.SchedulingV1alpha1().Queues().List(h.ctx, metav1.ListOptions{})
	h.must(err)
	for i := range queues.Items {
		note("queue", &queues.Items[i])
	}
	events, err := h.client.EventsV1().Events("").List(h.ctx, metav1.ListOptions{})
	h.must(err)
	for i := range events.Items {
		note("event", &events.Items[i])
	}
	return versions
}
