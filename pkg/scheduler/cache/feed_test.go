// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	gocmp "github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

// feed holds the objects of one kind on the API server, and an informer of them that the test operates.
type feed[T apiObject] struct {
	stage   *fakeInformers
	handler toolscache.ResourceEventHandler
	draw    func(t *rapid.T, old T) T // old is nil for a new object
	apply   func(model.Events, T)
	// onShown is called for each delivered object; may be nil.
	onShown func(T)

	server map[string]T
	shown  map[string]delivered[T]
	births int
}

type apiObject interface {
	object
	runtime.Object
}

// delivered is an object as the handler received it, which is trimmed, and as the API server holds it.
type delivered[T any] struct{ given, untrimmed T }

// feeder is a feed of any kind.
type feeder interface {
	deliverOne(*rapid.T)
	deliverAll(*rapid.T)
	replay(hidden map[types.UID]bool) []func(*model.Cluster)
	untouched(*rapid.T)
}

func newFeed[T apiObject](s *fakeInformers, k *kind[T], draw func(*rapid.T, T) T, tell func(model.Events, T)) *feed[T] {
	return &feed[T]{stage: s, handler: handler(s.Cache, k), draw: draw, apply: tell, server: map[string]T{}, shown: map[string]delivered[T]{}}
}

func keyOf(o metav1.Object) string { return o.GetNamespace() + "/" + o.GetName() }

// write creates an object, or changes, replaces or deletes one.
func (f *feed[T]) write(t *rapid.T) {
	var none T
	fresh := f.draw(t, none)
	old, exists := f.server[keyOf(fresh)]
	switch what := one(t, "how", "change", "change", "replace", "delete"); {
	case exists && what == "delete":
		f.remove(old)
	case exists && what == "change":
		f.put(f.draw(t, old.DeepCopyObject().(T)))
	default:
		f.births++
		fresh.SetUID(types.UID(fresh.GetName() + "." + strconv.Itoa(f.births)))
		f.put(fresh)
	}
}

// change changes an object on the API server.
func (f *feed[T]) change(obj T, edit func(T)) {
	obj = obj.DeepCopyObject().(T)
	edit(obj)
	f.put(obj)
}

func (f *feed[T]) put(obj T) {
	f.stage.version++
	obj.SetResourceVersion(strconv.Itoa(f.stage.version))
	f.server[keyOf(obj)] = obj
}

func (f *feed[T]) remove(obj T) { delete(f.server, keyOf(obj)) }

func (f *feed[T]) deliverOne(t *rapid.T) {
	if keys := f.keys(); len(keys) > 0 {
		f.deliver(t, one(t, "key", keys...))
	}
}

func (f *feed[T]) deliverAll(t *rapid.T) {
	for _, key := range f.keys() {
		f.deliver(t, key)
	}
}

func (f *feed[T]) keys() []string {
	keys := maps.Clone(f.shown)
	for key := range f.server {
		keys[key] = delivered[T]{}
	}
	return slices.Sorted(maps.Keys(keys))
}

// deliver shows the latest state of an object; states in between are lost. An unchanged object is shown
// again, as in a resync.
func (f *feed[T]) deliver(t *rapid.T, key string) {
	before, was := f.shown[key]
	server, is := f.server[key]
	if was && (!is || server.GetUID() != before.given.GetUID() && rapid.Bool().Draw(t, "seen deleted")) {
		f.deliverEnd(t, key, before.given)
		was = false
	}
	if !is {
		return
	}
	after := before
	if !was || server.GetResourceVersion() != before.given.GetResourceVersion() {
		after = delivered[T]{f.trimmed(server), server.DeepCopyObject().(T)}
	}
	f.shown[key] = after
	f.twice(t, func() {
		if was {
			f.handler.OnUpdate(before.given, after.given)
		} else {
			f.handler.OnAdd(after.given, rapid.Bool().Draw(t, "initial"))
		}
	})
	if f.onShown != nil && (!was || after != before) {
		f.onShown(after.given)
	}
}

