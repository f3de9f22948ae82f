// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

// Model recomputes every sum, count and index of the model from its tasks and objects alone,
// and returns an error that lists the differences, nil if there are none. Call it
// between two changes, also within a session.
func Model(c *model.Cluster) error {
	a := &audit{
		c:          c,
		i:          model.Inspect(c),
		nodes:      map[*api.NodeInfo]*nodeSums{},
		jobs:       map[*api.JobInfo]*jobSums{},
		queues:     map[*api.QueueInfo]*queueSums{},
		signatures: map[*api.Signature]*signatureSums{},
	}
	for _, id := range sortedKeys(c.Tasks()) {
		a.task(id, c.Tasks()[id])
	}
	a.auditJobs()
	a.auditQueues()
	a.auditNodes()
	a.auditSignatures()
	a.auditGroups()
	auditOwners(a)
	a.auditBudgets()
	auditDeviceClaims(a)
	return a.err()
}

// audit collects the sums over tasks, and the differences.
type audit struct {
	c          *model.Cluster
	i          model.Inspection
	nodes      map[*api.NodeInfo]*nodeSums
	jobs       map[*api.JobInfo]*jobSums
	queues     map[*api.QueueInfo]*queueSums
	signatures map[*api.Signature]*signatureSums
	found      []string
}

type nodeSums struct {
	used, releasing, pipelined, foreign, members api.Resource
	tasks, ports, nominated                      int
}

type jobSums struct {
	counts                          [api.NumStatus]int32
	gated, lost, disrupted          int32
	tasks                           int
	allocated, releasing, requested api.Resource
}

type queueSums struct {
	allocated, releasing, requested api.Resource
	groups                          v1alpha1.QueueGroups
	jobs                            int
}

type signatureSums struct{ refs, members int }

// maxDifferences bounds the text of an audit's error: the first ones show the cause.
const maxDifferences = 12

