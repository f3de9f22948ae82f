package api

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// Options says whose pods a Cluster is about.
type Options struct {
	SchedulerName string  // pods with this spec.schedulerName are ours
	DefaultQueue  QueueID // the queue of those who name none
}

// Cluster is the model. Only the scheduling goroutine may touch it.
type Cluster struct {
	Options
	Dims *Dimensions

	Tasks  map[TaskID]*TaskInfo
	Jobs   map[JobID]*JobInfo
	Queues map[QueueID]*QueueInfo
	nodes  map[string]*NodeInfo

	// byIndex holds existing nodes by NodeInfo.Index; nil where an index is free.
	byIndex   []*NodeInfo
	freeIndex []int
	rankStale bool // a node has come since Rank was set

	groups          map[types.UID]*v1alpha1.PodGroup
	groupByName     map[string]*v1alpha1.PodGroup // by namespace/name
	priorities      map[string]int32              // priority classes
	namespaces      map[string]namespace
	budgets         map[string]map[string]*budget // by namespace and name
	releasing       map[*TaskInfo]struct{}        // on nodes
	unconfirmed     map[*TaskInfo]struct{}        // to be evicted, and the API server has not shown it yet
	evictionBlocked map[*TaskInfo]struct{}        // see Protect
	signatures      map[string]*Signature
	terms           *terms
	orphaned        map[types.UID]map[JobID]*JobInfo // jobs of members whose group is gone, by its UID

	// generation is the source of all generations; it counts every change of the model, and
	// arrivals those that are only about tasks without a node.
	generation, arrivals uint64
	// nodeSpecs, members, outside and labelled count changes of node objects, of the set of shapes
	// that have members, of pods that belong to no queue, and of namespaces.
	nodeSpecs, members, foreign, namespaceChanges uint64

	nodeChanges, nodeSpecChanges Journal
	dirty                        []*JobInfo
	waiting                      map[*JobInfo]struct{} // as of the last Settle
}

type namespace struct {
	labels      labels.Set
	terminating bool
}

// NewCluster returns an empty model.
func NewCluster(options Options) *Cluster {
	return &Cluster{
		Options:         options,
		Dims:            NewDimensions(),
		Tasks:           map[TaskID]*TaskInfo{},
		Jobs:            map[JobID]*JobInfo{},
		Queues:          map[QueueID]*QueueInfo{},
		nodes:           map[string]*NodeInfo{},
		groups:          map[types.UID]*v1alpha1.PodGroup{},
		groupByName:     map[string]*v1alpha1.PodGroup{},
		priorities:      map[string]int32{},
		orphaned:        map[types.UID]map[JobID]*JobInfo{},
		namespaces:      map[string]namespace{},
		budgets:         map[string]map[string]*budget{},
		releasing:       map[*TaskInfo]struct{}{},
		unconfirmed:     map[*TaskInfo]struct{}{},
		evictionBlocked: map[*TaskInfo]struct{}{},
		signatures:      map[string]*Signature{},
		terms:           newTerms(),
		waiting:         map[*JobInfo]struct{}{},
	}
}

// Generation counts changes of the model; equal generations mean that nothing happened.
func (c *Cluster) Generation() uint64 { return c.generation }

// PlacementGeneration counts changes of the model other than those of tasks that have no node: while
// it stands still nothing was added to the cluster, or taken from it, but tasks that wait.
func (c *Cluster) PlacementGeneration() uint64 { return c.generation - c.arrivals }

// NotifyExternalChange counts a change outside of the model that plugins read themselves, such as that of a
// volume or claim, so that the next cycle is not skipped.
func (c *Cluster) NotifyExternalChange() { c.generation++ }

// NodeSpecGeneration counts changes of node objects.
func (c *Cluster) NodeSpecGeneration() uint64 { return c.nodeSpecs }

// MemberGeneration counts changes of the set of shapes that members of queues have.
func (c *Cluster) MemberGeneration() uint64 { return c.members }

// ForeignGeneration counts changes of pods on nodes that belong to no queue.
func (c *Cluster) ForeignGeneration() uint64 { return c.foreign }

// NamespaceGeneration counts changes of namespaces.
func (c *Cluster) NamespaceGeneration() uint64 { return c.namespaceChanges }

// NodeChanges is the journal of nodes whose accounts or objects changed.
func (c *Cluster) NodeChanges() *Journal { return &c.nodeChanges }

