// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"maps"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	batchfake "github.com/batch-scheduler/batch-scheduler/pkg/client/clientset/versioned/fake"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/audit"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/cache/bind"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/cache/evict"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest/fakecluster"
)

func TestModelEqualsInformers(t *testing.T) { rapid.Check(t, modelEqualsInformers) }

// FuzzModelEqualsInformers is TestModelEqualsInformers, guided by coverage.
func FuzzModelEqualsInformers(f *testing.F) {
	f.Add([]byte("a sequence of events"))
	f.Fuzz(rapid.MakeFuzz(modelEqualsInformers))
}

// modelEqualsInformers checks that after each Apply the model equals one built from what the informers
// show and from what is in flight, for any order of events across kinds and any decisions meanwhile.
func modelEqualsInformers(t *rapid.T) {
	s := newFakeInformers(t)
	t.Repeat(map[string]func(*rapid.T){
		"pod":            s.pods.write,
		"more of pods":   s.pods.write,
		"node":           s.nodes.write,
		"group":          s.groups.write,
		"queue":          s.queues.write,
		"class":          s.classes.write,
		"namespace":      s.namespaces.write,
		"budget":         s.budgets.write,
		"deliver":        s.deliver,
		"deliver a kind": s.deliverKind,
		"compact":        s.compactQueue,
		"cycle":          s.cycle,
		"bind":           s.bind,
		"bind ends":      s.bindEnds,
		"evict":          s.evictSome,
		"eviction ends":  s.evictionEnds,
		"try and undo":   s.tryAndUndo,
		"rebuild":        s.rebuild,
	})
	for _, feed := range s.feeds() {
		feed.deliverAll(t)
	}
	s.cycle(t)
	for _, feed := range s.feeds() {
		feed.untouched(t)
	}
}

// fakeInformers is a cache whose informers, binder and evictor are operated by the test.
type fakeInformers struct {
	*Cache
	version int // of the last object written

	pods       *feed[*v1.Pod]
	nodes      *feed[*v1.Node]
	groups     *feed[*v1alpha1.PodGroup]
	queues     *feed[*v1alpha1.Queue]
	classes    *feed[*schedulingv1.PriorityClass]
	namespaces *feed[*v1.Namespace]
	budgets    *feed[*policyv1.PodDisruptionBudget]

	// What is in flight as far as the model can know.
	binds     map[types.UID]*bind.Request
	evictions map[types.UID]*evict.Victim
	reported  map[types.UID]bool // of those, the ones whose result was reported
	hidden    map[types.UID]bool // vanished pods whose deletion their informer has not shown
}

func newFakeInformers(t *rapid.T) *fakeInformers {
	kube := fake.NewSimpleClientset()
	c, err := New(Options{
		SchedulerNames: []string{fakecluster.SchedulerName}, DefaultQueue: "default", Kube: kube, Batch: batchfake.NewSimpleClientset(),
		Informers: informers.NewSharedInformerFactory(kube, 0), Log: logr.Discard(),
	})
	if err != nil {
		t.Fatal(err)
	}
	s := &fakeInformers{Cache: c, binds: map[types.UID]*bind.Request{}, evictions: map[types.UID]*evict.Victim{}, reported: map[types.UID]bool{}, hidden: map[types.UID]bool{}}
	c.binder, c.evictor = fakeBinder{s.binds}, fakeEvictor{s.evictions}
	s.pods = newFeed(s, podKind(c.options.SchedulerNames), drawPod, model.Events.SetPod)
	s.pods.onShown = func(p *v1.Pod) { delete(s.hidden, p.UID) }
	s.nodes = newFeed(s, nodeKind(), drawNode, model.Events.SetNode)
	s.groups = newFeed(s, podGroupKind(), drawGroup, model.Events.SetPodGroup)
	s.queues = newFeed(s, queueKind(), drawQueue, model.Events.SetQueue)
	s.classes = newFeed(s, priorityClassKind(), drawClass, model.Events.SetPriorityClass)
	s.namespaces = newFeed(s, namespaceKind(), drawNamespace, model.Events.SetNamespace)
	s.budgets = newFeed(s, budgetKind(), drawBudget, model.Events.SetBudget)
	return s
}

