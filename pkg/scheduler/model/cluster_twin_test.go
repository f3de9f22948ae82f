// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"maps"
	"math/rand"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/audit"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

func TestModelEqualsOneBuiltAfresh(t *testing.T) { rapid.Check(t, modelEqualsOneBuiltAfresh) }

// Any sequence of events and decisions keeps the accounts right and leads to the model that the
// final objects describe.
func modelEqualsOneBuiltAfresh(t *rapid.T) {
	m := newMachine()
	t.Repeat(map[string]func(*rapid.T){
		"set pod":         m.setPod,
		"start pod":       m.startPod,
		"delete pod":      m.deletePod,
		"set node":        m.setNode,
		"delete node":     m.deleteNode,
		"devices":         m.setDevices,
		"device classes":  m.setDeviceResources,
		"device claim":    m.setDeviceClaim,
		"set group":       m.setGroup,
		"set other":       m.setOtherGroup,
		"delete other":    m.deleteOtherGroup,
		"delete group":    m.deleteGroup,
		"set owner":       m.setOwner,
		"delete owner":    m.deleteOwner,
		"owner gone":      m.ownerGone,
		"set queue":       m.setQueue,
		"delete queue":    m.deleteQueue,
		"priority class":  m.priorityClass,
		"namespace":       m.namespace,
		"try and undo":    m.tryAndUndo,
		"assume":          m.assume,
		"bind fails":      m.bindFails,
		"evict":           m.evict,
		"eviction fails":  m.evictionFails,
		"recompute":       func(*rapid.T) { m.c.Events().Recompute() },
		"repeat an event": m.repeat,
		"":                m.check,
	})
	m.compare(t)
}

// machine drives a model, and remembers the objects that a fresh one is built from.
type machine struct {
	c          *model.Cluster
	pods       map[types.UID]*v1.Pod
	nodes      map[string]*v1.Node
	groups     map[string]*v1alpha1.PodGroup
	others     map[string]*api.Group // of other APIs, by the id of their job
	queues     map[string]*v1alpha1.Queue
	priorities map[string]*schedulingv1.PriorityClass
	namespaces map[string]*v1.Namespace
	owners     map[string]*api.Owner // by name
	devices    map[string]v1.ResourceList
	classes    []v1.ResourceName // the resources that device classes provide
	claims     map[string]*api.DeviceClaim
	inFlight   map[api.TaskID]bool
	last       func() // the last event
}

func newMachine() *machine {
	return &machine{
		c:          newClusterOfOwners(),
		owners:     map[string]*api.Owner{},
		others:     map[string]*api.Group{},
		pods:       map[types.UID]*v1.Pod{},
		nodes:      map[string]*v1.Node{},
		groups:     map[string]*v1alpha1.PodGroup{},
		queues:     map[string]*v1alpha1.Queue{},
		priorities: map[string]*schedulingv1.PriorityClass{},
		namespaces: map[string]*v1.Namespace{},
		devices:    map[string]v1.ResourceList{},
		claims:     map[string]*api.DeviceClaim{},
		inFlight:   map[api.TaskID]bool{},
		last:       func() {},
	}
}

// event applies an event to the model, and keeps it for repetition.
func (m *machine) event(apply func()) {
	apply()
	m.last = apply
}

func (m *machine) repeat(*rapid.T) { m.last() }

func one(t *rapid.T, what string, values ...string) string {
	return rapid.SampledFrom(values).Draw(t, what)
}

func maybe(t *rapid.T, what string) bool { return rapid.Bool().Draw(t, what) }

// setPod creates a pod, or another incarnation of it, or changes what may change.
func (m *machine) setPod(t *rapid.T) {
	name := one(t, "pod", "p0", "p1", "p2", "p3", "p4")
	uid := types.UID(name + "." + one(t, "incarnation", "0", "1"))
	pod := drawPod(t, name, uid)
	if old := m.pods[uid]; old != nil { // fields that are immutable in the API
		pod.CreationTimestamp, pod.Spec.SchedulerName = old.CreationTimestamp, old.Spec.SchedulerName
		if old.Spec.NodeName != "" {
			pod.Spec.NodeName = old.Spec.NodeName
		}
	}
	m.pods[uid] = pod
	if pod.Spec.NodeName != "" {
		delete(m.inFlight, api.TaskID(uid))
	}
	m.event(func() { m.c.Events().SetPod(pod) })
}

