// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

var seed = flag.Uint64("seed", 1, "seed of what tests leave to chance")

// malformedNames is how many names there are for odd nodes, groups and queues: each is taken again and
// again.
const malformedNames = 6

// TestWrongInput has the API server accept all that it will of odd objects, in any order, has
// them changed and deleted in any order, before the scheduler starts and while it runs. Then a
// sane gang must run beside them; and once they are gone, nothing of them must be left.
func TestWrongInput(t *testing.T) {
	h := newHarness(t, controllers)
	b := &malformedInput{harness: h, accepted: map[string]int{}}
	b.run(300)
	h.start()
	b.run(700)
	b.allAccepted()

	// The sane gang has a namespace, a queue and two nodes for itself.
	h.do(newNamespace("sane"), queue("sane", 1), nodes("sane", 2, "4cpu 4gpu"),
		gang("sane", 8, pods(8, "1gpu"), in("sane"), inNamespace("sane")))
	h.eventually(func() error { return h.runs("sane", "sane", 8) })

	b.clear()
	h.do(threeNodes, queue("default", 1))
	h.do(gang("a", 12, pods(12, "1cpu")))
	h.awaitStable(`a: Running Scheduled; 12 running`, "")
	h.awaitQueue("default", queueStatus{Allocated: "12", Deserved: "12", Groups: v1alpha1.QueueGroups{Running: 1}})
}

// malformedInput makes odd objects.
type malformedInput struct {
	*harness

	mu       sync.Mutex
	accepted map[string]int // by what is odd
}

// run does count odd things, several at a time.
func (b *malformedInput) run(count int) {
	b.t.Helper()
	random := rand.New(rand.NewPCG(*seed, uint64(count)))
	seeds := make([]uint64, count)
	for i := range seeds {
		seeds[i] = random.Uint64()
	}
	b.each(count, func(i int) error {
		r := rand.New(rand.NewPCG(seeds[i], 0))
		what, err := b.one(r, i)
		if err == nil {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.accepted[what]++
			return nil
		}
		if apierrors.ReasonForError(err) == metav1.StatusReasonUnknown {
			return fmt.Errorf("%s: %w", what, err) // not an answer of the API server
		}
		return nil // to refuse is the API server's right
	})
}

// one makes one malformed request and returns a description. The kinds of objects alternate; the
// rest is random.
func (b *malformedInput) one(r *rand.Rand, i int) (what string, err error) {
	number, turn := r.IntN(malformedNames), i/10
	switch i % 10 {
	case 0, 1, 2:
		what = pick(malformedPods, turn*3+i%10)
		_, err = b.client.CoreV1().Pods(namespace).Create(b.ctx, newPod(fmt.Sprint("odd-", seedName(r)), "0.1cpu", malformedPods[what]), metav1.CreateOptions{})
		return "pod " + what, err
	case 3:
		what = pick(malformedNodes, turn)
		return "node " + what, b.node(fmt.Sprint("odd-", number), malformedNodes[what])
	case 4:
		what = malformedPodGroups[turn%len(malformedPodGroups)]
		return "group " + what, b.replaced("podgroups", fmt.Sprint("odd-group-", number), what)
	case 5:
		what = malformedQueues[turn%len(malformedQueues)]
		return "queue " + what, b.replaced("queues", fmt.Sprint("odd-queue-", number), what)
	case 6:
		return b.change(r, number)
	case 7:
		return b.priority(r, number)
	}
	return b.delete(r, number)
}

// seedName makes names that do not meet.
func seedName(r *rand.Rand) string { return fmt.Sprintf("%016x", r.Uint64()) }

// pick returns one of the keys; all of them in turn as i grows.
func pick[V any](m map[string]V, i int) string {
	return slices.Sorted(maps.Keys(m))[i%len(m)]
}

// node makes a node, in place of the one of that name.
func (b *malformedInput) node(name string, edit func(*corev1.Node)) error {
	_ = b.client.CoreV1().Nodes().Delete(b.ctx, name, metav1.DeleteOptions{}) // if it is there
	_, err := b.client.CoreV1().Nodes().Create(b.ctx, newNode(name, "4cpu 8Gi", inZone("zone-a"), edit), metav1.CreateOptions{})
	return err
}