func (f *feed[T]) deliverEnd(t *rapid.T, key string, last T) {
	delete(f.shown, key)
	var object any = last
	if rapid.Bool().Draw(t, "tombstone") {
		object = toolscache.DeletedFinalStateUnknown{Key: key, Obj: last}
	}
	f.twice(t, func() { f.handler.OnDelete(object) })
}

// twice does something once or twice.
func (f *feed[T]) twice(t *rapid.T, do func()) {
	do()
	if rapid.Bool().Draw(t, "twice") {
		do()
	}
}

// trimmed is what the informer keeps of an object.
func (f *feed[T]) trimmed(obj T) T {
	kept, err := f.stage.trimmer.trim(obj.DeepCopyObject())
	if err != nil {
		panic(err) // it never fails
	}
	return kept.(T)
}

// replay returns functions that apply to a model what the informer shows.
func (f *feed[T]) replay(hidden map[types.UID]bool) []func(*model.Cluster) {
	var events []func(*model.Cluster)
	for _, key := range slices.Sorted(maps.Keys(f.shown)) {
		if obj := f.shown[key].untrimmed; !hidden[obj.GetUID()] {
			events = append(events, func(c *model.Cluster) { f.apply(c.Events(), obj) })
		}
	}
	return events
}

// untouched fails if an object of the informer was written to.
func (f *feed[T]) untouched(t *rapid.T) {
	for _, key := range slices.Sorted(maps.Keys(f.shown)) {
		if diff := gocmp.Diff(f.trimmed(f.shown[key].untrimmed), f.shown[key].given); diff != "" {
			t.Fatalf("an object of the informer was written to:\n%s", diff)
		}
	}
}

func one(t *rapid.T, what string, values ...string) string {
	return rapid.SampledFrom(values).Draw(t, what)
}

func cmpString[T ~string](a, b T) int { return cmp.Compare(a, b) }

// drawKey draws a key of a map that may be empty.
func drawKey[V any](t *rapid.T, what string, m map[types.UID]V) (types.UID, bool) {
	keys := slices.Sorted(maps.Keys(m))
	if len(keys) == 0 {
		return "", false
	}
	return rapid.SampledFrom(keys).Draw(t, what), true
}

func second(n int) metav1.Time { return metav1.Unix(1_800_000_000+int64(n), 0) }

func deleting(p *v1.Pod) {
	now := second(9)
	p.DeletionTimestamp = &now
}

// drawPod draws a new pod, or a change of one.
func drawPod(t *rapid.T, old *v1.Pod) *v1.Pod {
	if old == nil {
		pod := member("", one(t, "pod", "p0", "p1", "p2", "p3", "p4"))
		pod.Namespace = one(t, "namespace", "default", "default", "other")
		pod.CreationTimestamp = second(rapid.IntRange(0, 2).Draw(t, "created"))
		pod.Labels, pod.Annotations = map[string]string{}, map[string]string{v1.LastAppliedConfigAnnotation: "long"}
		for range rapid.IntRange(0, 3).Draw(t, "traits") {
			drawFrom(t, traits)(pod)
		}
		drawFrom(t, alterations)(pod)
		return pod
	}
	spec := old.Spec.DeepCopy()
	for range rapid.IntRange(1, 2).Draw(t, "changes") {
		if drawFrom(t, alterations)(old); !ended(old) {
			drawFrom(t, moves)(old)
		}
	}
	if spec.NodeName = old.Spec.NodeName; gocmp.Diff(*spec, old.Spec) != "" {
		old.Generation++
	}
	return old
}

func drawFrom(t *rapid.T, edits func() map[string]func(*v1.Pod)) func(*v1.Pod) {
	from := edits()
	return from[one(t, "edit", slices.Sorted(maps.Keys(from))...)]
}

