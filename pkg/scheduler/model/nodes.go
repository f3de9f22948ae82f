// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"math"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// nodeTable holds the nodes that exist, and those that pods name although the API server does not show them.
type nodeTable struct {
	generations *api.Generations
	byName      map[string]*api.NodeInfo
	// byIndex holds existing nodes by NodeInfo.Index; nil where an index is free.
	byIndex   []*api.NodeInfo
	freeIndex []int
	rankStale bool // a node was added since NodeInfo.Rank was set

	devices map[string]v1.ResourceList // by node name: see Events.SetDevices

	unavailableSoon int    // nodes with UnavailableFrom
	classesChanged  func() // makes equivalence classes invalid

	changes, specChanges api.Journal
}

func newNodeTable(generations *api.Generations) nodeTable {
	return nodeTable{generations: generations, byName: map[string]*api.NodeInfo{}, devices: map[string]v1.ResourceList{}}
}

func (nt *nodeTable) existing(name string) *api.NodeInfo {
	if n := nt.byName[name]; n != nil && n.Exists() {
		return n
	}
	return nil
}

func (nt *nodeTable) count() int { return len(nt.byIndex) - len(nt.freeIndex) }

// named returns the node of that name, which need not exist.
func (nt *nodeTable) named(name string) *api.NodeInfo {
	n := nt.byName[name]
	if n == nil {
		n = &api.NodeInfo{Name: name, Index: -1, Tasks: map[api.TaskID]*api.TaskInfo{}}
		nt.byName[name] = n
	}
	return n
}

// of returns the node that the pod is on, nil while it has none and once it has ended: a pod
// that holds nothing must not keep an entry of a deleted node.
func (nt *nodeTable) of(pod *v1.Pod) *api.NodeInfo {
	if pod.Spec.NodeName == "" || api.StatusOf(pod).Ended() {
		return nil
	}
	return nt.named(pod.Spec.NodeName)
}

// release drops a node that neither exists nor is named by a pod. A pod that has ended may
// still refer to a dropped node when another of the same name exists.
func (nt *nodeTable) release(n *api.NodeInfo) {
	if n != nil && !n.Exists() && len(n.Tasks) == 0 && len(n.Nominated) == 0 && nt.byName[n.Name] == n {
		delete(nt.byName, n.Name)
	}
}

// touch notes that accounts of n changed.
func (nt *nodeTable) touch(n *api.NodeInfo) {
	n.OwnGeneration = nt.generations.Model
	nt.touchReserved(n)
}

// touchReserved notes that what is reserved of n changed, and nothing else.
func (nt *nodeTable) touchReserved(n *api.NodeInfo) {
	n.Generation = nt.generations.Model
	if n.Exists() {
		nt.changes.Add(n.Index)
	}
}

// set gives n, whose tasks must be detached, a new version of its object.
func (nt *nodeTable) set(n *api.NodeInfo, node *v1.Node, allocatable api.Resource, dims *api.Dimensions) {
	n.Idle.Sub(n.Allocatable)
	n.Idle.Add(allocatable)
	n.Idle, n.Allocatable = adjacentCopies(n.Idle, allocatable)
	if !n.Exists() {
		n.Index = nt.takeIndex(n)
	}
	n.Node = node
	n.Tracking = api.NodeTracking{Ready: reportsReady(n), SoftTaints: hasSoftTaints(node), ExtendedResources: countExtended(allocatable, dims)}
	nt.setUnavailable(n, node)
	nt.specChanges.Add(n.Index)
	nt.touch(n)
}

// unset marks n, whose tasks must be detached, as deleted.
func (nt *nodeTable) unset(n *api.NodeInfo) {
	nt.touch(n)
	nt.specChanges.Add(n.Index)
	nt.byIndex[n.Index] = nil
	nt.freeIndex = append(nt.freeIndex, n.Index)
	nt.setUnavailable(n, nil)
	n.Node, n.Index, n.Tracking = nil, -1, api.NodeTracking{}
	n.Allocatable, n.Idle = nil, nil
}

func (nt *nodeTable) takeIndex(n *api.NodeInfo) int {
	nt.rankStale, n.Rank = true, 0
	if last := len(nt.freeIndex) - 1; last >= 0 {
		i := nt.freeIndex[last]
		nt.freeIndex = nt.freeIndex[:last]
		nt.byIndex[i] = n
		return i
	}
	nt.byIndex = append(nt.byIndex, n)
	return len(nt.byIndex) - 1
}

// addNominated records the node that another scheduler has nominated for a pod.
func (nt *nodeTable) addNominated(t *api.TaskInfo) {
	if t.Job != nil || t.Status != api.Pending || t.Pod.Status.NominatedNodeName == "" {
		return
	}
	n := nt.named(t.Pod.Status.NominatedNodeName)
	t.Tracking.Nominated = n
	n.Nominated = append(n.Nominated, t)
	nt.touch(n)
}

func (nt *nodeTable) removeNominated(t *api.TaskInfo) {
	if n := t.Tracking.Nominated; n != nil {
		n.Nominated = withOrWithout(n.Nominated, t, false)
		t.Tracking.Nominated = nil
		nt.touch(n)
		nt.release(n)
	}
}

// rank recomputes the ranks if nodes were added. Deleting nodes does not change the order of the others.
func (nt *nodeTable) rank() {
	if !nt.rankStale {
		return
	}
	nt.rankStale = false
	nodes := make([]*api.NodeInfo, 0, len(nt.byIndex))
	for _, n := range nt.byIndex {
		if n != nil {
			nodes = append(nodes, n)
		}
	}
	slices.SortFunc(nodes, func(a, b *api.NodeInfo) int { return cmp.Compare(a.Name, b.Name) })
	for i, n := range nodes {
		n.Rank = int32(i + 1)
	}
}

func reportsReady(n *api.NodeInfo) bool {
	ready := n.Condition(v1.NodeReady)
	return ready != v1.ConditionFalse && ready != v1.ConditionUnknown
}

// countExtended counts the extended resources of which a node has some.
func countExtended(allocatable api.Resource, dims *api.Dimensions) uint8 {
	count := 0
	for i, amount := range allocatable {
		if amount > 0 && dims.Extended(i) {
			count++
		}
	}
	return uint8(min(count, math.MaxUint8))
}

func hasSoftTaints(node *v1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t v1.Taint) bool { return t.Effect == v1.TaintEffectPreferNoSchedule })
}

// adjacentCopies returns copies that lie next to each other in memory, for vectors that are read together.
func adjacentCopies(a, b api.Resource) (api.Resource, api.Resource) {
	both := append(append(make(api.Resource, 0, len(a)+len(b)), a...), b...)
	return both[:len(a):len(a)], both[len(a):]
}
