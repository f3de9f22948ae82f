package api

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// Audit recomputes every sum, count and index of the model from its tasks and objects alone,
// and returns an error that lists where the model says something else, nil if nowhere. It may
// be called at any time between two changes, also within a session.
//
// It is the dumb twin of the accounts: it shares no code with attach and detach, and walks over
// everything. Tests call it after every step, and builds with the tag "invariants" after every
// cycle; nothing else does.
func (c *Cluster) Audit() error {
	a := &audit{
		c:          c,
		nodes:      map[*NodeInfo]*nodeSums{},
		jobs:       map[*JobInfo]*jobSums{},
		queues:     map[*QueueInfo]*queueSums{},
		signatures: map[*Signature]*signatureSums{},
	}
	for _, id := range sortedKeys(c.Tasks) {
		a.task(id, c.Tasks[id])
	}
	a.auditJobs()
	a.auditQueues()
	a.auditNodes()
	a.auditSignatures()
	a.auditGroups()
	a.auditBudgets()
	return a.err()
}

// audit collects what the tasks add up to, and the differences.
type audit struct {
	c          *Cluster
	nodes      map[*NodeInfo]*nodeSums
	jobs       map[*JobInfo]*jobSums
	queues     map[*QueueInfo]*queueSums
	signatures map[*Signature]*signatureSums
	found      []string
}

type nodeSums struct {
	used, releasing, pipelined, foreign, members Resource
	tasks, ports, nominated                      int
}

type jobSums struct {
	counts                          [NumStatus]int32
	gated, lost                     int32
	tasks                           int
	allocated, releasing, requested Resource
}

type queueSums struct {
	allocated, releasing, requested Resource
	groups                          v1alpha1.QueueGroups
	jobs                            int
}

type signatureSums struct{ refs, members int }

// maxDifferences bounds the text of an audit's error: the first ones tell the cause.
const maxDifferences = 12

func (a *audit) err() error {
	if len(a.found) == 0 {
		return nil
	}
	told := a.found[:min(len(a.found), maxDifferences)]
	text := strings.Join(told, "\n  ")
	if rest := len(a.found) - len(told); rest > 0 {
		text += fmt.Sprintf("\n  and %d more", rest)
	}
	return fmt.Errorf("the model contradicts itself:\n  %s", text)
}

func (a *audit) report(difference string) { a.found = append(a.found, difference) }

// expect notes a difference between what the model says and what follows from its tasks.
func expect[T comparable](a *audit, what string, got, want T) {
	if got != want {
		a.report(fmt.Sprintf("%s: the model says %v, its tasks say %v", what, got, want))
	}
}

func (a *audit) expectResource(what string, got, want Resource) {
	if !got.Equal(want) {
		a.report(fmt.Sprintf("%s: the model says %s, its tasks say %s", what, a.c.amounts(got), a.c.amounts(want)))
	}
}

