package api

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// The functions in this file apply what the API server shows. They may be called in any order
// and repeatedly: pods before their node, members before their group, groups before their
// queue. Deleting what is not there does nothing.

// SetPod adds or updates a pod. Versions that differ only in what nobody decides by, such as
// conditions, change nothing and cost next to nothing.
func (c *Cluster) SetPod(pod *v1.Pod) {
	t, known := c.Tasks[TaskID(pod.UID)]
	if known && EqualPods(t.Pod, pod) {
		t.Pod = pod
		return
	}
	if known {
		c.detach(t)
		c.removeNominated(t)
	} else {
		t = newTask(pod)
		c.Tasks[t.ID] = t
	}
	before := t.Node
	if t.inFlight != nil && pod.Spec.NodeName != "" {
		t.inFlight = nil // the watch has caught up with the decision
	}
	if pod.Spec.NodeName != "" {
		t.lastBindError = ""
	}
	c.updateSignature(t, pod)
	if t.inFlight == nil {
		t.Status, t.Node = t.observedStatus(), c.nodeOf(pod)
	}
	c.joinJob(t)
	c.attach(t)
	c.addNominated(t)
	c.forgetNode(before)
}

// updateSignature lets t read the pod, and moves it to another shape if its spec asks for one.
func (c *Cluster) updateSignature(t *TaskInfo, pod *v1.Pod) {
	old := t.Signature
	signature := c.signatureOf(pod)
	signature.refs++
	if signature.refs == 1 {
		c.terms.add(signature.Terms)
	}
	t.read(pod, signature)
	if old != nil {
		c.release(old)
	}
}

func (c *Cluster) release(s *Signature) {
	if s.refs--; s.refs == 0 {
		c.terms.remove(s.Terms)
		delete(c.signatures, s.key)
	}
}

func (c *Cluster) signatureOf(pod *v1.Pod) *Signature {
	request := c.Dims.requestOf(pod)
	key := signatureKey(pod, request)
	s, ok := c.signatures[key]
	if !ok {
		s = newSignature(key, pod, request)
		c.signatures[key] = s
	}
	return s
}

// joinJob puts t, which must be detached, into the job that the membership rule names.
func (c *Cluster) joinJob(t *TaskInfo) {
	if t.Pod.Spec.SchedulerName != c.SchedulerName {
		c.leaveJob(t)
		return
	}
	binding := t.inFlight
	if binding == nil {
		binding = bindingOf(t.Pod)
	}
	m := memberOf(t.Pod, binding, c.DefaultQueue, c.liveGroup)
	if t.Job != nil && t.Job.ID == m.Job {
		return
	}
	c.leaveJob(t)
	j := c.Jobs[m.Job]
	if j == nil {
		j = c.addJob(m, t)
	}
	j.addTask(t)
}

func (c *Cluster) leaveJob(t *TaskInfo) {
	if j := t.Job; j != nil {
		j.removeTask(t)
		c.markDirty(j)
	}
}

func (c *Cluster) liveGroup(uid types.UID) (string, QueueID, bool) {
	g := c.groups[uid]
	if g == nil {
		return "", "", false
	}
	return g.Namespace + "/" + g.Name, c.queueOf(g), true
}

func (c *Cluster) queueOf(g *v1alpha1.PodGroup) QueueID {
	if g.Spec.Queue == "" {
		return c.DefaultQueue
	}
	return QueueID(g.Spec.Queue)
}

// DeletePod forgets a pod.
func (c *Cluster) DeletePod(uid types.UID) {
	t, ok := c.Tasks[TaskID(uid)]
	if !ok {
		return
	}
	c.detach(t)
	c.removeNominated(t)
	c.leaveJob(t)
	node := t.Node
	c.release(t.Signature)
	delete(c.Tasks, t.ID)
	delete(c.evictionBlocked, t)
	c.forgetNode(node)
}

// nodeOf returns the node that the pod is on, nil while it has none and once it has ended: a pod
// that holds nothing must not keep a node alive that is gone.
func (c *Cluster) nodeOf(pod *v1.Pod) *NodeInfo {
	if pod.Spec.NodeName == "" || statusOf(pod).Ended() {
		return nil
	}
	return c.nodeNamed(pod.Spec.NodeName)
}

