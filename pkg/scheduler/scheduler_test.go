// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	batchfake "github.com/batch-scheduler/batch-scheduler/pkg/client/clientset/versioned/fake"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/builtin"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/metrics"
)

// probe is an action that runs before allocate.
type probe func(context.Context, *framework.Session) error

func (probe) Name() string { return "probe" }

func (p probe) Execute(ctx context.Context, ssn *framework.Session) error { return p(ctx, ssn) }

// harness is a running scheduler with fake clients, in virtual time.
type harness struct {
	*Scheduler
	t       *testing.T
	ctx     context.Context // of the informers and of Run
	kube    *fake.Clientset
	batch   *batchfake.Clientset
	metrics *prometheus.Registry
	clock   *setClock
}

func run(t *testing.T, config string, probe probe, test func(*harness), objects ...runtime.Object) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := &harness{t: t, batch: batchfake.NewClientset(queue, group), kube: fake.NewClientset(append(objects, namespace)...), metrics: prometheus.NewRegistry(), clock: &setClock{}}
		h.kube.PrependReactor("create", "pods", h.bind)
		registry, err := builtin.NewRegistry()
		err = errors.Join(err, registry.AddAction(probe))
		if err != nil {
			t.Fatal(err)
		}
		policy := parse(t, registry, config)
		h.Scheduler, err = New(Options{
			SchedulerNames: []string{"us"}, DefaultQueue: "default", Period: time.Second, BindWorkers: 4,
			Kube: h.kube, Batch: h.batch, Config: policy, Registry: registry,
			Metrics: metrics.New(h.metrics), Clock: h.clock, Log: testr.New(t),
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		h.ctx = ctx
		if err := h.Start(ctx); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		go func() { ended <- h.Run(ctx) }()
		test(h)
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func parse(t *testing.T, registry *framework.Registry, config string) *conf.Configuration {
	t.Helper()
	policy, _, err := conf.Parse("test", []byte(config), registry.Catalog())
	if err != nil {
		t.Fatal(err)
	}
	return policy
}

// bind is a reactor that applies a binding.
func (h *harness) bind(action clienttesting.Action) (bool, runtime.Object, error) {
	create := action.(clienttesting.CreateAction)
	if create.GetSubresource() != "binding" {
		return false, nil, nil
	}
	binding := create.GetObject().(*v1.Binding)
	object, err := h.kube.Tracker().Get(action.GetResource(), binding.Namespace, binding.Name)
	if err != nil {
		return true, nil, err
	}
	pod := object.(*v1.Pod).DeepCopy()
	pod.Spec.NodeName = binding.Target.Name
	return true, binding, h.kube.Tracker().Update(action.GetResource(), pod, binding.Namespace)
}

// bound returns the pods that have a node.
func (h *harness) bound() []string {
	h.t.Helper()
	list, err := h.kube.CoreV1().Pods("").List(h.ctx, metav1.ListOptions{})
	if err != nil {
		h.t.Fatal(err)
	}
	names := []string{}
	for _, p := range list.Items {
		if p.Spec.NodeName != "" {
			names = append(names, p.Name)
		}
	}
	slices.Sort(names)
	return names
}

func (h *harness) create(pod *v1.Pod) {
	h.t.Helper()
	if _, err := h.kube.CoreV1().Pods(pod.Namespace).Create(h.ctx, pod, metav1.CreateOptions{}); err != nil {
		h.t.Fatal(err)
	}
}

func (h *harness) panics(want int) {
	h.t.Helper()
	text := strings.NewReader(fmt.Sprintf(`
# HELP batch_scheduler_cycle_panics_total [ALPHA] Cycles that ended in a panic and were recovered. Each is a bug.
# TYPE batch_scheduler_cycle_panics_total counter
batch_scheduler_cycle_panics_total %d
`, want))
	if err := testutil.GatherAndCompare(h.metrics, text, "batch_scheduler_cycle_panics_total"); err != nil {
		h.t.Error(err)
	}
}

var (
	namespace = &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}
	queue     = &v1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "q"}, Spec: v1alpha1.QueueSpec{Weight: 1}}
)

// group cannot start: its members request more than a node has.
var group = &v1alpha1.PodGroup{
	ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "g", UID: "g"},
	Spec:       v1alpha1.PodGroupSpec{MinMember: 2, PriorityClassName: "urgent"},
}

func member(name string) *v1.Pod {
	p := pod(name)
	p.Labels = map[string]string{v1alpha1.LabelPodGroup: "g"}
	p.Spec.Containers[0].Resources.Requests[v1.ResourceCPU] = resource.MustParse("5")
	return p
}