// traits are properties of new pods.
func traits() map[string]func(*v1.Pod) {
	affinity := func(color string) []v1.PodAffinityTerm {
		return []v1.PodAffinityTerm{{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"color": color}}, TopologyKey: "zone"}}
	}
	yes := true
	return map[string]func(*v1.Pod){
		"foreign": func(p *v1.Pod) { p.Spec.SchedulerName = "default-scheduler" },
		"gated":   func(p *v1.Pod) { p.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "hold"}} },
		"owned": func(p *v1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{Name: "rs", UID: "rs", Kind: "ReplicaSet", Controller: &yes}}
		},
		"daemon": func(p *v1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{Name: "ds", UID: "ds", Kind: "DaemonSet", Controller: &yes}}
		},
		"important": func(p *v1.Pod) { n := int32(7); p.Spec.Priority = &n },
		"port":      func(p *v1.Pod) { p.Spec.Containers[0].Ports = []v1.ContainerPort{{HostPort: 80}} },
		"joins": func(p *v1.Pod) {
			p.Spec.Affinity = &v1.Affinity{PodAffinity: &v1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: affinity("red")}}
		},
		"repels": func(p *v1.Pod) {
			p.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: affinity("red")}}
		},
		"with fields to trim": func(p *v1.Pod) {
			p.Spec.Containers[0].Env = []v1.EnvVar{{Name: "A", Value: "b"}}
			p.Spec.Volumes = []v1.Volume{{Name: "tmp", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}}
		},
		"huge request": func(p *v1.Pod) {
			p.Spec.Containers[0].Resources.Requests[v1.ResourceCPU] = resource.MustParse("9e30")
		},
	}
}

// alterations are changes of any pod.
func alterations() map[string]func(*v1.Pod) {
	label := func(key, value string) func(*v1.Pod) {
		return func(p *v1.Pod) { p.Labels[key] = value }
	}
	annotate := func(key, value string) func(*v1.Pod) {
		return func(p *v1.Pod) { p.Annotations[key] = value }
	}
	return map[string]func(*v1.Pod){
		"nothing":    func(*v1.Pod) {},
		"no labels":  func(p *v1.Pod) { clear(p.Labels) },
		"group 0":    label(v1alpha1.LabelPodGroup, "g0"),
		"group 1":    label(v1alpha1.LabelPodGroup, "g1"),
		"queue":      label(v1alpha1.LabelQueue, "q1"),
		"red":        label("color", "red"),
		"old group":  annotate(v1alpha1.AnnotationGroupName, "g1"),
		"other API":  annotate("scheduling.volcano.sh/group-name", "x"),
		"min member": annotate(v1alpha1.AnnotationGroupMinMember, "3"),
		"group key":  annotate(v1alpha1.AnnotationGroupKey, "k"),
		"key size":   annotate(v1alpha1.AnnotationMinMember, "2"),
		"condition": func(p *v1.Pod) {
			p.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionFalse}}
		},
		"nominated": func(p *v1.Pod) { p.Status.NominatedNodeName = "n1" },
		"ungated":   func(p *v1.Pod) { p.Spec.SchedulingGates = nil },
		"resized": func(p *v1.Pod) {
			p.Spec.Containers[0].Resources.Requests[v1.ResourceCPU] = resource.MustParse("2500m")
		},
	}
}

// moves are changes of a pod that has not ended.
func moves() map[string]func(*v1.Pod) {
	phase := func(phase v1.PodPhase) func(*v1.Pod) {
		return func(p *v1.Pod) {
			if p.Spec.NodeName != "" || phase == v1.PodFailed {
				p.Status.Phase = phase
			}
		}
	}
	bound := func(node string, annotations map[string]string) func(*v1.Pod) {
		return func(p *v1.Pod) {
			if p.Spec.NodeName != "" || len(p.Spec.SchedulingGates) > 0 {
				return
			}
			p.Spec.NodeName = node
			maps.Copy(p.Annotations, annotations)
		}
	}
	return map[string]func(*v1.Pod){
		"none":           func(*v1.Pod) {},
		"waits on":       func(*v1.Pod) {},
		"running":        phase(v1.PodRunning),
		"succeeded":      phase(v1.PodSucceeded),
		"failed":         phase(v1.PodFailed),
		"deleting":       deleting,
		"bound":          bound("n0", nil),
		"bound to ghost": bound("ghost", nil),
		"bound by us":    bound("n1", map[string]string{v1alpha1.AnnotationQueue: "q1", v1alpha1.AnnotationPodGroupUID: "g0.1"}),
	}
}

