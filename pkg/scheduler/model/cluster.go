// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// Options configure a Cluster.
type Options struct {
	SchedulerNames []string    // pods with one of these in spec.schedulerName are scheduled
	DefaultQueue   api.QueueID // the queue of groups and pods that name none
	GroupSources   api.GroupSources
	OwnerRules     api.OwnerRules // nil if no kind of owners makes gangs
	KueueGroups    bool           // the labels of Kueue's groups of pods count as group keys
	// TopologiesUnread: topologies may exist of which the model does not know, until Topologies.Complete.
	TopologiesUnread bool
	// InFlight is the record of the model that this one replaces; nil if there was none.
	InFlight *InFlight
}

// Cluster is the model. Only the scheduling goroutine may use it.
type Cluster struct {
	schedulerNames []string
	dims           *api.Dimensions
	generations    *api.Generations
	inFlight       *InFlight

	tasks      map[api.TaskID]*api.TaskInfo
	nodes      nodeTable
	jobs       jobTable
	signatures signatureTable
	claims     claimTable
	namespaces namespaceTable
	budgets    budgetTable
	evictions  evictionTable
}

var _ api.ClusterView = (*Cluster)(nil)

// NewCluster returns a model without objects.
func NewCluster(o Options) *Cluster {
	if o.InFlight == nil {
		o.InFlight = NewInFlight()
	}
	dims, generations := api.NewDimensions(), &api.Generations{}
	c := &Cluster{
		schedulerNames: o.SchedulerNames,
		dims:           dims,
		generations:    generations,
		inFlight:       o.InFlight,
		tasks:          map[api.TaskID]*api.TaskInfo{},
		nodes:          newNodeTable(generations),
		jobs:           newJobTable(o, dims, generations),
		signatures:     newSignatureTable(dims),
		claims:         newClaimTable(),
		namespaces:     newNamespaceTable(),
		budgets:        newBudgetTable(),
		evictions:      newEvictionTable(),
	}
	c.nodes.classesChanged = func() { c.signatures.terms.generation++ }
	return c
}

// Events returns the functions that apply what the API server shows.
func (c *Cluster) Events() Events { return Events{c} }

// Ledger returns the functions that apply what the scheduler decides.
func (c *Cluster) Ledger() Ledger { return Ledger{c} }

// Dims returns the dimensions of resource vectors.
func (c *Cluster) Dims() *api.Dimensions { return c.dims }

// Generations count changes of the model.
func (c *Cluster) Generations() api.Generations {
	now := *c.generations
	now.Terms = c.signatures.terms.generation
	return now
}

// Tasks returns all pods by id. The map belongs to the model.
func (c *Cluster) Tasks() map[api.TaskID]*api.TaskInfo { return c.tasks }

// Jobs returns all jobs by id. The map belongs to the model.
func (c *Cluster) Jobs() map[api.JobID]*api.JobInfo { return c.jobs.byID }

// Queues returns all queues by id. The map belongs to the model.
func (c *Cluster) Queues() map[api.QueueID]*api.QueueInfo { return c.jobs.queues }

// SortedJobs returns all jobs by id.
func (c *Cluster) SortedJobs() []*api.JobInfo { return c.jobs.sorted() }

// SortedQueues returns all queues by creation, then name.
func (c *Cluster) SortedQueues() []*api.QueueInfo { return c.jobs.sortedQueues() }

// WaitingJobs returns the jobs for which JobInfo.Waits held at the last Recompute, oldest first. The caller must not change
// the slice.
func (c *Cluster) WaitingJobs() []*api.JobInfo { return c.jobs.waiting.sorted() }

// JobTable returns what tells which jobs change.
func (c *Cluster) JobTable() api.JobTable { return &c.jobs }

// Nodes returns existing nodes by index; entries may be nil. The slice belongs to the model.
func (c *Cluster) Nodes() []*api.NodeInfo { return c.nodes.byIndex }

// Node returns the existing node of that name, or nil.
func (c *Cluster) Node(name string) *api.NodeInfo { return c.nodes.existing(name) }

// CountNodes returns how many nodes exist.
func (c *Cluster) CountNodes() int { return c.nodes.count() }