func (s *fakeInformers) feeds() []feeder {
	return []feeder{s.pods, s.nodes, s.groups, s.queues, s.classes, s.namespaces, s.budgets}
}

func (s *fakeInformers) deliver(t *rapid.T)     { s.feed(t).deliverOne(t) }
func (s *fakeInformers) deliverKind(t *rapid.T) { s.feed(t).deliverAll(t) }

func (s *fakeInformers) feed(t *rapid.T) feeder {
	feeds := s.feeds()
	return feeds[rapid.IntRange(0, len(feeds)-1).Draw(t, "kind")]
}

func (s *fakeInformers) compactQueue(*rapid.T) {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	s.queue.compact()
}

// cycle is the beginning of a cycle; it compares the models.
func (s *fakeInformers) cycle(t *rapid.T) {
	s.Apply()
	s.Model().Events().Recompute()
	for uid := range s.binds {
		if pod := s.shownPod(uid); pod == nil || pod.Spec.NodeName != "" || s.reported[uid] {
			delete(s.binds, uid)
		}
	}
	for uid := range s.evictions {
		if pod := s.shownPod(uid); pod == nil || pod.DeletionTimestamp != nil || ended(pod) || s.reported[uid] {
			delete(s.evictions, uid)
		}
	}
	clear(s.reported)
	s.compare(t)
}

func (s *fakeInformers) compare(t *rapid.T) {
	if err := audit.Model(s.Model()); err != nil {
		t.Fatal(err)
	}
	fresh := s.rebuilt(rapid.Int64().Draw(t, "order"))
	if diff := cmp.Diff(lines(fresh), lines(s.Model())); diff != "" {
		t.Fatalf("the model (+) is not what the informers show (-):\n%s", diff)
	}
	recorded := s.Model().InFlight()
	if got, want := slices.Sorted(maps.Keys(recorded.Binds())), taskIDs(s.binds); !slices.Equal(got, want) {
		t.Fatalf("the record has the binds %v, want %v", got, want)
	}
	if got, want := slices.Sorted(maps.Keys(recorded.Evictions())), taskIDs(s.evictions); !slices.Equal(got, want) {
		t.Fatalf("the record has the evictions %v, want %v", got, want)
	}
}

// rebuilt returns a model of what the informers show, applied in a random order, and of what is in flight.
func (s *fakeInformers) rebuilt(seed int64) *model.Cluster {
	inFlight := model.NewInFlight()
	for uid, r := range s.binds {
		inFlight.AddBind(api.TaskID(uid), model.InFlightBind{Node: r.Node, Commitment: &r.Commitment})
	}
	for uid := range s.evictions {
		inFlight.AddEviction(api.TaskID(uid))
	}
	c := s.emptyModel(inFlight)
	var events []func(*model.Cluster)
	for _, feed := range s.feeds() {
		events = append(events, feed.replay(s.hidden)...)
	}
	rand.New(rand.NewSource(seed)).Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
	for _, tell := range events {
		tell(c)
	}
	c.Events().Recompute()
	return c
}

func lines(c *model.Cluster) []string { return strings.Split(audit.Dump(c), "\n") }

func taskIDs[V any](m map[types.UID]V) []api.TaskID {
	var ids []api.TaskID
	for _, uid := range slices.Sorted(maps.Keys(m)) {
		ids = append(ids, api.TaskID(uid))
	}
	return ids
}

// shownPod is the pod of that UID as far as the informer has shown it.
func (s *fakeInformers) shownPod(uid types.UID) *v1.Pod {
	for _, pod := range s.pods.shown {
		if pod.given.UID == uid && !s.hidden[uid] {
			return pod.given
		}
	}
	return nil
}

