package schedtest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

const (
	schedulerName = "batch-scheduler"
	defaultQueue  = "default"
)

// T is the part of a test that a Cluster needs; *testing.T and *rapid.T implement it.
type T interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Context() context.Context
}

// Cluster is a fake API server for a scheduler without clients. It is not safe for concurrent use.
type Cluster struct {
	t         T
	informers informers.SharedInformerFactory
	replicas  replicas

	// Existing objects. Objects are never modified, only replaced.
	nodes  map[string]*v1.Node
	queues map[string]*v1alpha1.Queue
	groups map[string]*v1alpha1.PodGroup // by namespace/name
	pods   map[types.UID]*v1.Pod

	missing map[string]bool                // names declared as not existing: "node n", "queue q"
	names   map[string]string              // spelling in tests, of groups by namespace/name, and of pods by UID
	uids    map[string]types.UID           // of pods, by the name in tests
	numbers map[string]int                 // of the next pod of a row, by its title
	created map[string]int                 // number of objects created with that name
	clock   *clocktesting.FakePassiveClock // advances with each created object and each cycle

	inFlight          []Bind             // decided, without a result yet
	deletedPods       map[string]*v1.Pod // deleted pods, by the name in tests
	evictionsInFlight []string           // pods whose eviction is decided, without a result yet
	last              *cycle
	skipConvergence   bool
}

// Option changes how a Cluster schedules.
type Option func(*settings)

type settings struct {
	config          string
	seed            int64
	skipConvergence bool
}

// WithConfig replaces the built-in configuration by a policy in YAML.
func WithConfig(yaml string) Option { return func(s *settings) { s.config = yaml } }

// WithShuffleSeed sets the seed for the order in which the second model receives the objects.
func WithShuffleSeed(seed int64) Option { return func(s *settings) { s.seed = seed } }

// WithoutConvergenceChecks disables the checks that each plan contributes to convergence, for tests of what happens without.
func WithoutConvergenceChecks() Option { return func(s *settings) { s.skipConvergence = true } }

// New creates a cluster from the rows, scheduled by the plugins and actions of the registry. The built-in
// configuration applies unless an option changes it. Invalid rows or options fail the test.
func New(t T, registry *framework.Registry, given []Row, options ...Option) *Cluster {
	t.Helper()
	s := settings{config: conf.DefaultYAML(), seed: 1}
	for _, option := range options {
		option(&s)
	}
	policy, _, err := conf.Parse("the configuration of the test", []byte(s.config), registry.Catalog())
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{
		t:               t,
		informers:       informers.NewSharedInformerFactory(fake.NewClientset(), 0),
		nodes:           map[string]*v1.Node{},
		queues:          map[string]*v1alpha1.Queue{},
		groups:          map[string]*v1alpha1.PodGroup{},
		pods:            map[types.UID]*v1.Pod{},
		missing:         map[string]bool{},
		names:           map[string]string{},
		uids:            map[string]types.UID{},
		numbers:         map[string]int{},
		created:         map[string]int{},
		deletedPods:     map[string]*v1.Pod{},
		skipConvergence: s.skipConvergence,
		clock:           clocktesting.NewFakePassiveClock(epoch),
	}
	c.replicas = newReplicas(t, registry, policy, framework.Handle{Informers: c.informers, Clock: c.clock, GangGrace: time.Minute}, s.seed)
	c.setNamespace(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}})
	c.Add(given...)
	return c
}

// Run runs one cycle over the rows and returns the transcript.
func Run(t T, registry *framework.Registry, given []Row, options ...Option) string {
	t.Helper()
	return New(t, registry, given, options...).Cycle()
}

// Add declares more rows for the next cycle.
func (c *Cluster) Add(rows ...Row) {
	c.t.Helper()
	for _, row := range rows {
		row(c)
	}
}