func node(name string) *v1.Node {
	allocatable := v1.ResourceList{v1.ResourceCPU: resource.MustParse("4"), v1.ResourcePods: resource.MustParse("10")}
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
		Status:     v1.NodeStatus{Capacity: allocatable, Allocatable: allocatable},
	}
}

func pod(name string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)},
		Spec: v1.PodSpec{SchedulerName: "us", Containers: []v1.Container{{
			Name:      "c",
			Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")}},
		}}},
	}
}

const probed = `
actions: "probe, allocate"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: nodeorder}]
`

func TestPanicEndsOneCycle(t *testing.T) {
	var mistaken atomic.Bool
	probe := func(_ context.Context, ssn *framework.Session) error {
		if mistaken.CompareAndSwap(true, false) {
			for _, j := range ssn.Jobs() {
				ssn.Statement().Allocate(ssn.WaitingTasks(j)[0], ssn.Cluster().Node("n"))
			}
			panic("a mistake") // and leaves a placement in the model that is not committed
		}
		return nil
	}
	run(t, probed, probe, func(h *harness) {
		time.Sleep(time.Second / 2)
		h.panics(0)
		mistaken.Store(true)
		h.create(pod("b"))
		time.Sleep(time.Minute)
		h.panics(1)
		if diff := cmp.Diff([]string{"a", "b"}, h.bound()); diff != "" {
			t.Errorf("bound pods (-want +got):\n%s", diff)
		}
		if err := h.Healthy(); err != nil {
			t.Errorf("not healthy after a panic: %v", err)
		}
	}, node("n"), pod("a"))
}

func TestActionsRunAfterAFailedAction(t *testing.T) {
	probe := func(context.Context, *framework.Session) error { return errors.New("no luck") }
	run(t, probed, probe, func(h *harness) {
		time.Sleep(time.Second / 2)
		if diff := cmp.Diff([]string{"a"}, h.bound()); diff != "" {
			t.Errorf("bound pods (-want +got):\n%s", diff)
		}
	}, node("n"), pod("a"))
}

func TestHealthyReportsAStuckCycle(t *testing.T) {
	probe := func(context.Context, *framework.Session) error {
		time.Sleep(10 * time.Minute)
		return nil
	}
	run(t, probed, probe, func(h *harness) {
		for _, at := range []struct {
			wait time.Duration
			want string
		}{
			{stuckAfter - time.Second, ""},
			{10 * time.Second, "the scheduling cycle has been running for 2m9s"},
			{10 * time.Minute, ""},
		} {
			time.Sleep(at.wait)
			got := ""
			if err := h.Healthy(); err != nil {
				got = err.Error()
			}
			if got != at.want {
				t.Errorf("after %s more: %q, want %q", at.wait, got, at.want)
			}
		}
	}, node("n"))
}

func TestCyclesAreSkippedWithoutChanges(t *testing.T) {
	claim := v1.Volume{Name: "v", VolumeSource: v1.VolumeSource{
		PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "missing"},
	}}
	big, withClaim := pod("big"), pod("with-claim")
	big.Spec.Containers[0].Resources.Requests[v1.ResourceCPU] = resource.MustParse("5")
	withClaim.Spec.Volumes = []v1.Volume{claim}
	for name, test := range map[string]struct {
		given *v1.Pod
		want  int32 // cycles in ten periods that run the actions
	}{
		"a pod that fits nowhere is tried once":           {big, 0},
		"a pod whose claim is missing is tried each time": {withClaim, 10},
	} {
		t.Run(name, func(t *testing.T) {
			var cycles atomic.Int32
			probe := func(context.Context, *framework.Session) error {
				cycles.Add(1)
				return nil
			}
			run(t, probed, probe, func(h *harness) {
				time.Sleep(5*time.Second + time.Second/2)
				before := cycles.Load()
				time.Sleep(10 * time.Second)
				if got := cycles.Load() - before; got != test.want {
					t.Errorf("%d cycles in 10 periods, want %d", got, test.want)
				}
			}, node("n"), test.given)
		})
	}
}

