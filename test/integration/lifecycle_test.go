// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// TestStop stops the scheduler in the middle of binding many gangs. None of them may be left
// half bound, and the next scheduler does the rest.
func TestStop(t *testing.T) {
	const gangs, size = 40, 25
	h := newHarness(t, noControllers)
	h.do(nodes("n", 20, "50cpu"))
	for i := range gangs {
		h.do(gang(fmt.Sprintf("gang-%02d", i), size, pods(size, "1cpu"), labelled("gangs")))
	}
	h.start()
	h.eventually(func() error {
		if h.view.bound() == 0 {
			return fmt.Errorf("no pod is bound")
		}
		return nil
	})
	h.stop()

	// The view may lag behind the API server, so read there.
	list, err := h.client.CoreV1().Pods(namespace).List(h.ctx, metav1.ListOptions{})
	h.must(err)
	bound := map[string]int{}
	for _, p := range list.Items {
		if p.Spec.NodeName != "" {
			bound[p.Labels[v1alpha1.LabelPodGroup]]++
		}
	}
	for group, n := range bound {
		if n != size {
			t.Errorf("group %s was left with %d of %d pods bound", group, n, size)
		}
	}
	t.Logf("%d of %d gangs were bound when the scheduler had stopped", len(bound), gangs)

	h.start()
	h.awaitStable(fmt.Sprintf("gangs: %d Running Scheduled; %d running", gangs, gangs*size), "")
	h.must(h.view.invariants())
}

// bound counts pods that have a node.
func (v *observer) bound() int {
	pods, _ := v.pods.List(labels.Everything())
	n := 0
	for _, p := range pods {
		if p.Spec.NodeName != "" {
			n++
		}
	}
	return n
}

// TestRecreated is S28: a pod is deleted and made again under the same name, over and over, at
// moments when its binding has been decided, sent, or done.
func TestRecreated(t *testing.T) {
	h := newHarness(t, noControllers)
	h.do(nodes("n", 1, "1cpu"))
	h.start()
	now := metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}
	var last *corev1.Pod
	for i := range 60 {
		if last != nil {
			err := h.client.CoreV1().Pods(namespace).Delete(h.ctx, last.Name, now)
			if err != nil && !apierrors.IsNotFound(err) {
				t.Fatal(err)
			}
		}
		pod := newPod("same", "1cpu", label(jobLabel, "same"))
		var err error
		last, err = h.client.CoreV1().Pods(namespace).Create(h.ctx, pod, metav1.CreateOptions{})
		h.must(err)
		if i%3 > 0 {
			h.eventually(func() error { return h.reached(last, i%3 == 2) })
		}
	}
	h.awaitStable(`same: 1 running`, "")
	h.must(h.reached(last, true))

	h.do(noPods("same"), gang("a", 1, pods(1, "1cpu"))) // its resources are free
	h.awaitStable(`a: Running Scheduled; 1 running`, "")
	h.must(h.view.invariants())
}

// reached reports whether the view has the pod with this UID, or has it with its node.
func (h *harness) reached(pod *corev1.Pod, node bool) error {
	seen, err := h.view.pods.Pods(pod.Namespace).Get(pod.Name)
	switch {
	case err != nil:
		return err
	case seen.UID != pod.UID:
		return fmt.Errorf("pod %s is still the one before", pod.Name)
	case node && seen.Spec.NodeName == "":
		return fmt.Errorf("pod %s has no node", pod.Name)
	}
	return nil
}