func drawPod(t *rapid.T, name string, uid types.UID) *v1.Pod {
	pod := aPod(name)
	pod.UID = uid
	pod.CreationTimestamp = metav1.NewTime(dawn.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "created")) * time.Second))
	requesting("cpu", one(t, "cpu", "0", "1", "2500m"), one(t, "resource", "memory", "example.com/gpu", "pods"), "3")(pod)
	changes := map[string]podChange{
		"foreign":      foreign,
		"gated":        gated,
		"deleting":     deleting,
		"group 0":      inGroup("g0"),
		"group 1":      inGroup("g1"),
		"old group":    annotated(v1alpha1.AnnotationGroupName, "g1"),
		"plugins":      withLabel("scheduling.x-k8s.io/pod-group", "g0"),
		"plugins old":  withLabel("pod-group.scheduling.sigs.k8s.io", "x"),
		"native":       inNative("g0"),
		"native 1":     inNative("g1"),
		"ours plugins": boundBy("q0", "scheduler-plugins-g0.0", "n1"),
		"ours native":  boundBy("q1", "native-g0.0", "n1"),
		"other API 2":  annotated("scheduling.volcano.sh/group-name", "y"),
		"queue":        withLabel(v1alpha1.LabelQueue, "q1"),
		"owner 0":      ofOwner("o0", "o0.0"),
		"owner 0 by":   ofOwner("o0", ""),
		"owner 1":      ofOwner("o1", "o1.1"),
		"stage":        withLabel(stageLabel, "stage-1"),
		"attempt":      withLabel(attemptLabel, "1"),
		"kueue":        withLabel("kueue.x-k8s.io/pod-group-name", "k"),
		"kueue 2":      annotated("kueue.x-k8s.io/pod-group-total-count", "2"),
		"red":          withLabel("color", "red"),
		"claim 0":      claiming("c0"),
		"claim 1":      claiming("c1"),
		"deadline":     withDeadline(600),
		"deadline 2":   withDeadline(1200),
		"limit":        annotated(v1alpha1.AnnotationMaximumExecutionTime, "300"),
		"limit 2":      annotated(v1alpha1.AnnotationMaximumExecutionTime, "500"),
		"bad limit":    annotated(v1alpha1.AnnotationMaximumExecutionTime, "an hour"),
		"bad limit 2":  annotated(v1alpha1.AnnotationMaximumExecutionTime, "0"),
		"kueue limit":  withLabel("kueue.x-k8s.io/max-exec-time-seconds", "400"),
		"started":      startedAt(30),
		"scheduled":    scheduledAt(20),
		"scheduled 2":  scheduledAt(50),
		"min member":   annotated(v1alpha1.AnnotationGroupMinMember, "3"),
		"group key":    annotated(v1alpha1.AnnotationGroupKey, "k"),
		"key size 2":   annotated(v1alpha1.AnnotationMinMember, "2"),
		"key size 3":   annotated(v1alpha1.AnnotationMinMember, "3"),
		"owner":        ownedBy("rs"),
		"priority":     prioritized(7),
		"nominated":    nominatedTo("n1"),
		"bound":        on("n0"),
		"bound ghost":  on("ghost"),
		"ours shadow":  boundBy("q1", "", "n1"),
		"ours g0.0":    boundBy("q0", "g0.0", "n1"),
		"ours g0.1":    boundBy("q1", "g0.1", "n0"),
		"running":      inPhase(v1.PodRunning),
		"succeeded":    inPhase(v1.PodSucceeded),
		"failed":       inPhase(v1.PodFailed),
		"lost":         inPhase(v1.PodUnknown),
		"port":         func(p *v1.Pod) { p.Spec.Containers[0].Ports = []v1.ContainerPort{{HostPort: 80}} },
		"repels red":   repelling("color", "red"),
		"repels owner": repelling("owner", "x"),
		"joins red":    joining("color", "red"),
	}
	names := slices.Sorted(maps.Keys(changes))
	for range rapid.IntRange(0, 5).Draw(t, "changes") {
		changes[one(t, "change", names...)](pod)
	}
	return pod
}