// nodeNamed returns the node of that name, which may be unknown to the API server still.
func (c *Cluster) nodeNamed(name string) *NodeInfo {
	n := c.nodes[name]
	if n == nil {
		n = &NodeInfo{Name: name, Index: -1, Tasks: map[TaskID]*TaskInfo{}}
		c.nodes[name] = n
	}
	return n
}

// forgetNode drops a node that neither exists nor is named by a pod. Pods that have ended may
// still point to a node that was forgotten long ago and has a successor by now.
func (c *Cluster) forgetNode(n *NodeInfo) {
	if n != nil && !n.Exists() && len(n.Tasks) == 0 && len(n.nominated) == 0 && c.nodes[n.Name] == n {
		delete(c.nodes, n.Name)
	}
}

func (c *Cluster) addNominated(t *TaskInfo) {
	if t.Job != nil || t.Status != Pending || t.Pod.Status.NominatedNodeName == "" {
		return
	}
	t.nominated = c.nodeNamed(t.Pod.Status.NominatedNodeName)
	t.nominated.nominated = append(t.nominated.nominated, t)
	c.touch(t.nominated)
}

func (c *Cluster) removeNominated(t *TaskInfo) {
	if n := t.nominated; n != nil {
		n.nominated = withOrWithout(n.nominated, t, false)
		t.nominated = nil
		c.touch(n)
		c.forgetNode(n)
	}
}

// SetNode adds or updates a node. Heartbeats change nothing and cost next to nothing.
func (c *Cluster) SetNode(node *v1.Node) {
	n := c.nodeNamed(node.Name)
	if n.Exists() && EqualNodes(n.Node, node) {
		n.Node = node
		return
	}
	c.generation++
	c.nodeSpecs++
	tasks := c.detachAll(n)
	n.Idle.Sub(n.Allocatable)
	n.Allocatable = c.Dims.Vector(node.Status.Allocatable)
	n.Idle.Add(n.Allocatable)
	n.Idle, n.Allocatable = adjacentCopies(n.Idle, n.Allocatable)
	if !n.Exists() {
		n.Index = c.takeIndex(n)
	}
	n.Node = node
	n.ready, n.softTaints = n.reportsReady(), n.hasSoftTaints()
	c.nodeSpecChanges.add(n.Index)
	c.touch(n)
	c.attachAll(tasks)
}

func (c *Cluster) takeIndex(n *NodeInfo) int {
	c.rankStale, n.Rank = true, 0
	if last := len(c.freeIndex) - 1; last >= 0 {
		i := c.freeIndex[last]
		c.freeIndex = c.freeIndex[:last]
		c.byIndex[i] = n
		return i
	}
	c.byIndex = append(c.byIndex, n)
	return len(c.byIndex) - 1
}

// DeleteNode forgets a node. Pods that name it stay and hold nothing.
func (c *Cluster) DeleteNode(name string) {
	n := c.Node(name)
	if n == nil {
		return
	}
	c.generation++
	c.nodeSpecs++
	tasks := c.detachAll(n)
	c.touch(n)
	c.nodeSpecChanges.add(n.Index)
	c.byIndex[n.Index] = nil
	c.freeIndex = append(c.freeIndex, n.Index)
	n.Node, n.Index, n.ready, n.softTaints = nil, -1, false, false
	n.Allocatable, n.Idle = nil, nil
	c.attachAll(tasks)
	c.forgetNode(n)
}

func (c *Cluster) detachAll(n *NodeInfo) []*TaskInfo {
	tasks := slices.Collect(maps.Values(n.Tasks))
	for _, t := range tasks {
		c.detach(t)
	}
	return tasks
}

func (c *Cluster) attachAll(tasks []*TaskInfo) {
	for _, t := range tasks {
		c.attach(t)
	}
}