// replaced makes a group or queue, in place of the one of that name.
func (b *malformedInput) replaced(kind, name, spec string) error {
	if kind == "queues" {
		_ = b.batch.SchedulingV1alpha1().Queues().Delete(b.ctx, name, metav1.DeleteOptions{})
	} else {
		_ = b.batch.SchedulingV1alpha1().PodGroups(namespace).Delete(b.ctx, name, metav1.DeleteOptions{})
	}
	return b.post(kind, fmt.Sprintf(`{"metadata":{"name":%q},"spec":%s}`, name, spec))
}

// anyObject returns the name of some pod.
func (b *malformedInput) anyObject(r *rand.Rand) string {
	pods := b.podsNow()
	if len(pods) == 0 {
		return "none"
	}
	return pods[r.IntN(len(pods))].Name
}

// change changes an object that may be there.
func (b *malformedInput) change(r *rand.Rand, number int) (string, error) {
	core := b.client.CoreV1()
	pod := b.anyObject(r)
	merge := types.MergePatchType
	var err error
	switch what := r.IntN(6); what {
	case 0:
		_, err = core.Pods(namespace).Patch(b.ctx, pod, merge, []byte(`{"status":{"phase":"Unknown"}}`), metav1.PatchOptions{}, "status")
	case 1:
		_, err = core.Pods(namespace).Patch(b.ctx, pod, merge, []byte(`{"status":{"phase":"Succeeded","nominatedNodeName":"odd-3"}}`), metav1.PatchOptions{}, "status")
	case 2:
		_, err = core.Pods(namespace).Patch(b.ctx, pod, merge, []byte(`{"spec":{"schedulingGates":null},"metadata":{"labels":null,"annotations":null}}`), metav1.PatchOptions{})
	case 3:
		_, err = core.Nodes().Patch(b.ctx, fmt.Sprint("odd-", number), merge, []byte(`{"status":{"allocatable":{"cpu":"0","pods":"1"}}}`), metav1.PatchOptions{}, "status")
	case 4:
		_, err = core.Nodes().Patch(b.ctx, fmt.Sprint("odd-", number), merge, []byte(`{"metadata":{"labels":null},"spec":{"unschedulable":true}}`), metav1.PatchOptions{})
	case 5:
		_, err = b.batch.SchedulingV1alpha1().PodGroups(namespace).Patch(b.ctx, fmt.Sprint("odd-group-", number), merge, []byte(`{"spec":{"minMember":7,"queue":"default"}}`), metav1.PatchOptions{})
	}
	return "a change", err
}

// priority makes a priority class or a disruption budget.
func (b *malformedInput) priority(r *rand.Rand, number int) (string, error) {
	if r.IntN(2) == 0 {
		_, err := b.client.SchedulingV1().PriorityClasses().Create(b.ctx, &schedulingv1.PriorityClass{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("odd-", number)},
			Value:      malformedPriorities[r.IntN(len(malformedPriorities))], GlobalDefault: number == 0,
		}, metav1.CreateOptions{})
		return "a priority class", err
	}
	_, err := b.client.PolicyV1().PodDisruptionBudgets(namespace).Create(b.ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("odd-", number)},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}, MinAvailable: &malformedBudgets[r.IntN(len(malformedBudgets))]},
	}, metav1.CreateOptions{})
	return "a disruption budget", err
}