func (a *audit) err() error {
	if len(a.found) == 0 {
		return nil
	}
	reported := a.found[:min(len(a.found), maxDifferences)]
	text := strings.Join(reported, "\n  ")
	if rest := len(a.found) - len(reported); rest > 0 {
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

func (a *audit) expectResource(what string, got, want api.Resource) {
	if !got.Equal(want) {
		a.report(fmt.Sprintf("%s: the model says %s, its tasks say %s", what, amounts(a.c, got), amounts(a.c, want)))
	}
}

// sum returns the entry for key, which it creates at the first use.
func sum[K comparable, V any](m map[K]*V, key K) *V {
	if m[key] == nil {
		m[key] = new(V)
	}
	return m[key]
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

func (a *audit) task(id api.TaskID, t *api.TaskInfo) {
	what := "task " + t.Key + " (" + string(id) + ")"
	expect(a, what+" id", t.ID, id)
	a.taskObject(what, t)
	a.taskPlace(what, t)
	a.taskJob(what, t)
	a.addToNode(t)
	a.addToJob(t)
}

// taskObject checks what a task has read from its pod.
func (a *audit) taskObject(what string, t *api.TaskInfo) {
	request := a.c.Dims().RequestOf(t.Pod)
	devices := slices.ContainsFunc(a.i.DeviceDimensions, func(d int) bool { return request.At(d) > 0 })
	expect(a, what+" requests devices", t.Signature.DeviceResources, devices)
	a.expectResource(what+" request of the pod alone", t.Signature.PodRequest, request)
	key := api.SignatureKey(t.Pod, request)
	if devices {
		key += model.DevicesKey
	}
	required, counted := borneBy(a, t)
	if len(counted) > 0 {
		key = model.BorneKey(key, required, counted)
	}
	expect(a, what+" signature", t.Signature.Key(), key)
	expect(a, what+" signature is registered", a.i.Signatures[t.Signature.Key()], t.Signature)
	a.expectResource(what+" request", t.Request, request.Plus(required))
	a.expectResource(what+" request of its queue", t.ShareRequest, request.Plus(counted))
	priority := int32(0)
	if t.Pod.Spec.Priority != nil {
		priority = *t.Pod.Spec.Priority
	}
	expect(a, what+" priority", t.Priority, priority)
	expect(a, what+" gated", t.Gated, len(t.Pod.Spec.SchedulingGates) > 0 && t.Pod.Spec.NodeName == "")
	taskRunTime(a, what, t)
	expect(a, what+" has a controller", t.Controlled(), metav1.GetControllerOf(t.Pod) != nil)
	s := sum(a.signatures, t.Signature)
	s.refs++
	if t.Job != nil && (a.onNode(t) && t.Status.Holding() || t.Status == api.Pipelined || t.Status == api.Pending && !t.Gated) {
		s.members++
	}
}

// taskPlace checks status and node. Decisions of the open session are not checked.
func (a *audit) taskPlace(what string, t *api.TaskInfo) {
	if bind, ok := a.i.RestoredBinds[t.ID]; ok {
		expect(a, what+" restored bind", t.Tracking.Bind, bind.Commitment)
	}
	if _, ok := a.i.RestoredEvictions[t.ID]; ok {
		expect(a, what+" restored eviction", t.Tracking.Evicting, true)
	}
	shown := api.StatusOf(t.Pod)
	inSession := t.Status == api.Allocated || t.Status == api.Pipelined || t.Status == api.Releasing && shown != api.Releasing
	switch {
	case inSession:
	case t.Tracking.Bind != nil:
		expect(a, what+" in flight", t.Status, api.Binding)
	default:
		expect(a, what+" is evicting", t.Tracking.Evicting, false)
		expect(a, what+" status", t.Status, shown)
		name := t.Pod.Spec.NodeName
		if shown.Ended() {
			name = ""
		}
		expect(a, what+" node", nameOf(t.Node), name)
	}
	if t.Node != nil {
		expect(a, what+" is on the registered node of that name", a.i.Nodes[t.Node.Name], t.Node)
	}
	nominated := ""
	if t.Job == nil && t.Status == api.Pending {
		nominated = t.Pod.Status.NominatedNodeName
	}
	expect(a, what+" nominated to", nameOf(t.Tracking.Nominated), nominated)
	if t.Tracking.Nominated != nil {
		sum(a.nodes, t.Tracking.Nominated).nominated++
	}
}

func nameOf(n *api.NodeInfo) string {
	if n == nil {
		return ""
	}
	return n.Name
}

// taskJob applies the membership rule again.
func (a *audit) taskJob(what string, t *api.TaskInfo) {
	native := ""
	if a.i.GroupSources.Native {
		native = api.NativeGroupOf(t.Pod)
	}
	if t.Job != nil && t.Job.ID == (api.GroupKey{Source: api.SourceNative, Name: native}).JobID() {
		native = ""
	}
	if a.i.GroupSources.Any() {
		expect(a, what+" queue label", t.Tracking.QueueLabel, api.QueueID(t.Pod.Labels[v1alpha1.LabelQueue]))
	}
	expect(a, what+" native group", t.Tracking.NativeGroup, native)
	expect(a, what+" is known by its native group", a.i.NativeTasks[native][t.ID] == t, native != "")
	if !slices.Contains(a.i.SchedulerNames, t.Pod.Spec.SchedulerName) {
		expect(a, what+" is foreign and has no job", t.Job, nil)
		expect(a, what+" is foreign and names no owner", t.Tracking.Owner, nil)
		return
	}
	commitment := api.CommitmentOf(t.Pod)
	if t.Tracking.Bind != nil {
		commitment = t.Tracking.Bind
	}
	taskOwner(a, what, t)
	m := api.MembershipOf(t.Pod, commitment, ruleOf(a))
	if t.Job == nil || t.Job.ID != m.Job || a.c.Jobs()[m.Job] != t.Job {
		a.report(what + ": should be a member of the registered job " + string(m.Job))
		return
	}
	expect(a, what+" group of its job", t.Job.GroupName, m.Group)
	expect(a, what+" source of its job", t.Job.Source, m.Source)
	expect(a, what+" unsupported group of its job", ptr.Deref(t.Job.Unsupported, api.GroupReference{}), ptr.Deref(m.Unsupported, api.GroupReference{}))
	expect(a, what+" owner of its job", ptr.Deref(t.Job.Owner, api.JobOwner{}), ptr.Deref(m.Owner, api.JobOwner{}))
	if m.Group == "" {
		expect(a, what+" queue of its job", t.Job.QueueName, m.Queue)
	}
	if m.Owner != nil {
		expect(a, what+" minMember of its job", t.Job.MinMember, m.MinMember)
	}
	if t.Tracking.IndexInJob >= len(t.Job.Tasks) || t.Job.Tasks[t.Tracking.IndexInJob] != t {
		a.report(what + ": its job does not list it at its index")
	}
}

func (a *audit) onNode(t *api.TaskInfo) bool { return t.Node != nil && t.Node.Node != nil }

func (a *audit) addToNode(t *api.TaskInfo) {
	if t.Node == nil || t.Status == api.Succeeded || t.Status == api.Failed {
		return
	}
	s := sum(a.nodes, t.Node)
	s.tasks++
	if len(t.Signature.Ports) > 0 {
		s.ports++
	}
	if t.Status == api.Pipelined {
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
	if t.Status == api.Releasing && !t.Tracking.Overdue {
		s.releasing.Add(t.Request)
	}
}

func (a *audit) addToJob(t *api.TaskInfo) {
	if t.Job == nil {
		return
	}
	s := sum(a.jobs, t.Job)
	s.tasks++
	s.counts[t.Status]++
	switch t.Status {
	case api.Allocated, api.Binding, api.Bound, api.Running:
		if a.onNode(t) {
			s.allocated.Add(t.ShareRequest)
		} else {
			s.lost++
		}
	case api.Pipelined:
		s.allocated.Add(t.ShareRequest)
	case api.Releasing:
		if a.onNode(t) {
			s.releasing.Add(t.ShareRequest)
		}
	case api.Failed:
		if api.Disrupted(t.Pod) {
			s.disrupted++
		}
	case api.Pending:
		if t.Gated {
			s.gated++
		} else if t.Job.Unsupported == nil && !t.Job.Owner.Missing() {
			s.requested.Add(t.ShareRequest)
		}
	}
}