// livingPod is the pod of that UID on the API server.
func (s *fakeInformers) livingPod(uid types.UID) *v1.Pod {
	for _, pod := range s.pods.server {
		if pod.UID == uid {
			return pod
		}
	}
	return nil
}

// tasksThat returns the tasks that satisfy a condition, by ID; there may be none. Actions without a task do
// nothing, instead of skipping: a fuzzer may draw the same action again and again, which counts as a
// failure if it skips.
func (s *fakeInformers) tasksThat(may func(*api.TaskInfo) bool) []*api.TaskInfo {
	var tasks []*api.TaskInfo
	for _, task := range s.Model().Tasks() {
		if may(task) {
			tasks = append(tasks, task)
		}
	}
	slices.SortFunc(tasks, func(a, b *api.TaskInfo) int { return cmpString(a.ID, b.ID) })
	return tasks
}

func drawTask(t *rapid.T, what string, tasks []*api.TaskInfo) *api.TaskInfo {
	return tasks[rapid.IntRange(0, len(tasks)-1).Draw(t, what)]
}

// node returns nil if the drawn node does not exist.
func (s *fakeInformers) node(t *rapid.T) *api.NodeInfo {
	return s.Model().Node(one(t, "node", "n0", "n1", "n2"))
}

func (s *fakeInformers) placeable(task *api.TaskInfo) bool {
	return task.Job != nil && task.Waiting() && s.Model().Admissible(task.Job) == nil
}

// bind commits placements of a job, as a statement does.
func (s *fakeInformers) bind(t *rapid.T) {
	tasks, nodes := s.tasksThat(s.placeable), []*api.NodeInfo{s.node(t), s.node(t)}
	if len(tasks) == 0 || slices.Contains(nodes, nil) {
		return
	}
	first := drawTask(t, "task", tasks)
	var decisions []api.Decision
	for _, task := range tasks {
		if task == first || task.Job == first.Job && rapid.Bool().Draw(t, "too") {
			n := nodes[len(decisions)%len(nodes)]
			s.Model().Ledger().Place(task, api.Allocated, n)
			decisions = append(decisions, api.Decision{Kind: api.Allocate, Task: task, Node: n})
		}
	}
	s.Commit(decisions)
	for _, d := range decisions {
		s.Model().Ledger().AssumePod(d.Task, time.Unix(0, 0))
	}
}

// fakeBinder and fakeEvictor keep what the cache hands over.
type fakeBinder struct{ binds map[types.UID]*bind.Request }

func (b fakeBinder) Enqueue(u *bind.Unit) {
	for _, r := range u.Requests {
		b.binds[r.UID] = r
	}
}

func (fakeBinder) Forget(types.UID)                     {}
func (fakeBinder) Yield(context.Context, time.Duration) {}
func (fakeBinder) Run(context.Context)                  {}

type fakeEvictor struct{ evictions map[types.UID]*evict.Victim }

func (e fakeEvictor) Enqueue(p *evict.Plan) {
	for _, victim := range p.Victims {
		e.evictions[victim.UID] = victim
	}
}

func (fakeEvictor) Forget(types.UID)                     {}
func (fakeEvictor) Yield(context.Context, time.Duration) {}
func (fakeEvictor) Run(context.Context)                  {}

