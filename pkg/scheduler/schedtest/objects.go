// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package schedtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

// epoch is the creation time of the first object.
//
//nolint:gochecknoglobals // Go has no constants of struct types
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// objects are the objects of a fake API server, and their names in tests.
type objects struct {
	t         T
	informers informers.SharedInformerFactory
	clock     *clocktesting.FakePassiveClock // advances with each created object and each cycle
	deliver   func(event)                    // to all models
	dialects  func(title string) *Dialect    // nil if all PodGroups are those of this scheduler

	// Existing objects. Objects are never modified, only replaced.
	nodes  map[string]*v1.Node
	queues map[string]*v1alpha1.Queue
	groups map[string]*v1alpha1.PodGroup // by namespace/name
	pods   map[types.UID]*v1.Pod

	missing map[string]bool      // names declared as not existing: "node n", "queue q"
	names   map[string]string    // spelling in tests, of groups by namespace/name, and of pods by UID
	uids    map[string]types.UID // of pods, by the name in tests
	numbers map[string]int       // of the next pod of a row, by its title
	created map[string]int       // number of objects created with that name
}

func newObjects(t T, deliver func(event)) *objects {
	return &objects{
		t:         t,
		informers: informers.NewSharedInformerFactory(fake.NewClientset(), 0),
		clock:     clocktesting.NewFakePassiveClock(epoch),
		deliver:   deliver,
		nodes:     map[string]*v1.Node{},
		queues:    map[string]*v1alpha1.Queue{},
		groups:    map[string]*v1alpha1.PodGroup{},
		pods:      map[types.UID]*v1.Pod{},
		missing:   map[string]bool{},
		names:     map[string]string{},
		uids:      map[string]types.UID{},
		numbers:   map[string]int{},
		created:   map[string]int{},
	}
}

func mustParse(text string) *resource.Quantity {
	q := resource.MustParse(text)
	return &q
}

// An event is a change that all models receive before the next cycle. In the shuffled model only the last event of a
// key counts.
type event struct {
	key   string
	apply func(*model.Cluster)
}

// Wait advances the clock. It also advances by one second for each created object and before each cycle.
func (o *objects) Wait(d time.Duration) { o.clock.SetTime(o.clock.Now().Add(d)) }

// Since returns how much time has passed since the creation of the first object.
func (o *objects) Since() time.Duration { return o.clock.Now().Sub(epoch) }

// meta returns metadata with a unique creation time and a UID that distinguishes objects of the same name.
func (o *objects) meta(namespace, name string) metav1.ObjectMeta {
	o.Wait(time.Second)
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: o.uid(namespace, name),
		CreationTimestamp: metav1.NewTime(o.clock.Now()),
		Labels:            map[string]string{}, Annotations: map[string]string{},
	}
}

func (o *objects) uid(namespace, name string) types.UID {
	key := namespace + "/" + name
	o.created[key]++
	return types.UID(fmt.Sprintf("%s.%s.%d", namespace, name, o.created[key]))
}

func (o *objects) name(pod *v1.Pod, name string) {
	o.names[string(pod.UID)] = name
	o.uids[name] = pod.UID
}

func (o *objects) enqueue(key string, apply func(*model.Cluster)) {
	o.deliver(event{key, apply})
}

func (o *objects) setNode(n *v1.Node) {
	o.nodes[n.Name] = n
	delete(o.missing, "node "+n.Name)
	o.enqueue("node "+n.Name, func(m *model.Cluster) { m.Events().SetNode(n) })
}

func (o *objects) setQueue(q *v1alpha1.Queue) {
	o.queues[q.Name] = q
	delete(o.missing, "queue "+q.Name)
	o.enqueue("queue "+q.Name, func(m *model.Cluster) { m.Events().SetQueue(q) })
}

// dialect returns the dialect of a PodGroup.
func (o *objects) dialect(title string) *Dialect {
	if o.dialects != nil {
		if d := o.dialects(title); d != nil {
			return d
		}
	}
	return &Dialect{
		Group:  api.OwnGroup,
		Member: func(p *v1.Pod, g *v1alpha1.PodGroup, _ string) { p.Labels[v1alpha1.LabelPodGroup] = g.Name },
	}
}