// NodeSpecChanges is the journal of nodes whose objects changed, came or went.
func (c *Cluster) NodeSpecChanges() *Journal { return &c.nodeSpecChanges }

// Nodes returns existing nodes by index; entries may be nil. The slice belongs to the model.
func (c *Cluster) Nodes() []*NodeInfo { return c.byIndex }

// Node returns the existing node of that name, or nil.
func (c *Cluster) Node(name string) *NodeInfo {
	if n := c.nodes[name]; n != nil && n.Exists() {
		return n
	}
	return nil
}

// CountNodes returns how many nodes exist.
func (c *Cluster) CountNodes() int { return len(c.byIndex) - len(c.freeIndex) }

// SortedJobs returns all jobs by id.
func (c *Cluster) SortedJobs() []*JobInfo {
	jobs := make([]*JobInfo, 0, len(c.Jobs))
	for _, j := range c.Jobs {
		jobs = append(jobs, j)
	}
	slices.SortFunc(jobs, func(a, b *JobInfo) int { return cmp.Compare(a.ID, b.ID) })
	return jobs
}

// SortedQueues returns all queues by creation, then name.
func (c *Cluster) SortedQueues() []*QueueInfo {
	queues := make([]*QueueInfo, 0, len(c.Queues))
	for _, q := range c.Queues {
		queues = append(queues, q)
	}
	slices.SortFunc(queues, func(a, b *QueueInfo) int {
		return CompareAge(a.Created, b.Created, string(a.ID), string(b.ID))
	})
	return queues
}

// Terminating tells whether a namespace is being deleted and takes no new pods.
func (c *Cluster) Terminating(name string) bool { return c.namespaces[name].terminating }

// NamespaceLabels returns the labels of a namespace, and whether it is known. Read only.
func (c *Cluster) NamespaceLabels(name string) (labels.Set, bool) {
	ns, known := c.namespaces[name]
	return ns.labels, known
}