// bindEnds plays the binder and the API server.
func (s *fakeInformers) bindEnds(t *rapid.T) {
	uid, ok := drawKey(t, "pod", s.binds)
	if !ok || s.reported[uid] {
		return
	}
	f, pod := s.binds[uid], s.livingPod(uid)
	switch {
	case pod == nil:
		results{s.Cache}.PodVanished(f)
		s.reported[uid], s.hidden[uid] = true, true
	case pod.Spec.NodeName != "": // bound already
	case rapid.Bool().Draw(t, "refused"):
		results{s.Cache}.BindFailed(f, errors.New("refused"))
		s.reported[uid] = true
	case rapid.Bool().Draw(t, "bound by another client"):
		s.pods.change(pod, func(p *v1.Pod) { p.Spec.NodeName = "n0" })
	default:
		s.pods.change(pod, func(p *v1.Pod) {
			p.Spec.NodeName = f.Node
			p.Annotations[v1alpha1.AnnotationQueue] = string(f.Commitment.Queue)
			p.Annotations[v1alpha1.AnnotationPodGroupUID] = string(f.Commitment.GroupUID)
		})
	}
}

// evictSome commits evictions, as a statement does.
func (s *fakeInformers) evictSome(t *rapid.T) {
	victims := s.tasksThat((*api.TaskInfo).Evictable)
	if len(victims) == 0 {
		return
	}
	victim := drawTask(t, "victim", victims)
	s.Model().Ledger().Place(victim, api.Releasing, victim.Node)
	s.Commit([]api.Decision{{Kind: api.Evict, Task: victim, Node: victim.Node, For: victim.Job, Cause: api.Preempted}})
	if got, want := s.evictions[victim.Pod.UID].Budget, model.BudgetOf(s.Model(), victim); got != want {
		t.Fatalf("the evictor knows the budget %q of pod %s, want %q", got, victim.Pod.Name, want)
	}
	s.Model().Ledger().MarkEvicting(victim)
}

// evictionEnds plays the evictor and the API server.
func (s *fakeInformers) evictionEnds(t *rapid.T) {
	uid, ok := drawKey(t, "pod", s.evictions)
	if !ok || s.reported[uid] {
		return
	}
	pod := s.livingPod(uid)
	switch {
	case pod == nil || pod.DeletionTimestamp != nil: // the informer shows it
	case rapid.Bool().Draw(t, "fails"):
		results{s.Cache}.EvictionFailed(s.evictions[uid], rapid.Bool().Draw(t, "refused"))
		if s.reported[uid] = true; rapid.Bool().Draw(t, "allowed") {
			results{s.Cache}.EvictionAllowed(uid)
		}
	case rapid.Bool().Draw(t, "at once"):
		s.pods.remove(pod)
	default:
		s.pods.change(pod, deleting)
	}
}

// tryAndUndo is a session that commits nothing: it reserves resources, places other tasks, and undoes both.
func (s *fakeInformers) tryAndUndo(t *rapid.T) {
	model := s.Model()
	tasks, node := s.tasksThat(s.placeable), s.node(t)
	if len(tasks) == 0 || node == nil {
		return
	}
	task, reserved := drawTask(t, "task", tasks), drawTask(t, "reserved", tasks)
	status := rapid.SampledFrom([]api.TaskStatus{api.Allocated, api.Pipelined}).Draw(t, "status")
	model.Events().Recompute()
	before := lines(model)
	var overdue []*api.TaskInfo
	model.EachReleasing(func(t *api.TaskInfo) { overdue = append(overdue, t) })
	for _, t := range overdue {
		model.Ledger().SetOverdue(t, true)
	}
	var kept *api.Reservation
	if reserved.Job.Queue != nil {
		kept = model.Ledger().Reserve(reserved.Job.Queue, []api.Decision{{Kind: api.Pipeline, Task: reserved, Node: node}})
	}
	model.Ledger().Place(task, status, node)
	model.Ledger().Place(task, api.Pending, nil)
	if kept != nil {
		model.Ledger().Unreserve(kept)
	}
	for _, t := range overdue {
		model.Ledger().SetOverdue(t, false)
	}
	if diff := cmp.Diff(before, lines(model)); diff != "" {
		t.Fatalf("undo leaves traces:\n%s", diff)
	}
}

// rebuild is what follows a cycle that panicked.
func (s *fakeInformers) rebuild(t *rapid.T) {
	s.Rebuild()
	s.cycle(t)
}