// sum returns the entry for key, which it makes at the first use.
func sum[K comparable, V any](m map[K]*V, key K) *V {
	if m[key] == nil {
		m[key] = new(V)
	}
	return m[key]
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

func (a *audit) task(id TaskID, t *TaskInfo) {
	what := "task " + t.Key + " (" + string(id) + ")"
	expect(a, what+" id", t.ID, id)
	a.taskObject(what, t)
	a.taskPlace(what, t)
	a.taskJob(what, t)
	a.addToNode(t)
	a.addToJob(t)
}

// taskObject checks what a task has read from its pod.
func (a *audit) taskObject(what string, t *TaskInfo) {
	request := a.c.Dims.requestOf(t.Pod)
	expect(a, what+" shape", t.Signature.key, signatureKey(t.Pod, request))
	expect(a, what+" shape is registered", a.c.signatures[t.Signature.key], t.Signature)
	a.expectResource(what+" request", t.Request, request)
	priority := int32(0)
	if t.Pod.Spec.Priority != nil {
		priority = *t.Pod.Spec.Priority
	}
	expect(a, what+" priority", t.Priority, priority)
	expect(a, what+" gated", t.Gated, len(t.Pod.Spec.SchedulingGates) > 0 && t.Pod.Spec.NodeName == "")
	s := sum(a.signatures, t.Signature)
	s.refs++
	if t.Job != nil && (a.onNode(t) && t.Status.Holding() || t.Status == Pipelined || t.Status == Pending && !t.Gated) {
		s.members++
	}
}

// taskPlace checks status and node. What a session has decided is taken as it is.
func (a *audit) taskPlace(what string, t *TaskInfo) {
	shown := statusOf(t.Pod)
	inSession := t.Status == Allocated || t.Status == Pipelined || t.Status == Releasing && shown != Releasing
	switch {
	case inSession:
	case t.inFlight != nil:
		expect(a, what+" in flight", t.Status, Binding)
	default:
		expect(a, what+" is leaving", t.evicting, false)
		expect(a, what+" status", t.Status, shown)
		name := t.Pod.Spec.NodeName
		if shown.Ended() {
			name = ""
		}
		expect(a, what+" node", nameOf(t.Node), name)
	}
	if t.Node != nil {
		expect(a, what+" stands on the node of that name", a.c.nodes[t.Node.Name], t.Node)
	}
	nominated := ""
	if t.Job == nil && t.Status == Pending {
		nominated = t.Pod.Status.NominatedNodeName
	}
	expect(a, what+" nominated to", nameOf(t.nominated), nominated)
	if t.nominated != nil {
		sum(a.nodes, t.nominated).nominated++
	}
}

func nameOf(n *NodeInfo) string {
	if n == nil {
		return ""
	}
	return n.Name
}

// taskJob asks the membership rule again.
func (a *audit) taskJob(what string, t *TaskInfo) {
	if t.Pod.Spec.SchedulerName != a.c.SchedulerName {
		expect(a, what+" is foreign and has no job", t.Job, nil)
		return
	}
	binding := t.inFlight
	if binding == nil {
		binding = bindingOf(t.Pod)
	}
	m := memberOf(t.Pod, binding, a.c.DefaultQueue, a.c.liveGroup)
	if t.Job == nil || t.Job.ID != m.Job || a.c.Jobs[m.Job] != t.Job {
		a.report(what + ": should be a member of the registered job " + string(m.Job))
		return
	}
	expect(a, what+" group of its job", t.Job.GroupName, m.Group)
	if m.Group == "" {
		expect(a, what+" queue of its job", t.Job.QueueName, m.Queue)
	}
	if t.indexInJob >= len(t.Job.Tasks) || t.Job.Tasks[t.indexInJob] != t {
		a.report(what + ": its job does not list it at its index")
	}
}

func (a *audit) onNode(t *TaskInfo) bool { return t.Node != nil && t.Node.Node != nil }

func (a *audit) addToNode(t *TaskInfo) {
	if t.Node == nil || t.Status == Succeeded || t.Status == Failed {
		return
	}
	s := sum(a.nodes, t.Node)
	s.tasks++
	if len(t.Signature.Ports) > 0 {
		s.ports++
	}
	if t.Status == Pipelined {
		s.pipelined.Add(t.Request)
		return
	}
	s.used.Add(t.Request)
	switch {
	case t.Job == nil:
		s.foreign.Add(t.Request)
	case t.Status.Holding():
		s.members.Add(t.Request)
	}
	if t.Status == Releasing && !t.overdue {
		s.releasing.Add(t.Request)
	}
}

func (a *audit) addToJob(t *TaskInfo) {
	if t.Job == nil {
		return
	}
	s := sum(a.jobs, t.Job)
	s.tasks++
	s.counts[t.Status]++
	switch t.Status {
	case Allocated, Binding, Bound, Running:
		if a.onNode(t) {
			s.allocated.Add(t.Request)
		} else {
			s.lost++
		}
	case Pipelined:
		s.allocated.Add(t.Request)
	case Releasing:
		if a.onNode(t) {
			s.releasing.Add(t.Request)
		}
	case Pending:
		if t.Gated {
			s.gated++
		} else {
			s.requested.Add(t.Request)
		}
	}
}