// NodesUnavailableSoon returns the nodes with NodeInfo.UnavailableFrom, by index.
func (c *Cluster) NodesUnavailableSoon() []*api.NodeInfo {
	if c.nodes.unavailableSoon == 0 {
		return nil
	}
	var nodes []*api.NodeInfo
	for _, n := range c.nodes.byIndex {
		if n != nil && n.Tracking.UnavailableSoon {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// NodeChanges is the journal of nodes whose accounts or objects changed.
func (c *Cluster) NodeChanges() *api.Journal { return &c.nodes.changes }

// NodeSpecChanges is the journal of nodes whose objects were added, changed or deleted.
func (c *Cluster) NodeSpecChanges() *api.Journal { return &c.nodes.specChanges }

// NamespaceLabels returns the labels of a namespace, and whether it is known. Read only.
func (c *Cluster) NamespaceLabels(name string) (labels.Set, bool) {
	ns, known := c.namespaces.byName[name]
	return ns.Labels, known
}

// NamespacesSelected returns the names of the namespaces that selector matches, sorted.
func (c *Cluster) NamespacesSelected(selector labels.Selector) []string {
	return c.namespaces.selected(selector)
}

// ClassOf returns the equivalence class of t as of now. The result is shared by all tasks
// that the scheduler need not distinguish, and valid until the set of affinity terms changes.
func (c *Cluster) ClassOf(t *api.TaskInfo) *api.EquivalenceClass {
	now := api.ClassVersion{Terms: c.signatures.terms.generation, Namespaces: c.generations.Namespaces}
	if t.Tracking.Class == nil || t.Tracking.ClassAt != now {
		t.Tracking.Class = c.signatures.classOf(t, c.namespaces.byName[t.Pod.Namespace].Labels, c.nodes.unavailableSoon > 0)
		t.Tracking.ClassAt = now
	}
	return t.Tracking.Class
}

// MemberSignatures returns the signatures that holding or waiting members of queues have, in the order of their creation.
func (c *Cluster) MemberSignatures() []*api.Signature { return c.signatures.withMembers() }

// EachReleasing calls visit for all pods on nodes that are being deleted, in no order.
func (c *Cluster) EachReleasing(visit func(*api.TaskInfo)) {
	for t := range c.evictions.releasing {
		visit(t)
	}
}

// BudgetsAllow reports whether evicting the unit stays within all PodDisruptionBudgets, including evictions
// that the API server has not shown yet. A pod that two budgets select is
// never evicted: the API server would refuse it.
func (c *Cluster) BudgetsAllow(u api.Unit) bool { return c.budgets.allow(u) }

// Admissible returns why no task of the job can be placed whatever plugins answer: its group is of another API, its
// owner was not read, its group, topology or queue does not exist, it may run for longer than its queue admits, its namespace is being
// deleted, or it is in backoff. Nil if tasks can be placed.
func (c *Cluster) Admissible(j *api.JobInfo) *api.Verdict {
	switch {
	case j.Unsupported != nil && j.Unsupported.Name == "":
		return &api.Verdict{Reason: v1alpha1.ReasonGroupNotFound, Group: j.Unsupported}
	case j.Unsupported != nil:
		return &api.Verdict{Reason: v1alpha1.ReasonUnsupportedPodGroupAPI, Group: j.Unsupported}
	case j.Owner.Missing():
		return ownerUnknown(j)
	case j.GroupName != "" && j.Group == nil:
		return groupNotFound(j)
	case j.Group != nil && j.Group.NotSupported != "":
		return notSupported(j, j.Group.NotSupported)
	case j.Tracking.Topology.NotSupported != "":
		return notSupported(j, j.Tracking.Topology.NotSupported)
	case j.Group != nil && j.Group.Tree != nil && j.Group.Tree.Refusal != nil:
		return j.Group.Tree.Refusal
	case j.Tracking.Conflict != "":
		return &api.Verdict{Reason: v1alpha1.ReasonGroupConflict, Detail: j.Tracking.Conflict}
	case j.Tracking.InvalidSubGroups != "":
		return &api.Verdict{Reason: v1alpha1.ReasonInvalidSubGroups, Detail: "spec.subGroups: " + j.Tracking.InvalidSubGroups}
	case j.Tracking.UnknownTopology != "":
		return &api.Verdict{Reason: v1alpha1.ReasonTopologyNotFound, Detail: j.Tracking.UnknownTopology}
	case !j.QueueFound():
		return &api.Verdict{Reason: v1alpha1.ReasonQueueNotFound, Name: string(j.QueueName), Detail: c.jobs.similarQueue(j.QueueName)}
	case runsTooLong(j):
		return &api.Verdict{Reason: v1alpha1.ReasonExecutionTimeTooLong, Detail: fmt.Sprintf("its run time is limited to %s, and queue %s admits at most %s",
			api.FormatRun(j.RunTime.Maximum), j.Queue.ID, api.FormatRun(j.Queue.MaximumRun))}
	case c.namespaces.terminating[j.Namespace]:
		return &api.Verdict{Reason: v1alpha1.ReasonNotEnoughPods, Need: j.MinMember, Have: j.ReadyCount(), Detail: "namespace " + j.Namespace + " is being deleted"}
	case j.Tracking.Backoff != "":
		return &api.Verdict{Reason: v1alpha1.ReasonClaimsNotReady, Detail: j.Tracking.Backoff}
	}
	if v := queueConflict(j); v != nil {
		return v
	}
	return c.jobs.membersElsewhere(j)
}

// notSupported names the field of the group, or the annotation, that the scheduler cannot honour.
func notSupported(j *api.JobInfo, field string) *api.Verdict {
	verdict := &api.Verdict{Reason: v1alpha1.ReasonNotSupported, Detail: field}
	if j.Source == api.SourceOwn {
		verdict.Detail = "the scheduler does not support " + field
	} else {
		verdict.Group = j.Group.Key().Reference()
	}
	return verdict
}

// ownerUnknown names the object that was not read.
func ownerUnknown(j *api.JobInfo) *api.Verdict {
	detail := j.Owner.Problem
	if detail == "" {
		detail = "it was not read yet, or the scheduler lacks the permission"
	}
	return &api.Verdict{Reason: v1alpha1.ReasonOwnerUnknown, Detail: fmt.Sprintf(
		"it is not known how many pods %s %q starts together: %s", j.Owner.Kind, j.Owner.Name, detail)}
}

// groupNotFound names the annotation of kube-batch if all members name their group by it.
func groupNotFound(j *api.JobInfo) *api.Verdict {
	verdict := &api.Verdict{Reason: v1alpha1.ReasonGroupNotFound, Name: j.GroupName[len(j.Namespace)+1:]}
	if j.Source != api.SourceOwn {
		verdict.Group = api.GroupKey{Source: j.Source, Name: j.GroupName}.Reference()
	} else if !slices.ContainsFunc(j.Tasks, func(t *api.TaskInfo) bool { return t.Pod.Labels[v1alpha1.LabelPodGroup] != "" }) {
		verdict.Group = &api.GroupReference{Field: "annotation " + v1alpha1.AnnotationGroupName, Name: verdict.Name}
	}
	return verdict
}