func repelling(key, value string) podChange {
	return func(p *v1.Pod) {
		p.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{{
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}, TopologyKey: "zone",
			}},
		}}
	}
}

func joining(key, value string) podChange {
	return func(p *v1.Pod) {
		p.Spec.Affinity = &v1.Affinity{PodAffinity: &v1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{{
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}, TopologyKey: "zone",
			}},
		}}
	}
}

// startPod shows a start of a pod, and nothing else that is new.
func (m *machine) startPod(t *rapid.T) {
	uid := types.UID(one(t, "pod", "p0", "p1", "p2", "p3", "p4") + "." + one(t, "incarnation", "0", "1"))
	if m.pods[uid] == nil {
		return
	}
	pod := m.pods[uid].DeepCopy()
	startedAt(rapid.IntRange(0, 3).Draw(t, "start"))(pod)
	if maybe(t, "scheduled") {
		scheduledAt(rapid.IntRange(0, 3).Draw(t, "bind"))(pod)
	}
	m.pods[uid] = pod
	m.event(func() { m.c.Events().SetPod(pod) })
}

func (m *machine) deletePod(t *rapid.T) {
	uid := types.UID(one(t, "pod", "p0", "p1", "p2", "p3", "p4") + "." + one(t, "incarnation", "0", "1"))
	delete(m.pods, uid)
	delete(m.inFlight, api.TaskID(uid))
	m.event(func() { m.c.Events().DeletePod(uid) })
}

func (m *machine) setNode(t *rapid.T) {
	node := aNode(one(t, "node", "n0", "n1", "n2"), "cpu", one(t, "cpu", "1", "4"), one(t, "resource", "memory", "example.com/gpu"), "5")
	node.UID = types.UID(one(t, "incarnation", "0", "1"))
	node.Spec.Unschedulable = maybe(t, "cordoned")
	if maybe(t, "not ready") {
		notReady(node)
	}
	if maybe(t, "annotated") {
		node.Annotations = map[string]string{v1alpha1.AnnotationUnavailableFrom: one(t, "unavailable", "2026-02-01T00:00:00Z", "2026-03-01T00:00:00+01:00", "tomorrow")}
	}
	m.nodes[node.Name] = node
	m.event(func() { m.c.Events().SetNode(node) })
}

func (m *machine) deleteNode(t *rapid.T) {
	name := one(t, "node", "n0", "n1", "n2")
	delete(m.nodes, name)
	m.event(func() { m.c.Events().DeleteNode(name) })
}

func (m *machine) setDevices(t *rapid.T) {
	name := one(t, "node", "n0", "n1", "n2", "ghost")
	list := amountsOf("example.com/gpu", one(t, "devices", "2", "8"))
	if maybe(t, "none") {
		list = nil
	}
	m.devices[name] = list
	m.event(func() { m.c.Events().SetDevices(name, list) })
}

func (m *machine) setDeviceResources(t *rapid.T) {
	names := []v1.ResourceName{"example.com/gpu", "example.com/nic"}[:rapid.IntRange(0, 2).Draw(t, "resources")]
	m.classes = names
	m.event(func() { m.c.Events().SetDeviceResources(names) })
}