func TestNoCyclesWhileAGangGathers(t *testing.T) {
	var cycles atomic.Int32
	probe := func(context.Context, *framework.Session) error {
		cycles.Add(1)
		return nil
	}
	small := func(name string) *v1.Pod {
		p := member(name)
		p.Spec.Containers[0].Resources.Requests[v1.ResourceCPU] = resource.MustParse("1")
		return p
	}
	unknown := small("unknown")
	unknown.Labels[v1alpha1.LabelPodGroup] = "missing"
	run(t, probed, probe, func(h *harness) {
		time.Sleep(5*time.Second + time.Second/4)
		for _, step := range []struct {
			name   string
			create *v1.Pod
			wait   time.Duration
			cycles int32
			bound  []string
		}{
			{"a pod of a gang of two arrives", small("a"), time.Second / 4, 0, []string{}},
			{"so does a pod whose PodGroup does not exist", unknown, time.Second / 4, 0, []string{}},
			{"the period ends: the statuses change", nil, time.Second / 2, 1, []string{}},
			{"the last pod arrives", small("b"), time.Second / 4, 1, []string{"a", "b"}},
			{"a pod arrives that needs no other", pod("c"), time.Second / 4, 1, []string{"a", "b", "c"}},
		} {
			before := cycles.Load()
			if step.create != nil {
				h.create(step.create)
			}
			time.Sleep(step.wait)
			if got := cycles.Load() - before; got != step.cycles {
				t.Errorf("%s: %d cycles, want %d", step.name, got, step.cycles)
			}
			if got := h.bound(); !slices.Equal(got, step.bound) {
				t.Errorf("%s: bound %q, want %q", step.name, got, step.bound)
			}
		}
	}, node("n"))
}

func TestCycleWhenAGangStarves(t *testing.T) {
	var cycles atomic.Int32
	probe := func(context.Context, *framework.Session) error {
		cycles.Add(1)
		return nil
	}
	run(t, probed, probe, func(h *harness) {
		big := pod("big")
		big.CreationTimestamp = metav1.Now()
		big.Spec.Containers[0].Resources.Requests[v1.ResourceCPU] = resource.MustParse("5")
		h.create(big)
		time.Sleep(4*time.Minute + 59*time.Second)
		before := cycles.Load()
		time.Sleep(2 * time.Minute)
		if got := cycles.Load() - before; got != 1 {
			t.Errorf("%d cycles in two minutes, want 1", got)
		}
	}, node("n"))
}

func TestSetConfiguration(t *testing.T) {
	probe := func(context.Context, *framework.Session) error { return nil }
	idle := strings.Replace(probed, "probe, allocate", "probe", 1)
	run(t, idle, probe, func(h *harness) {
		time.Sleep(3 * time.Second)
		if diff := cmp.Diff([]string{}, h.bound()); diff != "" {
			t.Errorf("before the change (-want +got):\n%s", diff)
		}
		if err := h.SetConfiguration(h.ctx, parse(t, h.Registry, probed)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second / 2)
		if diff := cmp.Diff([]string{"a"}, h.bound()); diff != "" {
			t.Errorf("after it (-want +got):\n%s", diff)
		}
	}, node("n"), pod("a"))
}

func TestEveryMemberOfAPendingGangShowsAReason(t *testing.T) {
	probe := func(context.Context, *framework.Session) error { return nil }
	run(t, probed, probe, func(h *harness) {
		time.Sleep(5 * time.Second)
		group, err := h.batch.SchedulingV1alpha1().PodGroups("ns").Get(h.ctx, "g", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got := []string{string(group.Status.Phase), fmt.Sprint(group.Status.Pending)}
		for _, c := range group.Status.Conditions {
			got = append(got, c.Type+" "+c.Reason)
			if _, class, _ := strings.Cut(c.Message, "; priority class "); class != "" {
				got = append(got, class)
			}
		}
		for _, name := range []string{"g-0", "g-1", "g-2"} {
			p, err := h.kube.CoreV1().Pods("ns").Get(h.ctx, name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range p.Status.Conditions {
				got = append(got, name+" "+string(c.Type)+" "+c.Reason)
			}
		}
		want := []string{
			"Pending", "3", "PodGroupScheduled ExceedsClusterCapacity",
			"urgent does not exist, so the highest priority of the pods is used",
			"g-0 PodScheduled Unschedulable", "g-1 PodScheduled Unschedulable", "g-2 PodScheduled GangPending",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		h.kube.ClearActions()
		h.batch.ClearActions()
		h.create(pod("other")) // causes cycles
		time.Sleep(5 * time.Second)
		for _, a := range append(h.kube.Actions(), h.batch.Actions()...) {
			if of := a.GetResource().Resource; a.GetVerb() != "create" && of != "queues" {
				t.Errorf("written again: %s %s", a.GetVerb(), of)
			}
		}
	}, node("n"), member("g-0"), member("g-1"), member("g-2"))
}
