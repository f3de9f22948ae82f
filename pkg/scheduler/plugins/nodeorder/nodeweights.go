// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package nodeorder

import (
	"strconv"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

// nodeWeights is the state of the scorer nodeweight: the weights that administrators give to nodes. It follows the journal of
// node objects, so that a session reads only the labels of nodes that have changed.
type nodeWeights struct {
	scores  []api.Score // by node index
	cluster api.ClusterView
	reader  api.JournalReader
	invalid map[int]string // by node index: name and invalid label, which is logged once
}

// open reads the weights of a session. Node objects do not change until it closes.
func (w *nodeWeights) open(ssn *framework.Session) {
	if ssn.Cluster() != w.cluster {
		*w = nodeWeights{cluster: ssn.Cluster(), invalid: map[int]string{}}
	}
	nodes := w.cluster.Nodes()
	changed, known := w.reader.CatchUp(w.cluster.NodeSpecChanges(), len(nodes))
	if missing := len(nodes) - len(w.scores); missing > 0 {
		w.scores = append(w.scores, make([]api.Score, missing)...)
	}
	if !known {
		for i := range nodes {
			w.read(ssn.Log, i, nodes[i])
		}
		return
	}
	for _, i := range changed {
		if int(i) < len(nodes) {
			w.read(ssn.Log, int(i), nodes[i])
		}
	}
}

// read reads the weight of the node with that index; nil if there is none any more.
func (w *nodeWeights) read(log logr.Logger, index int, n *api.NodeInfo) {
	if n == nil {
		delete(w.invalid, index)
		return
	}
	weight, valid := weightOf(n.Node)
	w.scores[index] = api.ScoreOf(v1alpha1.MaxNodeWeight-weight, v1alpha1.MaxNodeWeight)
	if valid {
		delete(w.invalid, index)
		return
	}
	text := n.Node.Labels[v1alpha1.LabelNodeWeight]
	if problem := n.Name + "=" + text; w.invalid[index] != problem {
		w.invalid[index] = problem
		log.Info("Node weight is invalid, 0 is used", "node", klog.KRef("", n.Name), "label", v1alpha1.LabelNodeWeight, "value", text, "maximum", v1alpha1.MaxNodeWeight)
	}
}

// weightOf returns the weight of a node; 0 and false if its label is not a whole number from 0 to MaxNodeWeight.
func weightOf(node *v1.Node) (int64, bool) {
	text, has := node.Labels[v1alpha1.LabelNodeWeight]
	if !has {
		return 0, true
	}
	weight, err := strconv.ParseUint(text, 10, 32)
	if err != nil || weight > v1alpha1.MaxNodeWeight {
		return 0, false
	}
	return int64(weight), true
}

// nodeWeight returns 1 for a node of weight 0, down to 0 for the largest weight.
func nodeWeight(q *scoreState, n *api.NodeInfo) api.Score {
	if uint(n.Index) >= uint(len(q.nodeWeights.scores)) {
		return 0
	}
	return q.nodeWeights.scores[n.Index]
}
