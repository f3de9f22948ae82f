package cache

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/testr"
	"go.uber.org/goleak"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	clienttesting "k8s.io/client-go/testing"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	batchfake "github.com/batch-scheduler/batch-scheduler/pkg/client/clientset/versioned/fake"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const us = "batch-scheduler"

// world is a running cache over an API server made of fake clientsets. It lives in a synctest
// bubble, so its time is virtual: settle lets everything happen that needs no time.
type world struct {
	*Cache
	t     *testing.T
	kube  *fake.Clientset
	batch *batchfake.Clientset
	pods  *flakyPods
	start time.Time
	stop  func() // the context of Run
	ended chan struct{}

	mu        sync.Mutex
	version   int64
	writes    []string // status writes and events, with their time
	conflicts int      // status writes that came too late

	errands    map[string][]api.ExternalReservation // of the next placements, by pod
	errandsRun []string
}

// inWorld runs a test in a bubble of its own. Objects exist before the informers start.
func inWorld(t *testing.T, workers int, objects []runtime.Object, test func(*world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, workers, objects)
		ctx, cancel := context.WithCancel(t.Context())
		if err := w.Start(ctx); err != nil {
			t.Fatal(err)
		}
		running, stop := context.WithCancel(ctx)
		w.stop, w.ended = stop, make(chan struct{})
		go func() {
			w.Run(running)
			close(w.ended)
		}()
		w.settle()
		test(w)
		stop()
		<-w.ended
		cancel()
		w.options.Informers.Shutdown()
		w.groupInformers.Shutdown()
	})
}

func newWorld(t *testing.T, workers int, objects []runtime.Object) *world {
	w := &world{t: t, kube: fake.NewSimpleClientset(), batch: batchfake.NewSimpleClientset(), start: time.Now()}
	w.kube.PrependReactor("*", "*", w.serve(w.kube.Tracker()))
	w.batch.PrependReactor("*", "*", w.serve(w.batch.Tracker()))
	w.pods = &flakyPods{start: w.start, faults: map[string][]fault{}, silent: map[string]int{}}
	for _, object := range objects {
		w.create(object)
	}
	client := flakyClient{w.kube, w.pods}
	c, err := New(Options{
		SchedulerName: us, DefaultQueue: "default", BindWorkers: workers,
		Kube: client, Batch: w.batch, Informers: informers.NewSharedInformerFactory(client, 0),
		Log: testr.NewWithOptions(t, testr.Options{Verbosity: 1}),
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Cache = c
	w.setPatience(0) // most tests are about other times
	return w
}

func (w *world) setPatience(d time.Duration) {
	w.statuses.groups.patience, w.statuses.pods.patience = d, d
}

// settle waits until nobody has anything to do, and tells the model.
func (w *world) settle() {
	w.t.Helper()
	synctest.Wait()
	w.Apply()
	w.Model().Recompute()
	flying := 0
	for _, task := range w.tasks() {
		if task.InFlight() {
			flying++
		}
	}
	if flying != len(w.flights) {
		w.t.Errorf("%d pods are in flight in the model, and %d outside", flying, len(w.flights))
	}
}

func (w *world) wait(d time.Duration) {
	time.Sleep(d)
	w.settle()
}

// woken tells whether a signal waits in Wake, and takes it.
func (w *world) woken() bool {
	select {
	case <-w.Wake():
		return true
	default:
		return false
	}
}

// place commits all waiting pods of a group (or of nobody, if it is "") to a node, as a
// statement does.
func (w *world) place(group, node string) {
	w.t.Helper()
	var decisions []api.Decision
	for _, task := range w.tasks() {
		if task.Waiting() && task.Job != nil && strings.HasSuffix(task.Job.GroupName, group) {
			n := w.Model().Node(node)
			w.Model().Place(task, api.Allocated, n)
			decisions = append(decisions, api.Decision{Kind: api.Allocate, Task: task, Node: n, External: w.errands[task.Pod.Name]})
			delete(w.errands, task.Pod.Name)
		}
	}
	w.Commit(decisions)
	for _, d := range decisions {
		w.Model().AssumePod(d.Task)
	}
}

func (w *world) tasks() []*api.TaskInfo {
	var tasks []*api.TaskInfo
	for _, task := range w.Model().Tasks {
		tasks = append(tasks, task)
	}
	slices.SortFunc(tasks, func(a, b *api.TaskInfo) int { return strings.Compare(a.Key, b.Key) })
	return tasks
}

// model describes the tasks of the model, one a line.
func (w *world) model() []string {
	lines := []string{}
	for _, task := range w.tasks() {
		line := task.Pod.Name + " " + task.Status.String()
		if task.Node != nil {
			line += " " + task.Node.Name
		}
		if task.InFlight() {
			line += " in flight"
		}
		lines = append(lines, line)
	}
	return lines
}

// bound describes the pods of the API server that have a node.
func (w *world) bound() []string {
	lines := []string{}
	list, err := w.kube.Tracker().List(v1.SchemeGroupVersion.WithResource("pods"), v1.SchemeGroupVersion.WithKind("Pod"), "")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, pod := range list.(*v1.PodList).Items {
		if pod.Spec.NodeName != "" {
			lines = append(lines, pod.Name+" "+pod.Spec.NodeName)
		}
	}
	return lines
}

func (w *world) elapsed() time.Duration { return time.Since(w.start) }

func (w *world) wrote(line string) { w.writes = append(w.writes, w.elapsed().String()+" "+line) }

// written returns the writes since the last call.
func (w *world) written() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	lines := append([]string{}, w.writes...)
	w.writes = nil
	slices.SortStableFunc(lines, func(a, b string) int { // within a moment, the order is chance
		at := func(line string) time.Duration {
			moment, _, _ := strings.Cut(line, " ")
			d, _ := time.ParseDuration(moment)
			return d
		}
		return cmp.Or(cmp.Compare(at(a), at(b)), cmp.Compare(a, b))
	})
	return lines
}

func (w *world) create(object runtime.Object) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stamp(object)
	tracker := w.kube.Tracker()
	switch object.(type) {
	case *v1alpha1.PodGroup, *v1alpha1.Queue:
		tracker = w.batch.Tracker()
	}
	if err := tracker.Add(object); err != nil {
		w.t.Fatal(err)
	}
}

