// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerframework "k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// snapshot is the NodeInfo snapshot of the model: every node with all pods that run on it or are placed on it. Every
// node has two NodeInfos: Now with, and Future without the terminating pods. Listers return those of the last call of
// list.
type snapshot struct {
	cluster     api.ClusterView
	reader      api.JournalReader
	nodes       []*nodeInfos
	terminating int // nodes whose two NodeInfos differ
	changes     changes

	// The listed NodeInfos.
	listed                              bool
	when                                api.When
	all, withAffinity, withAntiAffinity []fwk.NodeInfo
}

// nodeInfos are the NodeInfos of one node. They are immutable; without terminating pods both are the same.
type nodeInfos struct {
	generation  uint64 // of the node
	now, future *schedulerframework.NodeInfo
	pods        map[api.TaskID]podState
}

// podState is a pod with its parsed PodInfo.
type podState struct {
	pod         *v1.Pod // the pod in the model
	terminating bool
	info        *schedulerframework.PodInfo
}

// setCluster sets the model.
func (s *snapshot) setCluster(cluster api.ClusterView) {
	if s.cluster != cluster {
		*s = snapshot{cluster: cluster}
	}
}

// sync updates the snapshot and returns the time to use: Now also for Future while no pod is terminating.
func (s *snapshot) sync(when api.When) api.When {
	if journal := s.cluster.NodeChanges(); !s.reader.UpToDate(journal) {
		changed, known := s.reader.CatchUp(journal, math.MaxInt)
		for _, index := range changed {
			s.rebuildNode(int(index))
		}
		if !known {
			s.rebuild()
		}
		s.listed = false
	}
	if s.terminating == 0 {
		return api.Now
	}
	return when
}

func (s *snapshot) rebuild() {
	for i := range s.cluster.Nodes() {
		s.rebuildNode(i)
	}
}

// rebuildNode updates the node with that index. It returns immediately if the node has not changed, which makes
// repeated entries of the journal cheap.
func (s *snapshot) rebuildNode(index int) {
	for index >= len(s.nodes) {
		s.nodes = append(s.nodes, nil)
	}
	old := s.nodes[index]
	n := s.cluster.Nodes()[index]
	if old != nil && n != nil && old.generation == n.Generation {
		return
	}
	var r *nodeInfos
	if n != nil {
		r = newNodeInfos(n, old)
	}
	s.nodes[index] = r
	if old != nil && old.future != old.now {
		s.terminating--
	}
	if r != nil && r.future != r.now {
		s.terminating++
	}
	s.changes.add(old, r)
}

// newNodeInfos builds the NodeInfos of a node. It reuses the state of pods in old.
func newNodeInfos(n *api.NodeInfo, old *nodeInfos) *nodeInfos {
	r := &nodeInfos{generation: n.Generation, pods: make(map[api.TaskID]podState, len(n.Tasks))}
	tasks := make([]*api.TaskInfo, 0, len(n.Tasks))
	terminating := false
	for _, t := range n.Tasks {
		tasks = append(tasks, t)
		terminating = terminating || t.Status == api.Releasing
	}
	slices.SortFunc(tasks, func(a, b *api.TaskInfo) int { return cmp.Compare(a.ID, b.ID) })
	r.now = schedulerframework.NewNodeInfo()
	r.now.SetNode(n.Node)
	r.future = r.now
	if terminating {
		r.future = schedulerframework.NewNodeInfo()
		r.future.SetNode(n.Node)
	}
	for _, t := range tasks {
		pod, known := podState{}, false
		if old != nil {
			pod, known = old.pods[t.ID]
		}
		if !known || !pod.upToDate(t, n) {
			pod = newPodState(t, n.Name)
		}
		r.pods[t.ID] = pod
		r.now.AddPodInfo(pod.info)
		if terminating && !pod.terminating {
			r.future.AddPodInfo(pod.info)
		}
	}
	return r
}

// upToDate reports whether the state equals the model.
func (r podState) upToDate(t *api.TaskInfo, n *api.NodeInfo) bool {
	return r.pod == t.Pod && r.terminating == (t.Status == api.Releasing) && r.info.Pod.Spec.NodeName == n.Name
}

// newPodState returns the pod with the changes that the model assumes: its node name, and a deletion timestamp if it
// is being evicted.
func newPodState(t *api.TaskInfo, node string) podState {
	r := podState{pod: t.Pod, terminating: t.Status == api.Releasing}
	pod := t.Pod
	if pod.Spec.NodeName != node || r.terminating && pod.DeletionTimestamp == nil {
		shallow := *pod
		pod = &shallow
		pod.Spec.NodeName = node
		if r.terminating && pod.DeletionTimestamp == nil {
			pod.DeletionTimestamp = &metav1.Time{} // plugins only check whether it is set
		}
	}
	// Terms that cannot be parsed select no pods, as in kube-scheduler.
	r.info, _ = schedulerframework.NewPodInfo(pod)
	return r
}

// list sets the NodeInfos that listers return.
func (s *snapshot) list(when api.When) {
	if s.listed && s.when == when {
		return
	}
	s.all, s.withAffinity, s.withAntiAffinity = s.all[:0], s.withAffinity[:0], s.withAntiAffinity[:0]
	for _, r := range s.nodes {
		if r == nil {
			continue
		}
		info := r.at(when)
		s.all = append(s.all, info)
		if len(info.PodsWithAffinity) > 0 {
			s.withAffinity = append(s.withAffinity, info)
		}
		if len(info.PodsWithRequiredAntiAffinity) > 0 {
			s.withAntiAffinity = append(s.withAntiAffinity, info)
		}
	}
	s.listed, s.when = true, when
}

func (r *nodeInfos) at(when api.When) *schedulerframework.NodeInfo {
	if when == api.Future {
		return r.future
	}
	return r.now
}

// node returns the NodeInfo of an existing node.
func (s *snapshot) node(n *api.NodeInfo, when api.When) fwk.NodeInfo {
	return s.nodes[n.Index].at(when)
}

// The snapshot implements all listers that the plugins use.

func (s *snapshot) NodeInfos() fwk.NodeInfoLister { return s }

func (s *snapshot) StorageInfos() fwk.StorageInfoLister { return s }

// PodGroupStates returns nil: none of the plugins uses PodGroups.
func (s *snapshot) PodGroupStates() fwk.PodGroupStateLister { return nil }

func (s *snapshot) List() ([]fwk.NodeInfo, error) { return s.all, nil }

func (s *snapshot) HavePodsWithAffinityList() ([]fwk.NodeInfo, error) { return s.withAffinity, nil }

func (s *snapshot) HavePodsWithRequiredAntiAffinityList() ([]fwk.NodeInfo, error) {
	return s.withAntiAffinity, nil
}

func (s *snapshot) Get(name string) (fwk.NodeInfo, error) {
	n := s.cluster.Node(name)
	if n == nil {
		return nil, fmt.Errorf("node %q does not exist", name)
	}
	return s.node(n, s.when), nil
}

// IsPVCUsedByPods reports whether a pod on some node uses the claim namespace/name.
func (s *snapshot) IsPVCUsedByPods(key string) bool {
	return slices.ContainsFunc(s.all, func(n fwk.NodeInfo) bool { return n.GetPVCRefCounts()[key] > 0 })
}
