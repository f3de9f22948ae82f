// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import "k8s.io/apimachinery/pkg/labels"

// ClusterView is the model as plugins and actions see it: read only. All maps and slices that it returns, and what they
// contain, belong to the model. It may be used from the scheduling goroutine alone.
type ClusterView interface {
	// Dims are the dimensions of resource vectors.
	Dims() *Dimensions
	// Generations count changes of the model.
	Generations() Generations

	// Nodes returns existing nodes by NodeInfo.Index; entries may be nil.
	Nodes() []*NodeInfo
	// Node returns the existing node of that name, or nil.
	Node(name string) *NodeInfo
	// CountNodes returns how many nodes exist.
	CountNodes() int
	// NodesUnavailableSoon returns the nodes with NodeInfo.UnavailableFrom, by index.
	NodesUnavailableSoon() []*NodeInfo
	// NodeChanges is the journal of nodes whose accounts or objects changed.
	NodeChanges() *Journal
	// NodeSpecChanges is the journal of nodes whose objects were added, changed or deleted.
	NodeSpecChanges() *Journal

	// Tasks returns all pods by id, Jobs all jobs and Queues all queues.
	Tasks() map[TaskID]*TaskInfo
	Jobs() map[JobID]*JobInfo
	Queues() map[QueueID]*QueueInfo
	// SortedJobs returns all jobs by id.
	SortedJobs() []*JobInfo
	// SortedQueues returns all queues by creation, then name.
	SortedQueues() []*QueueInfo
	// WaitingJobs returns the jobs for which JobInfo.Waits held at the last Recompute, oldest first. The caller must not
	// change the slice.
	WaitingJobs() []*JobInfo
	// JobTable tells which jobs change.
	JobTable() JobTable
	// EachReleasing calls visit for all pods on nodes that are being deleted, in no order.
	EachReleasing(visit func(*TaskInfo))

	// ClassOf returns the equivalence class of t as of now. The result is shared by all tasks
	// that the scheduler need not distinguish, and valid until the set of affinity terms changes.
	ClassOf(t *TaskInfo) *EquivalenceClass
	// MemberSignatures returns the signatures that holding or waiting members of queues have, in the order of their creation.
	MemberSignatures() []*Signature

	// Admissible returns why no task of the job can be placed whatever plugins answer: its group or
	// queue does not exist, its namespace is being deleted, or it is in backoff. Nil if tasks can be placed.
	Admissible(j *JobInfo) *Verdict
	// BudgetsAllow reports whether evicting the unit stays within all PodDisruptionBudgets, including evictions
	// that the API server has not shown yet. A pod that two budgets select is
	// never evicted: the API server would refuse it.
	BudgetsAllow(u Unit) bool
	// NamespaceLabels returns the labels of a namespace, and whether it is known.
	NamespaceLabels(name string) (labels.Set, bool)
	// NamespacesSelected returns the names of the namespaces that selector matches, sorted.
	NamespacesSelected(selector labels.Selector) []string
}

// JobTable has all jobs by index, so that what is derived from jobs can follow their changes.
type JobTable interface {
	// ByIndex returns all jobs by JobInfo.Index; entries may be nil.
	ByIndex() []*JobInfo
	// Changes is the journal of jobs that changed, of which Waits may have changed, or that were removed, as of the last
	// Recompute.
	Changes() *Journal
	// CountWaiting returns the number of jobs that ClusterView.WaitingJobs returns.
	CountWaiting() int
	// CountConstrained returns the number of jobs whose groups have a topology constraint.
	CountConstrained() int
	// Topologies returns the topologies by name. There are none until a group has had a topology constraint.
	Topologies() []Topology
}

// Generations count changes of the model, each of one kind. Equal numbers mean that nothing of the kind changed.
type Generations struct {
	// Model counts all changes.
	Model uint64
	// Placement counts all changes but those of tasks without node. While it is constant,
	// only pending tasks were added or removed.
	Placement uint64
	// NodeSpecs counts changes of node objects.
	NodeSpecs uint64
	// Members counts changes of the set of signatures that members of queues have.
	Members uint64
	// MemberKinds counts changes of the set of kinds that these signatures have.
	MemberKinds uint64
	// Foreign counts changes of pods on nodes that belong to no queue.
	Foreign uint64
	// Namespaces counts changes of namespaces.
	Namespaces uint64
	// Terms counts changes of the set of affinity terms, and of namespaces: equivalence classes are then invalid.
	Terms uint64
}