// update changes a pod as somebody else would.
func (w *world) update(name string, change func(*v1.Pod)) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	pods := v1.SchemeGroupVersion.WithResource("pods")
	object, err := w.kube.Tracker().Get(pods, "default", name)
	if err != nil {
		w.t.Fatal(err)
	}
	change(object.(*v1.Pod))
	w.stamp(object)
	if err := w.kube.Tracker().Update(pods, object, "default"); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) deletePod(name string) {
	w.t.Helper()
	if err := w.kube.Tracker().Delete(v1.SchemeGroupVersion.WithResource("pods"), "default", name); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) group(name string) *v1alpha1.PodGroup {
	w.t.Helper()
	object, err := w.batch.Tracker().Get(v1alpha1.SchemeGroupVersion.WithResource("podgroups"), "default", name)
	if err != nil {
		w.t.Fatal(err)
	}
	return object.(*v1alpha1.PodGroup)
}

func (w *world) pod(name string) *v1.Pod {
	w.t.Helper()
	object, err := w.kube.Tracker().Get(v1.SchemeGroupVersion.WithResource("pods"), "default", name)
	if err != nil {
		w.t.Fatal(err)
	}
	return object.(*v1.Pod)
}

func (w *world) stamp(object runtime.Object) {
	w.version++
	m, err := meta.Accessor(object)
	if err != nil {
		w.t.Fatal(err)
	}
	m.SetResourceVersion(strconv.FormatInt(w.version, 10))
}