func drawNode(t *rapid.T, old *v1.Node) *v1.Node {
	n := old
	if n == nil {
		n = node(one(t, "node", "n0", "n1", "n2"))
	}
	n.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: resource.MustParse(one(t, "cpu", "1", "4")), v1.ResourcePods: resource.MustParse("110")}
	if rapid.Bool().Draw(t, "gpu") {
		n.Status.Allocatable["example.com/gpu"] = resource.MustParse("2")
	}
	n.Spec.Unschedulable = rapid.Bool().Draw(t, "cordoned")
	n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionStatus(one(t, "ready", "True", "True", "False"))}}
	return n
}

func drawGroup(t *rapid.T, old *v1alpha1.PodGroup) *v1alpha1.PodGroup {
	g := old
	if g == nil {
		g = group(one(t, "group", "g0", "g1"), 1)
		g.CreationTimestamp = second(rapid.IntRange(0, 2).Draw(t, "created"))
	}
	switch one(t, "what", "size", "queue", "class", "resources", "status") {
	case "size":
		g.Spec.MinMember = int32(rapid.IntRange(1, 3).Draw(t, "min"))
	case "queue":
		g.Spec.Queue = one(t, "queue", "", "q0", "q1", "nowhere")
	case "class":
		g.Spec.PriorityClassName = one(t, "class", "", "high")
	case "resources":
		g.Spec.MinResources = v1.ResourceList{v1.ResourceCPU: resource.MustParse("2")}
	default:
		g.Status.Pending++
	}
	return g
}

func drawQueue(t *rapid.T, old *v1alpha1.Queue) *v1alpha1.Queue {
	q := old
	if q == nil {
		q = queue(one(t, "queue", "default", "q0", "q1"))
		q.CreationTimestamp = second(rapid.IntRange(0, 2).Draw(t, "created"))
	}
	q.Spec.Weight = int32(rapid.IntRange(1, 3).Draw(t, "weight"))
	if q.Spec.Capability = nil; rapid.Bool().Draw(t, "capped") {
		q.Spec.Capability = v1.ResourceList{v1.ResourceCPU: resource.MustParse("2"), "example.com/gpu": resource.MustParse("0")}
	}
	return q
}

func drawClass(t *rapid.T, old *schedulingv1.PriorityClass) *schedulingv1.PriorityClass {
	if old != nil { // its value never changes
		old.Description = one(t, "description", "a", "b")
		return old
	}
	return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: int32(rapid.IntRange(-1, 9).Draw(t, "value"))}
}

func drawNamespace(t *rapid.T, old *v1.Namespace) *v1.Namespace {
	ns := old
	if ns == nil {
		ns = &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: one(t, "namespace", "default", "other")}}
	} else if rapid.Bool().Draw(t, "ends") {
		ns.Status.Phase = v1.NamespaceTerminating
	}
	ns.Labels = map[string]string{"team": one(t, "team", "a", "b")}
	return ns
}

func drawBudget(t *rapid.T, old *policyv1.PodDisruptionBudget) *policyv1.PodDisruptionBudget {
	b := old
	if b == nil {
		b = &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: one(t, "budget", "b0", "b1")}}
	}
	if b.Spec.Selector = (&metav1.LabelSelector{}); rapid.Bool().Draw(t, "selective") {
		b.Spec.Selector.MatchLabels = map[string]string{"color": "red"}
	}
	b.Status.DisruptionsAllowed = int32(rapid.IntRange(0, 2).Draw(t, "allowed"))
	return b
}