// TestAnnotations: a bound pod says where it counts.
func TestAnnotations(t *testing.T) {
	h := newHarness(t, noControllers)
	h.do(threeNodes, queue("q", 1),
		gang("a", 1, pods(1, "1cpu"), in("q")),
		gang("b", 1, pods(1, "1cpu")),
		plain("bare", 1, "1cpu"),
		plain("queued", 1, "1cpu", label(v1alpha1.LabelQueue, "q")))
	h.start()
	h.awaitStable(`
		a: Running Scheduled; 1 running
		b: Running Scheduled; 1 running
		bare: 1 running
		queued: 1 running`, "")
	type place struct{ Queue, Group string }
	got := map[string]place{}
	groups := map[string]string{"": ""}
	all, _ := h.view.groups.List(labels.Everything())
	for _, g := range all {
		groups[string(g.UID)] = g.Name
	}
	pods, _ := h.view.pods.List(labels.Everything())
	for _, p := range pods {
		got[p.Labels[jobLabel]] = place{p.Annotations[v1alpha1.AnnotationQueue], groups[p.Annotations[v1alpha1.AnnotationPodGroupUID]]}
	}
	h.must(difference(map[string]place{
		"a":      {"q", "a"},
		"b":      {"default", "b"},
		"bare":   {"default", ""},
		"queued": {"q", ""},
	}, got))
}

const (
	spreading = `
actions: "allocate, backfill"
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: proportion}, {name: nodeorder}]
`
	packing = `
actions: "allocate, backfill"
tiers:
- plugins:
  - {name: gang}
  - {name: predicates}
  - {name: proportion}
  - {name: nodeorder, arguments: {leastrequested.weight: "0", mostrequested.weight: "1", balancedresource.weight: "0"}}
`
	misspelt = `
actions: "allocate, backfil"
tiers:
- plugins: [{name: gang}]
`
)

// TestReload changes the configuration while the scheduler runs: a good one counts from then
// on, a bad one is refused and named in log, metrics and an event.
func TestReload(t *testing.T) {
	h := newHarness(t, noControllers)
	h.do(nodes("n", 2, "8cpu 8Gi"), plain("other", 1, "2cpu 2Gi", onNode("n1")))
	metrics, args := h.newScraper()
	h.start(append(args, "--scheduler-conf="+h.file("policy.yaml", spreading))...)
	h.do(gang("a", 1, pods(1, "1cpu 1Gi")))
	h.awaitStable(`
		a: Running Scheduled; 1 running (n2 1)
		other: 1 running (n1 1)`, corev1.LabelHostname)

	h.replace("policy.yaml", packing)
	h.eventually(func() error { return h.reloads(metrics, "success", 1) })
	h.do(gang("b", 1, pods(1, "1cpu 1Gi")))
	h.awaitStable(`
		a: Running Scheduled; 1 running (n2 1)
		b: Running Scheduled; 1 running (n1 1)
		other: 1 running (n1 1)`, corev1.LabelHostname)

	h.replace("policy.yaml", misspelt)
	h.eventually(func() error { return h.reloads(metrics, "failure", 1) })
	h.do(gang("c", 1, pods(1, "1cpu 1Gi")))
	h.awaitStable(`
		a: Running Scheduled; 1 running (n2 1)
		b: Running Scheduled; 1 running (n1 1)
		c: Running Scheduled; 1 running (n1 1)
		other: 1 running (n1 1)`, corev1.LabelHostname)
	h.eventually(func() error { return h.event("ConfigurationRefused", `did you mean "backfill"?`) })
	log, err := os.ReadFile(h.scheduler.Log)
	h.must(err)
	if !strings.Contains(string(log), "Scheduler configuration rejected") {
		t.Error("the log does not say that the configuration was refused")
	}
}

// replace replaces a file as editors and kubelets do: all at once.
func (h *harness) replace(name, content string) {
	h.t.Helper()
	h.must(os.Rename(h.file(name+".new", content), filepath.Join(h.dir, name)))
}

func (h *harness) reloads(metrics scraper, result string, want int) error {
	all, err := metrics.read(h)
	if err != nil {
		return err
	}
	got := all.count("batch_scheduler_config_reloads_total", func(l map[string]string) bool { return l["result"] == result })
	if got != want {
		return fmt.Errorf("%d reloads with result %s, want %d", got, result, want)
	}
	return nil
}

// event returns an error unless there is an event with the reason whose message contains the part.
func (h *harness) event(reason, part string) error {
	list, err := h.client.EventsV1().Events("").List(h.ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, e := range list.Items {
		if e.Reason == reason && strings.Contains(e.Note, part) {
			return nil
		}
	}
	return fmt.Errorf("no event %s with %q", reason, part)
}