// delete deletes an object that may be there.
func (b *malformedInput) delete(r *rand.Rand, number int) (string, error) {
	o := metav1.DeleteOptions{}
	if r.IntN(2) == 0 {
		o.GracePeriodSeconds = ptr.To[int64](0)
	}
	switch r.IntN(8) {
	case 0, 1, 2:
		return "the end of a pod", b.client.CoreV1().Pods(namespace).Delete(b.ctx, b.anyObject(r), o)
	case 3, 4:
		return "the end of a node", b.client.CoreV1().Nodes().Delete(b.ctx, fmt.Sprint("odd-", number), o)
	case 5:
		return "the end of a group", b.batch.SchedulingV1alpha1().PodGroups(namespace).Delete(b.ctx, fmt.Sprint("odd-group-", number), o)
	case 6:
		return "the end of a queue", b.batch.SchedulingV1alpha1().Queues().Delete(b.ctx, fmt.Sprint("odd-queue-", number), o)
	}
	return "the end of a priority class", b.client.SchedulingV1().PriorityClasses().Delete(b.ctx, fmt.Sprint("odd-", number), o)
}

// allAccepted returns an error with the malformed objects that the API server has always rejected: they test nothing.
func (b *malformedInput) allAccepted() {
	b.t.Helper()
	for name := range malformedPods {
		if b.accepted["pod "+name] == 0 {
			b.t.Logf("the API server has never accepted a pod that %s", name)
		}
	}
	for name := range malformedNodes {
		if b.accepted["node "+name] == 0 {
			b.t.Logf("the API server has never accepted a node that %s", name)
		}
	}
	if kinds, most := len(b.accepted), len(malformedPods)+len(malformedNodes)+len(malformedPodGroups)+len(malformedQueues); kinds < most*8/10 {
		b.t.Errorf("the API server has accepted only %d of %d kinds of odd objects", kinds, most)
	}
}

// clear deletes everything but the default queue, and waits until it is gone.
func (b *malformedInput) clear() {
	b.t.Helper()
	now, all := metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}, metav1.ListOptions{}
	for _, ns := range []string{namespace, "sane"} {
		b.must(b.client.CoreV1().Pods(ns).DeleteCollection(b.ctx, now, all))
		b.must(b.batch.SchedulingV1alpha1().PodGroups(ns).DeleteCollection(b.ctx, now, all))
	}
	b.must(b.batch.SchedulingV1alpha1().Queues().DeleteCollection(b.ctx, now, all))
	b.must(b.client.CoreV1().Nodes().DeleteCollection(b.ctx, now, all))
	classes, err := b.client.SchedulingV1().PriorityClasses().List(b.ctx, all)
	b.must(err)
	for _, c := range classes.Items {
		if !strings.HasPrefix(c.Name, "system-") {
			b.must(b.client.SchedulingV1().PriorityClasses().Delete(b.ctx, c.Name, now))
		}
	}
	b.eventually(func() error {
		if n := len(b.podsNow()); n > 0 {
			return fmt.Errorf("%d pods are still there", n)
		}
		return nil
	})
}

func (h *harness) podsNow() []*corev1.Pod {
	pods, _ := h.view.pods.List(labels.Everything())
	return pods
}

// newNamespace makes a namespace in which pods can be made.
func newNamespace(name string) row {
	return func(h *harness) {
		_, err := h.client.CoreV1().Namespaces().Create(h.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		h.must(err)
		h.eventually(func() error {
			_, err := h.client.CoreV1().ServiceAccounts(name).Get(h.ctx, "default", metav1.GetOptions{})
			return err
		})
	}
}

// inNamespace moves a gang to another namespace. It comes after the pods.
func inNamespace(name string) part {
	return func(g *gangParts) {
		g.group.Namespace = name
		for _, p := range g.pods {
			p.Namespace = name
		}
	}
}

// runs returns an error unless the PodGroup has the phase Running and count pods of it run.
func (h *harness) runs(namespace, name string, count int) error {
	g, err := h.view.groups.PodGroups(namespace).Get(name)
	if err != nil {
		return err
	}
	pods, _ := h.view.pods.Pods(namespace).List(labels.SelectorFromSet(labels.Set{jobLabel: name}))
	running := 0
	for _, p := range pods {
		if p.Status.Phase == corev1.PodRunning {
			running++
		}
	}
	if g.Status.Phase != v1alpha1.PodGroupRunning || running != count {
		return fmt.Errorf("group %s is %s with %d pods running, want %d: %s", name, g.Status.Phase, running, count, scheduled(g).Message)
	}
	return nil
}