// SetPodGroup adds or updates a group.
func (c *Cluster) SetPodGroup(g *v1alpha1.PodGroup) {
	key := g.Namespace + "/" + g.Name
	old := c.groupByName[key]
	if old != nil && old.UID == g.UID && equality.Semantic.DeepEqual(old.Spec, g.Spec) {
		c.groups[g.UID], c.groupByName[key] = g, g // only metadata or status: ours to write
		c.Jobs[groupJob(key)].Group = g
		return
	}
	if old != nil && old.UID != g.UID {
		delete(c.groups, old.UID)
	}
	c.groups[g.UID], c.groupByName[key] = g, g
	j := c.Jobs[groupJob(key)]
	if j == nil {
		j = c.newJob(groupJob(key), key)
	}
	c.rereadGroup(j, g)
	c.rejoin(key, g.UID)
	if old != nil {
		c.rejoin(key, old.UID)
	}
}

// DeletePodGroup forgets the group with this name if it still has this UID.
func (c *Cluster) DeletePodGroup(key string, uid types.UID) {
	delete(c.groups, uid)
	old := c.groupByName[key]
	if old == nil || old.UID != uid {
		return
	}
	delete(c.groupByName, key)
	c.rereadGroup(c.Jobs[groupJob(key)], nil)
	c.rejoin(key, uid)
}

// rejoin asks the membership rule again for everybody whom a change of the group could concern:
// its members, and members of a former group with its UID.
func (c *Cluster) rejoin(key string, uid types.UID) {
	var tasks []*TaskInfo
	if j := c.Jobs[groupJob(key)]; j != nil {
		tasks = append(tasks, j.Tasks...)
	}
	for _, j := range c.orphaned[uid] {
		tasks = append(tasks, j.Tasks...)
	}
	for _, t := range tasks {
		c.detach(t)
		c.joinJob(t)
		c.attach(t)
	}
}

// SetQueue adds or updates a queue.
func (c *Cluster) SetQueue(queue *v1alpha1.Queue) {
	id := QueueID(queue.Name)
	q := c.Queues[id]
	if q != nil && q.Queue.UID == queue.UID && equality.Semantic.DeepEqual(q.Queue.Spec, queue.Spec) {
		q.Queue = queue
		return
	}
	c.generation++
	if q == nil {
		q = &QueueInfo{ID: id, Jobs: map[JobID]*JobInfo{}}
		c.Queues[id] = q
		q.read(c.Dims, queue)
		c.requeue()
		return
	}
	q.read(c.Dims, queue)
}

// DeleteQueue forgets a queue. What its jobs hold counts in the default queue from then on, and
// nothing new of them is placed.
func (c *Cluster) DeleteQueue(name string) {
	if _, ok := c.Queues[QueueID(name)]; !ok {
		return
	}
	c.generation++
	delete(c.Queues, QueueID(name))
	c.requeue()
}

// SetPriorityClass adds or updates a priority class.
func (c *Cluster) SetPriorityClass(class *schedulingv1.PriorityClass) {
	if value, ok := c.priorities[class.Name]; ok && value == class.Value {
		return
	}
	c.priorities[class.Name] = class.Value
	c.reprioritize(class.Name)
}

// DeletePriorityClass forgets a priority class.
func (c *Cluster) DeletePriorityClass(name string) {
	if _, ok := c.priorities[name]; ok {
		delete(c.priorities, name)
		c.reprioritize(name)
	}
}

func (c *Cluster) reprioritize(class string) {
	c.generation++
	for _, j := range c.Jobs {
		if j.Group != nil && j.Group.Spec.PriorityClassName == class {
			c.readPriority(j)
			c.markDirty(j)
		}
	}
}

// SetNamespace adds or updates a namespace.
func (c *Cluster) SetNamespace(ns *v1.Namespace) {
	now := namespace{labels: labels.Set(ns.Labels), terminating: ns.DeletionTimestamp != nil || ns.Status.Phase == v1.NamespaceTerminating}
	old, known := c.namespaces[ns.Name]
	if known && old.terminating == now.terminating && maps.Equal(old.labels, now.labels) {
		return
	}
	c.generation++
	c.namespaceChanges++
	c.terms.generation++
	c.namespaces[ns.Name] = now
}

// DeleteNamespace forgets a namespace.
func (c *Cluster) DeleteNamespace(name string) {
	if _, ok := c.namespaces[name]; ok {
		c.generation++
		c.namespaceChanges++
		c.terms.generation++
		delete(c.namespaces, name)
	}
}