// NamespacesSelected returns the names of the namespaces that selector matches, sorted.
func (c *Cluster) NamespacesSelected(selector labels.Selector) []string {
	var names []string
	for name, ns := range c.namespaces {
		if selector.Matches(ns.labels) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// ClassOf returns the class of t as the living terms see it now. The result is shared by all
// tasks that the scheduler need not tell apart, and valid until the set of terms changes.
func (c *Cluster) ClassOf(t *TaskInfo) *EquivalenceClass {
	if now := (classesAt{c.terms.generation, c.namespaceChanges}); t.class == nil || t.classAt != now {
		t.class, t.classAt = c.classOf(t), now
	}
	return t.class
}

// classesAt is all that classes depend on, besides the pods that are in them.
type classesAt struct{ terms, namespaces uint64 }

func (c *Cluster) classOf(t *TaskInfo) *EquivalenceClass {
	key := c.terms.selecting(t.Pod, c.namespaces[t.Pod.Namespace].labels)
	if t.Signature.classesAt != c.terms.generation { // classes of terms that are gone pile up
		clear(t.Signature.classes)
		t.Signature.classesAt = c.terms.generation
	}
	class, ok := t.Signature.classes[key]
	if !ok {
		class = &EquivalenceClass{Signature: t.Signature, Selected: key != ""}
		t.Signature.classes[key] = class
	}
	return class
}

// MemberSignatures returns the shapes that holding or waiting members of queues have, in no order.
func (c *Cluster) MemberSignatures() []*Signature {
	var signatures []*Signature
	for _, s := range c.signatures {
		if s.HasMembers() {
			signatures = append(signatures, s)
		}
	}
	return signatures
}

// Place gives t a status and node within a session: the one door for decisions. Passing what
// Task.Status and Task.Node were before undoes it.
func (c *Cluster) Place(t *TaskInfo, status TaskStatus, node *NodeInfo) {
	c.detach(t)
	t.Status, t.Node = status, node
	c.attach(t)
}

// AssumePod records that the bind of t to its node is on its way: from now on the decision
// overrides what the watch shows, until Refused or the watch settles it.
func (c *Cluster) AssumePod(t *TaskInfo) {
	t.inFlight = t.Job.commitment()
	if t.Status != Allocated {
		node := t.Node
		c.detach(t)
		t.Status, t.Node = Binding, node
		c.attach(t)
		return
	}
	c.generation++
	t.Job.account(t, -1) // to its node it is the same
	t.Status = Binding
	t.Job.account(t, +1)
	t.Job.Generation = c.generation
	c.markDirty(t.Job)
}

// BindFailed ends the flight of a bind that has certainly not taken effect, for the reason given.
func (c *Cluster) BindFailed(id TaskID, why string) {
	t := c.Tasks[id]
	if t == nil || t.inFlight == nil {
		return
	}
	c.detach(t)
	before := t.Node
	t.inFlight, t.lastBindError = nil, why
	t.Status, t.Node = statusOf(t.Pod), c.nodeOf(t.Pod)
	c.joinJob(t) // the commitment is void: what the pod says counts again
	c.attach(t)
	c.forgetNode(before)
}

// RestoreAssumed puts a flight, as Launch began it, into a model that was built anew. Unknown pods and
// pods that the API server shows on a node are left alone.
func (c *Cluster) RestoreAssumed(id TaskID, node string, binding Commitment) {
	t := c.Tasks[id]
	if t == nil || t.Pod.Spec.NodeName != "" {
		return
	}
	c.detach(t)
	c.removeNominated(t)
	t.Status, t.Node, t.inFlight = Binding, c.nodeNamed(node), &binding
	c.joinJob(t)
	c.attach(t)
}

// attach adds t to the accounts of its node, its job and its queue; detach takes it out. All
// changes of a task go: detach, change, attach.
func (c *Cluster) attach(t *TaskInfo) { c.account(t, +1) }
func (c *Cluster) detach(t *TaskInfo) { c.account(t, -1) }

func (c *Cluster) account(t *TaskInfo, sign int32) {
	c.generation++
	if t.Node != nil {
		t.Node.account(t, int(sign))
		c.touch(t.Node)
		if t.Status == Releasing {
			c.trackReleasing(t, sign > 0)
		}
	} else {
		c.arrivals++
	}
	c.countUnconfirmed(t, sign)
	if t.Job == nil {
		if t.Node != nil {
			c.foreign++
		}
		return
	}
	t.Job.account(t, sign)
	t.Job.Generation = c.generation
	c.markDirty(t.Job)
	if t.holds() || t.Status == Pipelined || t.Waiting() {
		before := t.Signature.HasMembers()
		t.Signature.members += int(sign)
		if t.Signature.HasMembers() != before {
			c.members++
		}
	}
}

func (c *Cluster) touch(n *NodeInfo) {
	n.Generation = c.generation
	if n.Exists() {
		c.nodeChanges.add(n.Index)
	}
}

func (c *Cluster) markDirty(j *JobInfo) {
	if !j.dirty {
		j.dirty = true
		c.dirty = append(c.dirty, j)
	}
}

// Recompute brings what is derived from members up to date and returns the jobs that changed
// since the last call, by id. Called once after the events of a cycle are applied; jobs without
// members and without group are gone afterwards.
func (c *Cluster) Recompute() []*JobInfo {
	c.rankNodes()
	changed := c.dirty
	c.dirty = nil
	for _, j := range changed {
		j.dirty = false
		c.recomputeJob(j)
	}
	slices.SortFunc(changed, func(a, b *JobInfo) int { return cmp.Compare(a.ID, b.ID) })
	return changed
}

func (c *Cluster) recomputeJob(j *JobInfo) {
	if len(j.Tasks) == 0 && j.Group == nil {
		c.removeJob(j)
		return
	}
	j.updatePriority()
	if j.Shadow() {
		j.updateShadow()
	}
	c.recount(j)
	if j.Waits() {
		c.waiting[j] = struct{}{}
	} else {
		delete(c.waiting, j)
	}
}

// recount lets the queue count the group in its present phase.
func (c *Cluster) recount(j *JobInfo) {
	var phase v1alpha1.PodGroupPhase
	if j.Group != nil {
		phase = j.Phase()
	}
	if phase == j.counted {
		return
	}
	if j.Queue != nil {
		j.Queue.count(j.counted, -1)
		j.Queue.count(phase, +1)
	}
	j.counted = phase
}

// WaitingJobs returns the jobs that wait as of the last Settle, oldest first.
func (c *Cluster) WaitingJobs() []*JobInfo {
	jobs := make([]*JobInfo, 0, len(c.waiting))
	for j := range c.waiting {
		jobs = append(jobs, j)
	}
	slices.SortFunc(jobs, func(a, b *JobInfo) int { return CompareAge(a.Created, b.Created, string(a.ID), string(b.ID)) })
	return jobs
}
