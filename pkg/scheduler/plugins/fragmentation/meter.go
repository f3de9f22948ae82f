// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package fragmentation

import (
	v1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/fragmentation"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/metrics"
)

// meter keeps the sums for metrics. It follows the nodes: after a session it looks at those that have changed, and at all of
// them if the types have, because F of each node is another one then.
type meter struct {
	reader  api.JournalReader // of the changes of nodes
	version uint64            // of the types
	nodes   []measured        // by index
	sum     measured
	fitting [4]int64 // for each of PodSizes
}

// measured is what is known of a node, or of all nodes.
type measured struct{ total, free, lost, stranded int64 }

// measure returns what nodes have of the devices after a session.
func (w *workload) measure(name v1.ResourceName) *metrics.Devices {
	m, nodes := &w.meter, w.cluster.Nodes()
	changed, known := m.reader.CatchUp(w.cluster.NodeChanges(), len(nodes))
	m.nodes = append(m.nodes, make([]measured, max(len(nodes)-len(m.nodes), 0))...)
	if known && m.version == w.version {
		for _, i := range changed {
			m.set(int(i), w.measureNode(nodes[i]))
		}
	} else {
		for i, n := range nodes {
			m.set(i, w.measureNode(n))
		}
		m.version = w.version
	}
	d := &metrics.Devices{Resource: string(name), Total: m.sum.total, Free: m.sum.free, Fitting: make([]metrics.FittingPods, 0, len(m.fitting))}
	for i, size := range fragmentation.PodSizes() {
		d.Fitting = append(d.Fitting, metrics.FittingPods{Size: size, Pods: m.fitting[i]})
	}
	if w.set != nil {
		d.Typed, d.Stranded, d.Fragmented = true, m.sum.stranded, m.sum.lost/w.set.Total()
	}
	return d
}

// measureNode returns what a node has; nil has nothing.
func (w *workload) measureNode(n *api.NodeInfo) (m measured) {
	if n == nil {
		return m
	}
	m.total = max(n.Allocatable.At(w.device), 0)
	if m.total == 0 || !n.Ready() || n.Node.Spec.Unschedulable {
		return m
	}
	m.free = w.idle(n, 0)
	if w.set != nil && m.free > 0 {
		m.lost = w.lost(n)
		if m.lost == m.free*fragmentation.Whole*w.set.Total() {
			m.stranded = m.free
		}
	}
	return m
}

// set replaces what is known of a node.
func (m *meter) set(i int, now measured) {
	before := m.nodes[i]
	m.nodes[i] = now
	m.sum.total += now.total - before.total
	m.sum.free += now.free - before.free
	m.sum.lost += now.lost - before.lost
	m.sum.stranded += now.stranded - before.stranded
	for k, size := range fragmentation.PodSizes() {
		m.fitting[k] += now.free/size - before.free/size
	}
}
