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

// T is what a Cluster needs of a test; *testing.T and *rapid.T have it.
type T interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Context() context.Context
}

// Cluster plays the API server for a scheduler without clients. It is for one goroutine.
type Cluster struct {
	t         T
	informers informers.SharedInformerFactory
	replicas  replicas

	// What exists. Objects are never changed, only replaced.
	nodes  map[string]*v1.Node
	queues map[string]*v1alpha1.Queue
	groups map[string]*v1alpha1.PodGroup // by namespace/name
	pods   map[types.UID]*v1.Pod

	missing map[string]bool                // names declared as not existing: "node n", "queue q"
	names   map[string]string              // of groups by namespace/name, and of pods by UID, as tests spell them
	uids    map[string]types.UID           // of pods, by the name in tests
	numbers map[string]int                 // of the next pod in a row, by its title
	born    map[string]int                 // how often an object of that name was created
	clock   *clocktesting.FakePassiveClock // steps on with each object that is created and each cycle

	inFlight []Bind             // decided and not answered
	orphaned map[string]*v1.Pod // what was deleted, by the name in tests
	leaving  []string           // pods whose eviction is decided and not answered
	last     *cycle
	restless bool
}

// Option changes how a Cluster schedules.
type Option func(*settings)

type settings struct {
	config   string
	seed     int64
	restless bool
}

// WithConfig replaces the built-in configuration by a policy in YAML.
func WithConfig(yaml string) Option { return func(s *settings) { s.config = yaml } }

// Shuffled lets the second model hear of the objects in another order.
func Shuffled(seed int64) Option { return func(s *settings) { s.seed = seed } }

// Restless leaves out the checks that evictions come to an end, plan by plan: for tests of what
// happens if they do not.
func Restless() Option { return func(s *settings) { s.restless = true } }

// New makes a cluster of the rows, to be scheduled by the plugins and actions of the registry,
// with the built-in configuration unless an option says otherwise. What is wrong with any of it
// ends the test.
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
		t:         t,
		informers: informers.NewSharedInformerFactory(fake.NewClientset(), 0),
		nodes:     map[string]*v1.Node{},
		queues:    map[string]*v1alpha1.Queue{},
		groups:    map[string]*v1alpha1.PodGroup{},
		pods:      map[types.UID]*v1.Pod{},
		missing:   map[string]bool{},
		names:     map[string]string{},
		uids:      map[string]types.UID{},
		numbers:   map[string]int{},
		born:      map[string]int{},
		orphaned:  map[string]*v1.Pod{},
		restless:  s.restless,
		clock:     clocktesting.NewFakePassiveClock(dawn),
	}
	c.replicas = newReplicas(t, registry, policy, framework.Handle{Informers: c.informers, Clock: c.clock, GangGrace: time.Minute}, s.seed)
	c.setNamespace(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}})
	c.Add(given...)
	return c
}

// Run schedules the rows for one cycle and returns the transcript.
func Run(t T, registry *framework.Registry, given []Row, options ...Option) string {
	t.Helper()
	return New(t, registry, given, options...).Cycle()
}

// Add declares more rows; the next cycle sees them.
func (c *Cluster) Add(rows ...Row) {
	c.t.Helper()
	for _, row := range rows {
		row(c)
	}
}

// dawn is the time from which rows count.
//
//nolint:gochecknoglobals // Go has no constants of struct types
var dawn = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// meta makes metadata with a creation time of its own and a UID that tells incarnations apart.
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
	c.born[key]++
	return types.UID(fmt.Sprintf("%s.%s.%d", namespace, name, c.born[key]))
}

func mustParse(text string) *resource.Quantity {
	q := resource.MustParse(text)
	return &q
}

func (c *Cluster) name(pod *v1.Pod, name string) {
	c.names[string(pod.UID)] = name
	c.uids[name] = pod.UID
}

// An event is something that all models hear of before the next cycle. Of events with one key
// only the last counts where they are shuffled.
type event struct {
	key   string
	apply func(*model.Cluster)
}

func (c *Cluster) tell(key string, apply func(*model.Cluster)) {
	c.replicas.tell(event{key, apply})
}

func (c *Cluster) setNode(n *v1.Node) {
	c.nodes[n.Name] = n
	delete(c.missing, "node "+n.Name)
	c.tell("node "+n.Name, func(m *model.Cluster) { m.Events().SetNode(n) })
}

func (c *Cluster) setQueue(q *v1alpha1.Queue) {
	c.queues[q.Name] = q
	delete(c.missing, "queue "+q.Name)
	c.tell("queue "+q.Name, func(m *model.Cluster) { m.Events().SetQueue(q) })
}

func (c *Cluster) setGroup(g *v1alpha1.PodGroup) {
	c.groups[g.Namespace+"/"+g.Name] = g
	c.tell("group "+string(g.UID), func(m *model.Cluster) { m.Events().SetPodGroup(g) })
}

func (c *Cluster) setPod(p *v1.Pod) {
	c.pods[p.UID] = p
	c.tell("pod "+string(p.UID), func(m *model.Cluster) { m.Events().SetPod(p) })
}

func (c *Cluster) setPriorityClass(class *schedulingv1.PriorityClass) {
	c.tell("class "+class.Name, func(m *model.Cluster) { m.Events().SetPriorityClass(class) })
}

// setNamespace also feeds the lister that upstream's plugins read namespaces from.
func (c *Cluster) setNamespace(ns *v1.Namespace) {
	if err := c.informers.Core().V1().Namespaces().Informer().GetIndexer().Add(ns); err != nil {
		c.t.Fatal(err)
	}
	c.tell("namespace "+ns.Name, func(m *model.Cluster) { m.Events().SetNamespace(ns) })
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

// InFlight returns the names of pods whose bind has not been answered, in the order of decisions.
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