func (m *machine) setGroup(t *rapid.T) {
	name := one(t, "group", "g0", "g1")
	g := aGroup(name, one(t, "queue", "", "q0", "q1", "nowhere"), int32(rapid.IntRange(1, 3).Draw(t, "min")))
	g.UID = types.UID(name + "." + one(t, "incarnation", "0", "1"))
	g.Spec.PriorityClassName = one(t, "class", "", "high")
	if maybe(t, "limited") {
		g.Spec.MaximumExecutionTimeSeconds = new(int32(rapid.IntRange(0, 2).Draw(t, "maximum")))
	}
	if maybe(t, "estimated") {
		g.Spec.ExpectedExecutionTimeSeconds = new(int32(rapid.IntRange(0, 2).Draw(t, "expected")))
	}
	if maybe(t, "annotated") {
		g.Annotations = map[string]string{v1alpha1.AnnotationMaximumExecutionTime: one(t, "limit", "200", "x")}
	}
	g.Spec.OnOverrun = rapid.SampledFrom([]v1alpha1.OverrunPolicy{"", v1alpha1.OverrunEvict, v1alpha1.OverrunIgnore}).Draw(t, "overrun")
	if maybe(t, "resources") {
		g.Spec.MinResources = amountsOf("cpu", "2")
	}
	m.groups["ns/"+name] = g
	m.event(func() { m.c.Events().SetPodGroup(g) })
}

func (m *machine) deleteGroup(t *rapid.T) {
	name := one(t, "group", "g0", "g1")
	uid := types.UID(name + "." + one(t, "incarnation", "0", "1"))
	if g := m.groups["ns/"+name]; g != nil && g.UID == uid {
		delete(m.groups, "ns/"+name)
	}
	m.event(func() { m.c.Events().DeletePodGroup("ns/"+name, uid) })
}

// otherGroup draws the source, the name and the UID of a group of another API.
func otherGroup(t *rapid.T) *api.Group {
	source := rapid.SampledFrom([]api.GroupSource{api.SourceNative, api.SourceSchedulerPlugins, api.SourceVolcano}).Draw(t, "source")
	name := one(t, "group", "g0", "g1")
	g := aGroupOf(source, name, "", 1)
	g.UID = types.UID(string(source) + "-" + name + "." + one(t, "incarnation", "0", "1"))
	return g
}

func (m *machine) setOtherGroup(t *rapid.T) {
	g := otherGroup(t)
	g.Spec.Queue, g.Spec.MinMember = one(t, "queue", "", "", "q0", "nowhere"), int32(rapid.IntRange(1, 3).Draw(t, "min"))
	g.Basic = g.Source == api.SourceNative && maybe(t, "basic")
	if maybe(t, "priority") {
		g.Priority = new(int32(5))
	}
	m.others[string(g.Key().JobID())] = g
	m.event(func() { m.c.Events().SetGroup(g) })
}

func (m *machine) deleteOtherGroup(t *rapid.T) {
	g := otherGroup(t)
	if id := string(g.Key().JobID()); m.others[id] != nil && m.others[id].UID == g.UID {
		delete(m.others, id)
	}
	m.event(func() { m.c.Events().DeleteGroup(g.Key(), g.UID) })
}

func drawOwner(t *rapid.T, sizes ...int32) *api.Owner {
	name := one(t, "owner", "o0", "o1")
	return anOwner(name, name+"."+one(t, "incarnation", "0", "1"), sizes...)
}

func (m *machine) setOwner(t *rapid.T) {
	o := drawOwner(t, int32(rapid.IntRange(1, 3).Draw(t, "min")), 2)
	if maybe(t, "one stage") {
		o.Gangs = o.Gangs[:1]
	}
	if maybe(t, "malformed") {
		o.Problem = one(t, "problem", "", "one", "two")
	}
	m.owners[o.Name] = o
	m.event(func() { model.Owners(m.c).Set(o) })
}

func (m *machine) deleteOwner(t *rapid.T) {
	o := drawOwner(t)
	if known := m.owners[o.Name]; known != nil && known.UID == o.UID {
		delete(m.owners, o.Name)
	}
	m.event(func() { model.Owners(m.c).Delete(o.Key(), o.UID) })
}

func (m *machine) ownerGone(t *rapid.T) {
	o := drawOwner(t)
	ref := api.OwnerRef{OwnerKey: o.Key(), UID: o.UID}
	if maybe(t, "by name") {
		ref.UID = ""
	}
	m.event(func() { model.Owners(m.c).Gone(ref) })
}

