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
	w := newWorld(t, noControllers)
	policy := w.file("policy.yaml", evictingPolicy)
	w.do(threeNodes, priorityClass("high", 1000), priorityClass("low", 10), queue("q1", 1),
		gang("a", 2, pods(12, "1cpu", priority("low")), in("q1")))
	w.start("--scheduler-conf=" + policy)
	w.settle(`a: Running Scheduled; 12 running`, "")
	w.stop()
	w.do(gang("b", 3, pods(3, "1cpu", priority("high")), in("q1")),
		gang("c", 9, pods(9, "2cpu", priority("high")), in("q1")))
	w.eventually(func() error { return difference(24, len(w.places())) })

	before := w.versions()
	foretold := w.simulate("--config=" + policy)
	if diff := cmp.Diff(before, w.versions()); diff != "" {
		t.Errorf("simulate has changed objects (-before +after):\n%s", diff)
	}
	want := w.places()
	for _, e := range foretold.Evicted {
		delete(want, e.Pod)
	}
	for _, b := range foretold.Bound {
		want[b.Pod] = b.Node
	}
	if len(foretold.Bound) != 3 || len(foretold.Evicted) != 3 || len(foretold.Waiting) != 1 {
		t.Fatalf("foretold are %d bindings, %d evictions and %d groups that wait, want 3, 3 and 1", len(foretold.Bound), len(foretold.Evicted), len(foretold.Waiting))
	}

	w.start("--scheduler-conf=" + policy)
	w.settle(`
		a: Running Scheduled; 9 running
		b: Running Scheduled; 3 running
		c: Pending NotEnoughResources; 9 waiting Unschedulable`, "")
	w.must(difference(want, w.places()))
	w.must(difference(foretold.Waiting[0].Message, w.view.message("c")))
}

// simulate runs the command on the cluster.
func (w *world) simulate(args ...string) *simulate.Result {
	w.t.Helper()
	binary, err := scheduler.Build(w.ctx, true)
	w.must(err)
	kubeconfig := filepath.Join(w.dir, "simulate.kubeconfig")
	w.must(w.cluster.ServiceAccountKubeconfig(w.ctx, scheduler.Namespace, scheduler.Account, kubeconfig))
	var errs bytes.Buffer
	command := exec.CommandContext(w.ctx, binary, append([]string{"simulate", "--from-cluster", "--kubeconfig=" + kubeconfig, "--output=json"}, args...)...)
	command.Stderr = &errs
	out, err := command.Output()
	if err != nil || errs.Len() > 0 {
		w.t.Fatalf("simulate: %v: %s", err, &errs)
	}
	var result simulate.Result
	w.must(json.Unmarshal(out, &result))
	return &result
}

// places are the nodes of all pods, by namespace and name; empty for those that wait.
func (w *world) places() map[string]string {
	places := map[string]string{}
	pods, _ := w.view.pods.List(labels.Everything())
	for _, p := range pods {
		places[p.Namespace+"/"+p.Name] = p.Spec.NodeName
	}
	return places
}

// versions are those of all objects that a scheduler writes to.
func (w *world) versions() map[string]string {
	w.t.Helper()
	versions := map[string]string{}
	note := func(kind string, o metav1.Object) {
		versions[kind+" "+o.GetNamespace()+"/"+o.GetName()] = o.GetResourceVersion()
	}
	pods, err := w.client.CoreV1().Pods("").List(w.ctx, metav1.ListOptions{})
	w.must(err)
	for i := range pods.Items {
		note("pod", &pods.Items[i])
	}
	groups, err := w.batch.SchedulingV1alpha1().PodGroups("").List(w.ctx, metav1.ListOptions{})
	w.must(err)
	for i := range groups.Items {
		note("group", &groups.Items[i])
	}
	queues, err := w.batch.SchedulingV1alpha1().Queues().List(w.ctx, metav1.ListOptions{})
	w.must(err)
	for i := range queues.Items {
		note("queue", &queues.Items[i])
	}
	events, err := w.client.EventsV1().Events("").List(w.ctx, metav1.ListOptions{})
	w.must(err)
	for i := range events.Items {
		note("event", &events.Items[i])
	}
	return versions
}