// serve adds to a tracker what the effects rely on: resource versions, preconditions, and the
// binding subresource.
func (w *world) serve(tracker clienttesting.ObjectTracker) clienttesting.ReactionFunc {
	return func(action clienttesting.Action) (bool, runtime.Object, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		switch a := action.(type) {
		case clienttesting.CreateActionImpl:
			if binding, ok := a.Object.(*v1.Binding); ok {
				return true, nil, w.bind(tracker, a, binding)
			}
			w.stamp(a.Object)
			w.wrote(describe(a.Object))
			return clienttesting.ObjectReaction(tracker)(a)
		case clienttesting.UpdateActionImpl:
			object, err := w.updated(tracker, a)
			return true, object, err
		case clienttesting.PatchActionImpl:
			object, err := w.patched(tracker, a)
			return true, object, err
		}
		return false, nil, nil
	}
}

func (w *world) bind(tracker clienttesting.ObjectTracker, a clienttesting.CreateActionImpl, binding *v1.Binding) error {
	object, err := tracker.Get(a.GetResource(), a.GetNamespace(), binding.Name)
	if err != nil {
		return err
	}
	pod := object.(*v1.Pod)
	if pod.UID != binding.UID || pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil {
		return apierrors.NewConflict(v1.Resource("pods/binding"), binding.Name, fmt.Errorf("UID %s, node %q", pod.UID, pod.Spec.NodeName))
	}
	pod.Spec.NodeName = binding.Target.Name
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	for key, value := range binding.Annotations {
		pod.Annotations[key] = value
	}
	w.stamp(pod)
	return tracker.Update(a.GetResource(), pod, a.GetNamespace())
}

func (w *world) updated(tracker clienttesting.ObjectTracker, a clienttesting.UpdateActionImpl) (runtime.Object, error) {
	update, err := meta.Accessor(a.Object)
	if err != nil {
		return nil, err
	}
	object, err := tracker.Get(a.GetResource(), a.GetNamespace(), update.GetName())
	if err != nil {
		return nil, err
	}
	if current, _ := meta.Accessor(object); current.GetResourceVersion() != update.GetResourceVersion() {
		w.conflicts++
		return nil, apierrors.NewConflict(a.GetResource().GroupResource(), update.GetName(), fmt.Errorf("it is at %s", current.GetResourceVersion()))
	}
	w.stamp(a.Object)
	w.wrote(describe(a.Object))
	return a.Object, tracker.Update(a.GetResource(), a.Object, a.GetNamespace())
}

func (w *world) patched(tracker clienttesting.ObjectTracker, a clienttesting.PatchActionImpl) (runtime.Object, error) {
	object, err := tracker.Get(a.GetResource(), a.GetNamespace(), a.GetName())
	if err != nil {
		return nil, err
	}
	pod := object.(*v1.Pod)
	var patch podPatch
	if err := json.Unmarshal(a.Patch, &patch); err != nil {
		return nil, err
	}
	if patch.Metadata.UID != pod.UID || patch.Metadata.ResourceVersion != pod.ResourceVersion {
		w.conflicts++
		return nil, apierrors.NewConflict(a.GetResource().GroupResource(), pod.Name, fmt.Errorf("it is at %s", pod.ResourceVersion))
	}
	pod.Status.Conditions = patch.Status.Conditions
	w.stamp(pod)
	w.wrote(describe(pod))
	return pod, tracker.Update(a.GetResource(), pod, a.GetNamespace())
}

// flakyClient lets the binds and gets of pods go through flakyPods.
type flakyClient struct {
	*fake.Clientset
	pods *flakyPods
}

func (c flakyClient) CoreV1() corev1.CoreV1Interface { return flakyCore{c.Clientset.CoreV1(), c.pods} }

type flakyCore struct {
	corev1.CoreV1Interface
	pods *flakyPods
}

func (c flakyCore) Pods(namespace string) corev1.PodInterface {
	return flakyNamespace{c.CoreV1Interface.Pods(namespace), c.pods}
}

type flakyNamespace struct {
	corev1.PodInterface
	pods *flakyPods
}

// flakyPods makes binds slow and wrong.
type flakyPods struct {
	start   time.Time
	latency time.Duration

	mu     sync.Mutex
	faults map[string][]fault // of the next binds, by pod
	silent map[string]int     // of the next gets, by pod: how many fail
	sent   []string           // binds, with their time
}