func (m *machine) setQueue(t *rapid.T) {
	q := aQueue(one(t, "queue", "default", "q0", "q1"))
	q.Spec.Weight = int32(rapid.IntRange(1, 3).Draw(t, "weight"))
	if maybe(t, "capped") {
		q.Spec.Capability = amountsOf("cpu", "2", "example.com/gpu", "0")
	}
	if maybe(t, "limited") {
		q.Spec.ExecutionTime = &v1alpha1.QueueExecutionTime{Maximum: new(int32(rapid.IntRange(5, 7).Draw(t, "maximum")))}
		if maybe(t, "default") {
			q.Spec.ExecutionTime.Default = new(int32(rapid.IntRange(3, 5).Draw(t, "default run time")))
		}
	}
	m.queues[q.Name] = q
	m.event(func() { m.c.Events().SetQueue(q) })
}

func (m *machine) deleteQueue(t *rapid.T) {
	name := one(t, "queue", "default", "q0", "q1")
	delete(m.queues, name)
	m.event(func() { m.c.Events().DeleteQueue(name) })
}

func (m *machine) priorityClass(t *rapid.T) {
	if maybe(t, "delete") {
		delete(m.priorities, "high")
		m.event(func() { m.c.Events().DeletePriorityClass("high") })
		return
	}
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: int32(rapid.IntRange(-1, 9).Draw(t, "value"))}
	m.priorities["high"] = class
	m.event(func() { m.c.Events().SetPriorityClass(class) })
}

func (m *machine) namespace(t *rapid.T) {
	if maybe(t, "delete") {
		delete(m.namespaces, "ns")
		m.event(func() { m.c.Events().DeleteNamespace("ns") })
		return
	}
	ns := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: map[string]string{"team": one(t, "team", "a", "b")}}}
	if maybe(t, "default queue") {
		ns.Labels[v1alpha1.LabelDefaultQueue] = "q1"
	}
	m.namespaces["ns"] = ns
	m.event(func() { m.c.Events().SetNamespace(ns) })
}

// waiting returns our waiting tasks, by id.
func (m *machine) waiting() []*api.TaskInfo {
	var tasks []*api.TaskInfo
	for _, id := range sortedKeys(m.c.Tasks()) {
		if t := m.c.Tasks()[id]; t.Job != nil && t.Waiting() {
			tasks = append(tasks, t)
		}
	}
	return tasks
}

// drawPlace returns nil if there is nothing to place. Actions that cannot do anything do not skip: led by a fuzzer
// the same one may come up endlessly, which counts as a failure then.
func (m *machine) drawPlace(t *rapid.T) (*api.TaskInfo, *api.NodeInfo) {
	tasks, names := m.waiting(), sortedKeys(m.nodes)
	if len(tasks) == 0 || len(names) == 0 {
		return nil, nil
	}
	return rapid.SampledFrom(tasks).Draw(t, "task"), m.c.Node(rapid.SampledFrom(names).Draw(t, "node"))
}

func (m *machine) tryAndUndo(t *rapid.T) {
	task, node := m.drawPlace(t)
	if task == nil {
		return
	}
	m.c.Events().Recompute()
	before := audit.Dump(m.c)
	status := rapid.SampledFrom([]api.TaskStatus{api.Allocated, api.Pipelined}).Draw(t, "status")
	m.c.Ledger().Place(task, status, node)
	m.check(t)
	m.c.Ledger().Place(task, api.Pending, nil)
	if diff := cmp.Diff(before, audit.Dump(m.c)); diff != "" {
		t.Fatalf("trying and undoing leaves traces:\n%s", diff)
	}
}

func (m *machine) assume(t *rapid.T) {
	m.c.Events().Recompute() // Admissible depends on it
	task, node := m.drawPlace(t)
	if task == nil || m.c.Admissible(task.Job) != nil {
		return
	}
	m.c.Ledger().Place(task, api.Allocated, node)
	m.c.Ledger().AssumePod(task, dawn.Add(time.Duration(rapid.IntRange(0, 9).Draw(t, "now"))*time.Second))
	m.inFlight[task.ID] = true
	m.last = func() {}
}

