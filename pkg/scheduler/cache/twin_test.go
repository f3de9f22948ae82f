package cache

import (
	"maps"
	"math/rand"
	"slices"
	"strings"
	"testing"

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
)

func TestWhatInformersShowIsTheModel(t *testing.T) { rapid.Check(t, whatInformersShowIsTheModel) }

// FuzzWhatInformersShow is TestWhatInformersShowIsTheModel, led by what the code covers.
func FuzzWhatInformersShow(f *testing.F) {
	f.Add([]byte("a sequence of events"))
	f.Fuzz(rapid.MakeFuzz(whatInformersShowIsTheModel))
}

// Whatever informers deliver, in whatever order across kinds, and whatever cycles decide meanwhile: after each Apply the
// model is the one that what they show describes, and what is still under way.
func whatInformersShowIsTheModel(t *rapid.T) {
	s := newStage(t)
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
		"condense":       s.condenseList,
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

// stage is a cache whose informers are played by hand, and nobody carries out what it commits.
type stage struct {
	*Cache
	version int // of the last object written

	pods       *feed[*v1.Pod]
	nodes      *feed[*v1.Node]
	groups     *feed[*v1alpha1.PodGroup]
	queues     *feed[*v1alpha1.Queue]
	classes    *feed[*schedulingv1.PriorityClass]
	namespaces *feed[*v1.Namespace]
	budgets    *feed[*policyv1.PodDisruptionBudget]

	// What is under way as far as the model can know.
	flying  map[types.UID]*flight
	doomed  map[types.UID]*eviction
	settled map[types.UID]bool // of those, whose end was told
	hidden  map[types.UID]bool // pods that vanished before their informer said so
}

func newStage(t *rapid.T) *stage {
	kube := fake.NewSimpleClientset()
	c, err := New(Options{
		SchedulerName: us, DefaultQueue: "default", Kube: kube, Batch: batchfake.NewSimpleClientset(),
		Informers: informers.NewSharedInformerFactory(kube, 0), Log: logr.Discard(),
	})
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{Cache: c, flying: map[types.UID]*flight{}, doomed: map[types.UID]*eviction{}, settled: map[types.UID]bool{}, hidden: map[types.UID]bool{}}
	s.pods = newFeed(s, c.podKind(), drawPod, (*api.Cluster).SetPod)
	s.pods.appeared = func(p *v1.Pod) { delete(s.hidden, p.UID) }
	s.nodes = newFeed(s, nodeKind(), drawNode, (*api.Cluster).SetNode)
	s.groups = newFeed(s, podGroupKind(), drawGroup, (*api.Cluster).SetPodGroup)
	s.queues = newFeed(s, queueKind(), drawQueue, (*api.Cluster).SetQueue)
	s.classes = newFeed(s, priorityClassKind(), drawClass, (*api.Cluster).SetPriorityClass)
	s.namespaces = newFeed(s, namespaceKind(), drawNamespace, (*api.Cluster).SetNamespace)
	s.budgets = newFeed(s, budgetKind(), drawBudget, (*api.Cluster).SetBudget)
	return s
}

func (s *stage) feeds() []feeder {
	return []feeder{s.pods, s.nodes, s.groups, s.queues, s.classes, s.namespaces, s.budgets}
}

func (s *stage) deliver(t *rapid.T)     { s.feed(t).deliverOne(t) }
func (s *stage) deliverKind(t *rapid.T) { s.feed(t).deliverAll(t) }

func (s *stage) feed(t *rapid.T) feeder {
	feeds := s.feeds()
	return feeds[rapid.IntRange(0, len(feeds)-1).Draw(t, "kind")]
}

func (s *stage) condenseList(*rapid.T) {
	s.changes.mu.Lock()
	defer s.changes.mu.Unlock()
	s.changes.condense()
}

// cycle is the beginning of a cycle, and compares.
func (s *stage) cycle(t *rapid.T) {
	s.Apply()
	s.Model().Recompute()
	for uid := range s.flying {
		if pod := s.shownPod(uid); pod == nil || pod.Spec.NodeName != "" || s.settled[uid] {
			delete(s.flying, uid)
		}
	}
	for uid := range s.doomed {
		if pod := s.shownPod(uid); pod == nil || pod.DeletionTimestamp != nil || ended(pod) || s.settled[uid] {
			delete(s.doomed, uid)
		}
	}
	clear(s.settled)
	s.compare(t)
}

func (s *stage) compare(t *rapid.T) {
	if err := s.Model().Audit(); err != nil {
		t.Fatal(err)
	}
	fresh := s.afresh(rapid.Int64().Draw(t, "order"))
	if diff := cmp.Diff(lines(fresh), lines(s.Model())); diff != "" {
		t.Fatalf("the model (+) is not what the informers show (-):\n%s", diff)
	}
	if got, want := slices.Sorted(maps.Keys(s.flights)), slices.Sorted(maps.Keys(s.flying)); !slices.Equal(got, want) {
		t.Fatalf("the cache believes in the flights %v, and there are %v", got, want)
	}
	if got, want := slices.Sorted(maps.Keys(s.leaving)), slices.Sorted(maps.Keys(s.doomed)); !slices.Equal(got, want) {
		t.Fatalf("the cache believes in the evictions %v, and there are %v", got, want)
	}
}

// afresh makes a model of what the informers show, told in a random order, and of what is under way.
func (s *stage) afresh(seed int64) *api.Cluster {
	c := s.emptyModel()
	var events []func(*api.Cluster)
	for _, feed := range s.feeds() {
		events = append(events, feed.story(s.hidden)...)
	}
	rand.New(rand.NewSource(seed)).Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
	for _, tell := range events {
		tell(c)
	}
	for uid, f := range s.flying {
		c.RestoreAssumed(api.TaskID(uid), f.node, f.Commitment)
	}
	for uid := range s.doomed {
		c.MarkEvicting(c.Tasks[api.TaskID(uid)])
	}
	c.Recompute()
	return c
}

func lines(model *api.Cluster) []string { return strings.Split(model.Dump(), "\n") }

// shownPod is the pod of that UID as far as the informer has shown it.
func (s *stage) shownPod(uid types.UID) *v1.Pod {
	for _, pod := range s.pods.shown {
		if pod.given.UID == uid && !s.hidden[uid] {
			return pod.given
		}
	}
	return nil
}

// livingPod is the pod of that UID on the API server.
func (s *stage) livingPod(uid types.UID) *v1.Pod {
	for _, pod := range s.pods.server {
		if pod.UID == uid {
			return pod
		}
	}
	return nil
}

// tasksThat returns tasks by id, maybe none. Actions that cannot do anything do not skip: led by a fuzzer the same one
// may come up for ever, which counts as a failure then.
func (s *stage) tasksThat(may func(*api.TaskInfo) bool) []*api.TaskInfo {
	var tasks []*api.TaskInfo
	for _, task := range s.Model().Tasks {
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

// node returns nil if it draws one that is not there.
func (s *stage) node(t *rapid.T) *api.NodeInfo {
	return s.Model().Node(one(t, "node", "n0", "n1", "n2"))
}

func (s *stage) placeable(task *api.TaskInfo) bool {
	return task.Job != nil && task.Waiting() && s.Model().Admissible(task.Job) == nil
}

// bind commits placements of a job, as a statement does.
func (s *stage) bind(t *rapid.T) {
	tasks, nodes := s.tasksThat(s.placeable), []*api.NodeInfo{s.node(t), s.node(t)}
	if len(tasks) == 0 || slices.Contains(nodes, nil) {
		return
	}
	first := drawTask(t, "task", tasks)
	var decisions []api.Decision
	for _, task := range tasks {
		if task == first || task.Job == first.Job && rapid.Bool().Draw(t, "too") {
			n := nodes[len(decisions)%len(nodes)]
			s.Model().Place(task, api.Allocated, n)
			decisions = append(decisions, api.Decision{Kind: api.Allocate, Task: task, Node: n})
		}
	}
	s.Commit(decisions)
	for _, d := range decisions {
		s.Model().AssumePod(d.Task)
	}
	for _, unit := range s.binder.queue {
		for _, f := range unit.flights {
			s.flying[f.uid] = f
		}
	}
	s.binder.queue, s.binder.waiting = nil, 0
}

// bindEnds plays the binder and the API server.
func (s *stage) bindEnds(t *rapid.T) {
	uid, ok := drawKey(t, "pod", s.flying)
	if !ok || s.settled[uid] {
		return
	}
	f, pod := s.flying[uid], s.livingPod(uid)
	switch {
	case pod == nil:
		s.vanished(f)
		s.settled[uid], s.hidden[uid] = true, true
	case pod.Spec.NodeName != "": // it has landed
	case rapid.Bool().Draw(t, "refused"):
		s.refused(f)
		s.settled[uid] = true
	case rapid.Bool().Draw(t, "somebody was faster"):
		s.pods.change(pod, func(p *v1.Pod) { p.Spec.NodeName = "n0" })
	default:
		s.pods.change(pod, func(p *v1.Pod) {
			p.Spec.NodeName = f.node
			for key, value := range f.binding().Annotations {
				p.Annotations[key] = value
			}
		})
	}
}

// evictSome commits evictions, as a statement does.
func (s *stage) evictSome(t *rapid.T) {
	victims := s.tasksThat((*api.TaskInfo).Evictable)
	if len(victims) == 0 {
		return
	}
	victim := drawTask(t, "victim", victims)
	s.Model().Place(victim, api.Releasing, victim.Node)
	s.Commit([]api.Decision{{Kind: api.Evict, Task: victim, Node: victim.Node, For: victim.Job, Cause: api.Preempted}})
	s.Model().MarkEvicting(victim)
	for _, plan := range s.evictor.queue {
		for _, e := range plan.victims {
			s.doomed[e.uid] = e
		}
	}
	s.evictor.queue = nil
}

// evictionEnds plays the evictor and the API server.
func (s *stage) evictionEnds(t *rapid.T) {
	uid, ok := drawKey(t, "pod", s.doomed)
	if !ok || s.settled[uid] {
		return
	}
	pod := s.livingPod(uid)
	switch {
	case pod == nil || pod.DeletionTimestamp != nil: // it needs nobody to say so
	case rapid.Bool().Draw(t, "fails"):
		s.spared(s.doomed[uid], rapid.Bool().Draw(t, "refused"))
		if s.settled[uid] = true; rapid.Bool().Draw(t, "pardoned") {
			s.pardoned(uid)
		}
	case rapid.Bool().Draw(t, "at once"):
		s.pods.remove(pod)
	default:
		s.pods.change(pod, deleting)
	}
}

// tryAndUndo is a session that commits nothing: it promises room, places others, and gives up.
func (s *stage) tryAndUndo(t *rapid.T) {
	model := s.Model()
	tasks, node := s.tasksThat(s.placeable), s.node(t)
	if len(tasks) == 0 || node == nil {
		return
	}
	task, promised := drawTask(t, "task", tasks), drawTask(t, "promised", tasks)
	status := rapid.SampledFrom([]api.TaskStatus{api.Allocated, api.Pipelined}).Draw(t, "status")
	model.Recompute()
	before := lines(model)
	var overdue []*api.TaskInfo
	model.EachReleasing(func(t *api.TaskInfo) { overdue = append(overdue, t) })
	for _, t := range overdue {
		model.SetOverdue(t, true)
	}
	var kept *api.Reservation
	if promised.Job.Queue != nil {
		kept = model.Reserve(promised.Job.Queue, []api.Decision{{Kind: api.Pipeline, Task: promised, Node: node}})
	}
	model.Place(task, status, node)
	model.Place(task, api.Pending, nil)
	if kept != nil {
		model.Unreserve(kept)
	}
	for _, t := range overdue {
		model.SetOverdue(t, false)
	}
	if diff := cmp.Diff(before, lines(model)); diff != "" {
		t.Fatalf("trying and undoing leaves traces:\n%s", diff)
	}
}

// rebuild is what follows a cycle that panicked.
func (s *stage) rebuild(t *rapid.T) {
	s.Rebuild()
	s.cycle(t)
}