// dawn is the creation time of the first object.
//
//nolint:gochecknoglobals // Go has no constants of struct types
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// meta returns metadata with a unique creation time and a UID that distinguishes objects of the same name.
func (c *Cluster) meta(namespace, name string) metav1.ObjectMeta {
	c.Wait(time.Second)
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: c.uid(namespace, name),
		CreationTimestamp: metav1.NewTime(c.clock.Now()),
		Labels:            map[string]string{}, Annotations: map[string]string{},
	}
}

func (c *Cluster) uid(namespace, name string) types.UID {
	key := namespace + "/" + name
	c.created[key]++
	return types.UID(fmt.Sprintf("%s.%s.%d", namespace, name, c.created[key]))
}

func mustParse(text string) *resource.Quantity {
	q := resource.MustParse(text)
	return &q
}

func (c *Cluster) name(pod *v1.Pod, name string) {
	c.names[string(pod.UID)] = name
	c.uids[name] = pod.UID
}

// An event is a change that all models receive before the next cycle. In the shuffled model only the last event of a
// key counts.
type event struct {
	key   string
	apply func(*model.Cluster)
}

func (c *Cluster) enqueue(key string, apply func(*model.Cluster)) {
	c.replicas.enqueue(event{key, apply})
}

func (c *Cluster) setNode(n *v1.Node) {
	c.nodes[n.Name] = n
	delete(c.missing, "node "+n.Name)
	c.enqueue("node "+n.Name, func(m *model.Cluster) { m.Events().SetNode(n) })
}

func (c *Cluster) setQueue(q *v1alpha1.Queue) {
	c.queues[q.Name] = q
	delete(c.missing, "queue "+q.Name)
	c.enqueue("queue "+q.Name, func(m *model.Cluster) { m.Events().SetQueue(q) })
}

func (c *Cluster) setGroup(g *v1alpha1.PodGroup) {
	c.groups[g.Namespace+"/"+g.Name] = g
	c.enqueue("group "+string(g.UID), func(m *model.Cluster) { m.Events().SetPodGroup(g) })
}

func (c *Cluster) setPod(p *v1.Pod) {
	c.pods[p.UID] = p
	c.enqueue("pod "+string(p.UID), func(m *model.Cluster) { m.Events().SetPod(p) })
}

func (c *Cluster) setPriorityClass(class *schedulingv1.PriorityClass) {
	c.enqueue("class "+class.Name, func(m *model.Cluster) { m.Events().SetPriorityClass(class) })
}

// setNamespace also updates the lister from which kube-scheduler's plugins read namespaces.
func (c *Cluster) setNamespace(ns *v1.Namespace) {
	if err := c.informers.Core().V1().Namespaces().Informer().GetIndexer().Add(ns); err != nil {
		c.t.Fatal(err)
	}
	c.enqueue("namespace "+ns.Name, func(m *model.Cluster) { m.Events().SetNamespace(ns) })
}

// Pods returns the names of all pods, oldest first.
func (c *Cluster) Pods() []string {
	names := make([]string, 0, len(c.pods))
	for _, p := range c.sortedPods() {
		names = append(names, c.names[string(p.UID)])
	}
	return names
}

// PodsOn returns the names of the pods on a node, oldest first.
func (c *Cluster) PodsOn(node string) []string {
	var names []string
	for _, p := range c.sortedPods() {
		if p.Spec.NodeName == node {
			names = append(names, c.names[string(p.UID)])
		}
	}
	return names
}

// InFlight returns the names of pods whose bind has no result yet, in the order of decisions.
func (c *Cluster) InFlight() []string {
	names := make([]string, len(c.inFlight))
	for i, b := range c.inFlight {
		names[i] = b.Pod
	}
	return names
}

// Groups returns the names of all groups, sorted.
func (c *Cluster) Groups() []string {
	names := make([]string, 0, len(c.groups))
	for key := range c.groups {
		names = append(names, c.names[key])
	}
	slices.Sort(names)
	return names
}

// Nodes returns the names of all nodes, sorted.
func (c *Cluster) Nodes() []string { return slices.Sorted(maps.Keys(c.nodes)) }

// Queues returns the names of all queues, sorted.
func (c *Cluster) Queues() []string { return slices.Sorted(maps.Keys(c.queues)) }
