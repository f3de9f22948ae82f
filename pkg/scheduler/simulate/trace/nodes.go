// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// mostNodes is how many nodes a specification may have.
const mostNodes = 100_000

// defaultNodeName is the beginning of the names of nodes.
const defaultNodeName = "node"

// Nodes returns equal nodes: "256" for as many nodes of one CPU, or "count=552,cpu=64,memory=512Gi,nvidia.com/gpu=8". The
// part name=NAME is the beginning of their names, and label:KEY=VALUE is a label of theirs. domain:KEY=16 gives 16 nodes in
// a row a label of one value; the widest domains come first.
func Nodes(spec string) ([]*v1.Node, error) {
	count, name, labels := 1, defaultNodeName, map[string]string{}
	var levels []domains
	amounts := v1.ResourceList{}
	if n, err := strconv.Atoi(spec); err == nil {
		count, amounts[v1.ResourceCPU] = n, *resource.NewQuantity(1, resource.DecimalSI)
	} else {
		for part := range strings.SplitSeq(spec, ",") {
			key, value, ok := strings.Cut(part, "=")
			label, isLabel := strings.CutPrefix(key, "label:")
			domain, isDomain := strings.CutPrefix(key, "domain:")
			switch {
			case !ok:
				return nil, fmt.Errorf("%q is not KEY=VALUE, as in count=4,cpu=64,memory=512Gi,nvidia.com/gpu=8", part)
			case key == "count":
				if count, err = strconv.Atoi(value); err != nil {
					return nil, fmt.Errorf("count: %q is not a number", value)
				}
			case key == "name":
				name = value
			case isLabel:
				labels[label] = value
			case isDomain:
				if levels, err = addDomains(levels, domain, value); err != nil {
					return nil, err
				}
			default:
				q, err := resource.ParseQuantity(value)
				if err != nil || q.Sign() < 0 {
					return nil, fmt.Errorf("%s: %q is not an amount, such as 8 or 512Gi", key, value)
				}
				amounts[v1.ResourceName(key)] = q
			}
		}
	}
	if count < 1 || count > mostNodes {
		return nil, fmt.Errorf("there must be 1 to %d nodes, not %d", mostNodes, count)
	}
	nodes := make([]*v1.Node, count)
	for i := range nodes {
		nodes[i] = newNode(fmt.Sprintf("%s-%05d", name, i), amounts)
		for key, value := range labels {
			nodes[i].Labels[key] = value
		}
		setDomains(nodes[i], levels, i, name)
	}
	return nodes, nil
}

// newNode returns a node that is ready. Unless the amounts state how many pods it takes, it takes 250.
func newNode(name string, amounts v1.ResourceList) *v1.Node {
	amounts = amounts.DeepCopy()
	if _, given := amounts[v1.ResourcePods]; !given {
		amounts[v1.ResourcePods] = *resource.NewQuantity(250, resource.DecimalSI)
	}
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelHostname: name}},
		Status: v1.NodeStatus{
			Allocatable: amounts, Capacity: amounts,
			Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}},
		},
	}
}

// ReadNodes reads a table of nodes: of Alibaba's cluster-trace-gpu-v2023 (openb), cluster-trace-v2026-spot-gpu or
// cluster-trace-gpu-v2020 (pai). The columns decide which.
func ReadNodes(file string, from io.Reader) ([]*v1.Node, error) {
	l := newLines(file, from)
	t, err := readColumns(l, paiMachineColumns())
	if err != nil {
		return nil, err
	}
	has := func(column string) bool { _, there := t.columns[column]; return there }
	read := readOpenbNodes
	switch {
	case has("machine"):
		read = readPAINodes
	case has("node_name"):
		read = readSpotNodes
	}
	nodes, err := read(t)
	if err == nil && len(nodes) == 0 {
		return nil, fmt.Errorf("%s: there is no node in it", file)
	}
	return nodes, err
}