// fault is a bind that goes wrong.
type fault struct {
	err error
	// done tells that the bind takes effect all the same, after late.
	done bool
	late time.Duration
}

func (n flakyNamespace) Bind(ctx context.Context, binding *v1.Binding, options metav1.CreateOptions) error {
	p := n.pods
	p.mu.Lock()
	p.sent = append(p.sent, fmt.Sprintf("%s %s to %s", time.Since(p.start), binding.Name, binding.Target.Name))
	var f fault
	if faults := p.faults[binding.Name]; len(faults) > 0 {
		f, p.faults[binding.Name] = faults[0], faults[1:]
	}
	p.mu.Unlock()
	select {
	case <-time.After(p.latency):
	case <-ctx.Done():
		return ctx.Err()
	}
	if f.err == nil {
		return n.PodInterface.Bind(ctx, binding, options)
	}
	if f.done {
		go func() {
			time.Sleep(f.late)
			_ = n.PodInterface.Bind(context.WithoutCancel(ctx), binding, options)
		}()
		if f.late == 0 {
			time.Sleep(time.Nanosecond) // let it take effect
		}
	}
	return f.err
}

func (n flakyNamespace) Get(ctx context.Context, name string, options metav1.GetOptions) (*v1.Pod, error) {
	n.pods.mu.Lock()
	fail := n.pods.silent[name] > 0
	if fail {
		n.pods.silent[name]--
	}
	n.pods.mu.Unlock()
	if fail {
		return nil, errTimeout
	}
	return n.PodInterface.Get(ctx, name, options)
}

// binds returns the binds that were sent since the last call.
func (p *flakyPods) binds() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	lines := append([]string{}, p.sent...)
	p.sent = nil
	return lines
}

var (
	errTimeout  = apierrors.NewTimeoutError("no answer", 0)
	errInternal = apierrors.NewInternalError(fmt.Errorf("etcd has no leader"))
	errBusy     = apierrors.NewTooManyRequests("slow down", 3)
	errNetwork  = fmt.Errorf("connection reset by peer")
	errDenied   = apierrors.NewGenericServerResponse(http.StatusForbidden, "create", v1.Resource("pods/binding"), "", "denied", 0, true)
)

func node(name string) *v1.Node {
	room := v1.ResourceList{v1.ResourceCPU: resource.MustParse("8"), v1.ResourcePods: resource.MustParse("110")}
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("node-" + name)},
		Status:     v1.NodeStatus{Capacity: room, Allocatable: room},
	}
}

func group(name string, minMember int32) *v1alpha1.PodGroup {
	return &v1alpha1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("group-" + name), Generation: 1},
		Spec:       v1alpha1.PodGroupSpec{MinMember: minMember},
	}
}

func queue(name string) *v1alpha1.Queue {
	return &v1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("queue-" + name)}, Spec: v1alpha1.QueueSpec{Weight: 1}}
}

// member is a waiting pod of a group, of none if it is "".
func member(group, name string) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("pod-" + name), Generation: 1},
		Spec: v1.PodSpec{
			SchedulerName: us,
			Containers: []v1.Container{{Name: "c", Image: "i", Resources: v1.ResourceRequirements{
				Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")},
			}}},
		},
		Status: v1.PodStatus{Phase: v1.PodPending},
	}
	if group != "" {
		pod.Labels = map[string]string{v1alpha1.LabelPodGroup: group}
	}
	return pod
}

// with returns a changed copy.
func with(pod *v1.Pod, change func(*v1.Pod)) *v1.Pod {
	pod = pod.DeepCopy()
	change(pod)
	return pod
}

// gang is a group with its members, named after it.
func gang(name string, size int) []runtime.Object {
	objects := []runtime.Object{group(name, int32(size))}
	for i := range size {
		objects = append(objects, member(name, fmt.Sprintf("%s-%d", name, i)))
	}
	return objects
}

func objects(lists ...[]runtime.Object) []runtime.Object {
	all := []runtime.Object{queue("default"), node("n1"), node("n2")}
	return append(all, slices.Concat(lists...)...)
}
