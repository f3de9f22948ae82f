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

// snapshot shows the model to plugins as the snapshot that they expect: every node with all pods
// that stand on it or are promised to it. It has two faces: Now with, and Future without the
// pods that are being deleted. The one that was synced last is listed.
type snapshot struct {
	cluster api.ClusterView
	reader  api.JournalReader
	nodes   []*nodeInfos
	leaving int // nodes whose faces differ
	changes changes

	// The face that is listed.
	listed                              bool
	face                                api.When
	all, withAffinity, withAntiAffinity []fwk.NodeInfo
}

// nodeInfos is one node. Its faces are never changed, only replaced; where nothing is being
// deleted they are the same.
type nodeInfos struct {
	generation  uint64 // of the node
	now, future *schedulerframework.NodeInfo
	pods        map[api.TaskID]reflected
}

// reflected is a pod with what plugins have parsed of it.
type reflected struct {
	shown   *v1.Pod // the pod in the model
	leaving bool
	info    *schedulerframework.PodInfo
}

// reflect sets the model to mirror.
func (m *snapshot) reflect(cluster api.ClusterView) {
	if m.cluster != cluster {
		*m = snapshot{cluster: cluster}
	}
}

// sync brings the mirror up to date and returns the face that the question is about: Now also
// answers for the Future while nothing is being deleted.
func (m *snapshot) sync(when api.When) api.When {
	if journal := m.cluster.NodeChanges(); !m.reader.UpToDate(journal) {
		m.reader.CatchUp(journal, math.MaxInt, m.rebuild, m.rebuildNode)
		m.listed = false
	}
	if m.leaving == 0 {
		return api.Now
	}
	return when
}

func (m *snapshot) rebuild() {
	for i := range m.cluster.Nodes() {
		m.rebuildNode(i)
	}
}

// rebuildNode shows the node with that index as it is now. It returns at once if the node has not changed, which
// makes repeated entries of the journal cheap.
func (m *snapshot) rebuildNode(index int) {
	for index >= len(m.nodes) {
		m.nodes = append(m.nodes, nil)
	}
	old := m.nodes[index]
	n := m.cluster.Nodes()[index]
	if old != nil && n != nil && old.generation == n.Generation {
		return
	}
	var r *nodeInfos
	if n != nil {
		r = newReflection(n, old)
	}
	m.nodes[index] = r
	if old != nil && old.future != old.now {
		m.leaving--
	}
	if r != nil && r.future != r.now {
		m.leaving++
	}
	m.changes.add(old, r)
}

// newReflection builds a node; what the old one knew of its pods is taken over.
func newReflection(n *api.NodeInfo, old *nodeInfos) *nodeInfos {
	r := &nodeInfos{generation: n.Generation, pods: make(map[api.TaskID]reflected, len(n.Tasks))}
	tasks := make([]*api.TaskInfo, 0, len(n.Tasks))
	leaving := false
	for _, t := range n.Tasks {
		tasks = append(tasks, t)
		leaving = leaving || t.Status == api.Releasing
	}
	slices.SortFunc(tasks, func(a, b *api.TaskInfo) int { return cmp.Compare(a.ID, b.ID) })
	r.now = schedulerframework.NewNodeInfo()
	r.now.SetNode(n.Node)
	r.future = r.now
	if leaving {
		r.future = schedulerframework.NewNodeInfo()
		r.future.SetNode(n.Node)
	}
	for _, t := range tasks {
		pod, known := reflected{}, false
		if old != nil {
			pod, known = old.pods[t.ID]
		}
		if !known || !pod.shows(t, n) {
			pod = newReflected(t, n.Name)
		}
		r.pods[t.ID] = pod
		r.now.AddPodInfo(pod.info)
		if leaving && !pod.leaving {
			r.future.AddPodInfo(pod.info)
		}
	}
	return r
}

// shows tells whether the reflection is still true.
func (r reflected) shows(t *api.TaskInfo, n *api.NodeInfo) bool {
	return r.shown == t.Pod && r.leaving == (t.Status == api.Releasing) && r.info.Pod.Spec.NodeName == n.Name
}

// newReflected shows a pod as it will be once what the model says of it is true: on its node,
// and being deleted if it is to go.
func newReflected(t *api.TaskInfo, node string) reflected {
	r := reflected{shown: t.Pod, leaving: t.Status == api.Releasing}
	pod := t.Pod
	if pod.Spec.NodeName != node || r.leaving && pod.DeletionTimestamp == nil {
		shallow := *pod
		pod = &shallow
		pod.Spec.NodeName = node
		if r.leaving && pod.DeletionTimestamp == nil {
			pod.DeletionTimestamp = &metav1.Time{} // the plugins look only whether there is one
		}
	}
	// What cannot be parsed selects nothing, as in kube-scheduler.
	r.info, _ = schedulerframework.NewPodInfo(pod)
	return r
}

// list lets the listers show one face.
func (m *snapshot) list(face api.When) {
	if m.listed && m.face == face {
		return
	}
	m.all, m.withAffinity, m.withAntiAffinity = m.all[:0], m.withAffinity[:0], m.withAntiAffinity[:0]
	for _, r := range m.nodes {
		if r == nil {
			continue
		}
		info := r.show(face)
		m.all = append(m.all, info)
		if len(info.PodsWithAffinity) > 0 {
			m.withAffinity = append(m.withAffinity, info)
		}
		if len(info.PodsWithRequiredAntiAffinity) > 0 {
			m.withAntiAffinity = append(m.withAntiAffinity, info)
		}
	}
	m.listed, m.face = true, face
}

func (r *nodeInfos) show(face api.When) *schedulerframework.NodeInfo {
	if face == api.Future {
		return r.future
	}
	return r.now
}

// node returns what plugins see of an existing node.
func (m *snapshot) node(n *api.NodeInfo, face api.When) fwk.NodeInfo {
	return m.nodes[n.Index].show(face)
}

// The mirror is all the listers that plugins ask for.

func (m *snapshot) NodeInfos() fwk.NodeInfoLister { return m }

func (m *snapshot) StorageInfos() fwk.StorageInfoLister { return m }

// PodGroupStates is nil: no plugin that is asked here knows groups.
func (m *snapshot) PodGroupStates() fwk.PodGroupStateLister { return nil }

func (m *snapshot) List() ([]fwk.NodeInfo, error) { return m.all, nil }

func (m *snapshot) HavePodsWithAffinityList() ([]fwk.NodeInfo, error) { return m.withAffinity, nil }

func (m *snapshot) HavePodsWithRequiredAntiAffinityList() ([]fwk.NodeInfo, error) {
	return m.withAntiAffinity, nil
}

func (m *snapshot) Get(name string) (fwk.NodeInfo, error) {
	n := m.cluster.Node(name)
	if n == nil {
		return nil, fmt.Errorf("node %q does not exist", name)
	}
	return m.node(n, m.face), nil
}

// IsPVCUsedByPods tells whether a pod on some node uses the claim namespace/name.
func (m *snapshot) IsPVCUsedByPods(key string) bool {
	return slices.ContainsFunc(m.all, func(n fwk.NodeInfo) bool { return n.GetPVCRefCounts()[key] > 0 })
}