func (m *machine) bindFails(t *rapid.T) {
	ids := sortedKeys(m.c.Tasks())
	if len(ids) == 0 {
		return
	}
	id := rapid.SampledFrom(ids).Draw(t, "task")
	delete(m.inFlight, id)
	m.event(func() { m.c.Ledger().BindFailed(id, "why") })
}

func (m *machine) evict(t *rapid.T) {
	var tasks []*api.TaskInfo
	for _, id := range sortedKeys(m.c.Tasks()) {
		if task := m.c.Tasks()[id]; task.Evictable() {
			tasks = append(tasks, task)
		}
	}
	if len(tasks) == 0 {
		return
	}
	m.c.Events().Recompute()
	m.c.Ledger().MarkEvicting(rapid.SampledFrom(tasks).Draw(t, "victim"))
	m.last = func() {}
}

func (m *machine) evictionFails(t *rapid.T) {
	ids := sortedKeys(m.c.Tasks())
	if len(ids) == 0 {
		return
	}
	id := rapid.SampledFrom(ids).Draw(t, "task")
	m.event(func() { m.c.Ledger().EvictionFailed(id) })
}

func (m *machine) check(t *rapid.T) {
	if err := audit.Model(m.c); err != nil {
		t.Fatal(err)
	}
	for id, task := range m.c.Tasks() {
		if task.InFlight() != m.inFlight[id] {
			t.Fatalf("task %s in flight: %t", id, task.InFlight())
		}
	}
}

func (m *machine) compare(t *rapid.T) {
	m.c.Events().Recompute()
	m.check(t)
	fresh := m.rebuilt(rapid.Int64().Draw(t, "order"))
	if err := audit.Model(fresh); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(audit.Dump(fresh), audit.Dump(m.c)); diff != "" {
		t.Fatalf("the model (+) is not what its objects describe (-):\n%s", diff)
	}
}

// rebuilt makes a model from the final objects in a random order, and from the record of the operations in flight.
func (m *machine) rebuilt(seed int64) *model.Cluster {
	c := model.NewCluster(model.Options{
		SchedulerNames: []string{ourScheduler}, DefaultQueue: "default", GroupSources: api.AllGroupSources(), InFlight: m.c.InFlight(),
		OwnerRules: labelRules{}, KueueGroups: true,
	})
	var events []func()
	for _, uid := range sortedKeys(m.pods) { // that an owner is gone counts for the pods that existed by then
		if task := m.c.Tasks()[api.TaskID(uid)]; task.Tracking.OwnerGone {
			c.Events().SetPod(m.pods[uid])
			model.Owners(c).Gone(*task.Tracking.Owner)
		} else {
			events = append(events, func() { c.Events().SetPod(m.pods[uid]) })
		}
	}
	for _, name := range sortedKeys(m.nodes) {
		events = append(events, func() { c.Events().SetNode(m.nodes[name]) })
	}
	for _, name := range sortedKeys(m.devices) {
		events = append(events, func() { c.Events().SetDevices(name, m.devices[name]) })
	}
	events = append(events, func() { c.Events().SetDeviceResources(m.classes) })
	for _, key := range sortedKeys(m.claims) {
		events = append(events, func() { c.Events().SetDeviceClaim(key, m.claims[key]) })
	}
	for _, key := range sortedKeys(m.groups) {
		events = append(events, func() { c.Events().SetPodGroup(m.groups[key]) })
	}
	for _, id := range sortedKeys(m.others) {
		events = append(events, func() { c.Events().SetGroup(m.others[id]) })
	}
	for _, name := range sortedKeys(m.owners) {
		events = append(events, func() { model.Owners(c).Set(m.owners[name]) })
	}
	for _, name := range sortedKeys(m.queues) {
		events = append(events, func() { c.Events().SetQueue(m.queues[name]) })
	}
	for _, class := range m.priorities {
		events = append(events, func() { c.Events().SetPriorityClass(class) })
	}
	for _, ns := range m.namespaces {
		events = append(events, func() { c.Events().SetNamespace(ns) })
	}
	rand.New(rand.NewSource(seed)).Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
	for _, apply := range events {
		apply()
	}
	c.Events().Recompute()
	return c
}
