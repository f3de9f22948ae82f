// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package nodeindex

import (
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// Cluster is what an Index reads of the model.
type Cluster interface {
	// Nodes returns existing nodes by index; entries may be nil.
	Nodes() []*api.NodeInfo
	// NodeChanges lists nodes whose accounts or objects have changed.
	NodeChanges() *api.Journal
	// NodeSpecChanges lists nodes whose objects have changed.
	NodeSpecChanges() *api.Journal
	// Generations count changes of the model; Index reads NodeSpecs, Foreign and MemberKinds.
	Generations() api.Generations
	// MemberSignatures returns the signatures of holding or waiting members of queues, in the order of their creation.
	MemberSignatures() []*api.Signature
	// ClassOf returns the equivalence class of a task.
	ClassOf(*api.TaskInfo) *api.EquivalenceClass
}

// Filters is what an Index asks the current session about single nodes.
type Filters interface {
	// Filter returns why no task with the signature may ever run on the node, or nil. The answer may depend on
	// the signature and the node object alone.
	Filter(*api.Signature, *api.NodeInfo) *api.Unfit
	// Feasible reports whether Filter returns nil. It is faster, because the reason does not matter.
	Feasible(*api.Signature, *api.NodeInfo) bool
	// Predicate returns why the task cannot run on a feasible node apart from resources, or nil. If the equivalence class
	// of the task is local to nodes, the answer is the same for all tasks with its signature, and depends on
	// nothing but the node. While no member of a gang has a node, that also holds for classes that differ in the gang alone.
	Predicate(*api.TaskInfo, *api.NodeInfo, api.When) *api.Unfit
}

// Index answers questions about all nodes of one cluster; see the package comment. Only the scheduling goroutine
// may use it, while a session is open.
type Index struct {
	feasible  feasibleIndex
	capacity  capacityIndex
	available availableIndex
	releasing releasingIndex
	verdicts  verdictIndex
	total     totalIndex
	domains   domainIndex
}

// source is where the parts of an Index read.
type source struct {
	cluster Cluster
	dims    *api.Dimensions
	filters Filters // of the session that is open, else nil
}

// New returns an empty Index of a cluster.
func New(cluster Cluster, dims *api.Dimensions) *Index {
	x := &Index{}
	x.feasible = feasibleIndex{source: source{cluster: cluster, dims: dims}, known: map[*api.Signature]*feasibleNodes{}, kinds: map[*api.SignatureKind]*feasibleSet{}}
	x.domains = domainIndex{feasible: &x.feasible, known: map[string]*Domains{}, asked: map[*api.TopologyLevel]*Domains{}}
	x.capacity = capacityIndex{feasible: &x.feasible, domains: &x.domains}
	x.available = availableIndex{feasible: &x.feasible}
	x.releasing = releasingIndex{cluster: cluster}
	x.verdicts = verdictIndex{feasible: &x.feasible, domains: &x.domains, known: map[verdictKey]*nodeVerdicts{}, changes: netChanges{cluster: cluster}}
	x.total = totalIndex{feasible: &x.feasible}
	return x
}

// Open is called when a session has opened: all filters are registered. From then on the Index asks this session.
// What Filter returned to earlier sessions stays valid.
func (x *Index) Open(filters Filters) {
	x.feasible.filters = filters
	x.total.update()
}

// Close is called when a session closes. It drops the node verdicts and domains that the session has not asked for, and the
// session: that may be large, and the next one may not open for long.
func (x *Index) Close() {
	x.verdicts.dropUnused()
	x.domains.dropUnused()
	x.feasible.filters = nil
}

// Feasible returns the feasible nodes of a signature: those that pass the filters. The set belongs to the Index and
// is valid until node objects change.
func (x *Index) Feasible(signature *api.Signature) *NodeSet { return x.feasible.nodes(signature) }

// CapacityCount returns how many tasks with the signature its feasible nodes could hold if no member of a queue
// ran there.
func (x *Index) CapacityCount(signature *api.Signature) int64 {
	return x.capacity.count(signature).domain
}

// CouldHold reports whether the feasible nodes of a signature could hold a number of tasks with it if no pods ran there.
func (x *Index) CouldHold(signature *api.Signature, tasks int64) bool {
	return x.capacity.couldHold(signature, tasks)
}

// Largest returns the most of each resource that is allocatable on one of the feasible nodes of a signature. The vector
// belongs to the Index.
func (x *Index) Largest(signature *api.Signature) api.Resource {
	return x.capacity.largestNode(signature)
}

// MaxMembers returns how many members of a job could have started if no other pods ran on the nodes. It is an upper
// bound: fewer may fit.
func (x *Index) MaxMembers(j *api.JobInfo) int64 { return x.capacity.maxMembers(j) }

// CouldFit returns for each signature how many waiting tasks of a job could run on nodes without other members of
// queues, and whether that is enough for the job to start. It is a necessary condition, not a sufficient one.
func (x *Index) CouldFit(j *api.JobInfo) (tasks map[*api.Signature]int64, enough bool) {
	return x.capacity.couldFit(j)
}

// Available returns what is idle or being released on the nodes that are feasible for some task of the claim, in
// the dimensions that the claim requests. The vector belongs to the Index.
func (x *Index) Available(claim *api.Claim) api.Resource { return x.available.of(claim) }

// Insufficient reports whether a claim requests more than Available returns in a dimension. It is fast in the
// two common cases, a full and an empty cluster.
func (x *Index) Insufficient(claim *api.Claim, dimension int) bool {
	return x.available.insufficient(claim, dimension)
}

// Releasing returns the nodes where resources are being released. The set belongs to the Index.
func (x *Index) Releasing() *NodeSet { return x.releasing.nodes() }

// Count counts the nodes where the task could start now and, by reason, those where it could not. The counts belong
// to the Index.
func (x *Index) Count(t *api.TaskInfo) api.NodeCounts { return x.verdicts.count(t, true) }

// CountWithoutNearest is Count without the nearest node, which costs more than all else where many nodes change.
func (x *Index) CountWithoutNearest(t *api.TaskInfo) api.NodeCounts {
	return x.verdicts.count(t, false)
}

// Keep keeps what Count has found out for an equal task until the next session closes.
func (x *Index) Keep(t *api.TaskInfo) { x.verdicts.keep(t) }

// KnownAvailable returns the nodes where the task could start now, if the Index knows them without examining all
// nodes: Count was called for an equal task before. Otherwise it returns nil. The set belongs to the Index.
func (x *Index) KnownAvailable(t *api.TaskInfo) *NodeSet { return x.verdicts.knownAvailable(t) }

// Total returns the usable total, as of when the session opened: what members of queues could hold. A node counts
// with its allocatable resources, less what pods outside of all queues request, if it is ready and schedulable
// and is feasible for some holding or waiting member of a queue; any other node counts with what members hold
// there. The vector belongs to the Index.
func (x *Index) Total() api.Resource { return x.total.opened }