func (o *objects) setGroup(title string, g *v1alpha1.PodGroup) {
	o.groups[g.Namespace+"/"+g.Name] = g
	if dialect := o.dialect(title); dialect.Group != nil {
		o.enqueue("group "+string(g.UID), func(m *model.Cluster) { m.Events().SetGroup(dialect.Group(g)) })
	}
}

// removeGroup removes a PodGroup from the models.
func (o *objects) removeGroup(title string, g *v1alpha1.PodGroup) {
	delete(o.groups, g.Namespace+"/"+g.Name)
	if dialect := o.dialect(title); dialect.Group != nil {
		o.enqueue("group "+string(g.UID), func(m *model.Cluster) { m.Events().DeleteGroup(dialect.Group(g).Key(), g.UID) })
	}
}

// setPod applies a version of a pod. A pod with a node starts at once.
func (o *objects) setPod(p *v1.Pod) {
	if p.Spec.NodeName != "" && p.Status.StartTime == nil {
		p.Status.StartTime = ptr.To(metav1.NewTime(o.clock.Now()))
	}
	o.pods[p.UID] = p
	o.enqueue("pod "+string(p.UID), func(m *model.Cluster) { m.Events().SetPod(p) })
}

func (o *objects) setPriorityClass(class *schedulingv1.PriorityClass) {
	o.enqueue("class "+class.Name, func(m *model.Cluster) { m.Events().SetPriorityClass(class) })
}

// setNamespace also updates the lister from which kube-scheduler's plugins read namespaces.
func (o *objects) setNamespace(ns *v1.Namespace) {
	if err := o.informers.Core().V1().Namespaces().Informer().GetIndexer().Add(ns); err != nil {
		o.t.Fatal(err)
	}
	o.enqueue("namespace "+ns.Name, func(m *model.Cluster) { m.Events().SetNamespace(ns) })
}

// Pods returns the names of all pods, oldest first.
func (o *objects) Pods() []string {
	names := make([]string, 0, len(o.pods))
	for _, p := range o.sortedPods() {
		names = append(names, o.names[string(p.UID)])
	}
	return names
}

// PodsOn returns the names of the pods on a node, oldest first.
func (o *objects) PodsOn(node string) []string {
	var names []string
	for _, p := range o.sortedPods() {
		if p.Spec.NodeName == node {
			names = append(names, o.names[string(p.UID)])
		}
	}
	return names
}

// Groups returns the names of all groups, sorted.
func (o *objects) Groups() []string {
	names := make([]string, 0, len(o.groups))
	for key := range o.groups {
		names = append(names, o.names[key])
	}
	slices.Sort(names)
	return names
}

// Nodes returns the names of all nodes, sorted.
func (o *objects) Nodes() []string { return slices.Sorted(maps.Keys(o.nodes)) }

// Queues returns the names of all queues, sorted.
func (o *objects) Queues() []string { return slices.Sorted(maps.Keys(o.queues)) }

func (o *objects) pod(name string) *v1.Pod {
	o.t.Helper()
	p := o.pods[o.uids[name]]
	if p == nil {
		o.t.Fatalf("there is no pod %q", name)
	}
	return p
}

func (o *objects) group(name string) *v1alpha1.PodGroup {
	o.t.Helper()
	for key, g := range o.groups {
		if o.names[key] == name {
			return g
		}
	}
	o.t.Fatalf("there is no group %q", name)
	return nil
}

func (o *objects) edit(pod string, change func(*v1.Pod)) {
	o.t.Helper()
	p := o.pod(pod).DeepCopy()
	change(p)
	o.setPod(p)
}

func (o *objects) sortedPods() []*v1.Pod {
	pods := make([]*v1.Pod, 0, len(o.pods))
	for _, p := range o.pods {
		pods = append(pods, p)
	}
	slices.SortFunc(pods, func(a, b *v1.Pod) int {
		return api.CompareAge(a.CreationTimestamp.UnixNano(), b.CreationTimestamp.UnixNano(), a.Name, b.Name)
	})
	return pods
}

func (o *objects) podName(t *api.TaskInfo) string {
	if name := o.names[string(t.ID)]; name != "" {
		return name
	}
	return t.Key
}

func (o *objects) jobName(j *api.JobInfo) string {
	if j == nil {
		return "no job"
	}
	if name := o.names[j.GroupName]; name != "" && !j.Shadow() {
		return name
	}
	return strings.TrimPrefix(j.Key, "ns/")
}
