// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package show

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/klog/v2"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/devicecounts"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/fragmentation"
)

// GPUUsageList is what nodes have of a resource, by model.
type GPUUsageList struct {
	Resource corev1.ResourceName `json:"resource"`
	Items    []GPUUsage          `json:"items"`
}

// GPUUsage are the GPUs of a model. Nodes that are cordoned or not ready have nothing free.
type GPUUsage struct {
	Model string   `json:"model"` // value of the node label; empty for nodes without it
	Nodes int      `json:"nodes"`
	Total int64    `json:"total"`
	Free  int64    `json:"free"`
	Fit   []PodFit `json:"fit"`
	// Stranded are the free GPUs of nodes that no type of pods fits. Fragmentation is how many of the free GPUs a pod cannot
	// use, the mean over the types. Both are absent if there is no type: no pod requests GPUs and may run on one of the nodes.
	Stranded      *int64             `json:"stranded,omitempty"`
	Fragmentation *resource.Quantity `json:"fragmentation,omitempty"`
}

// PodFit is how many pods fit that request so many GPUs, and nothing else.
type PodFit struct {
	GPUs int64 `json:"gpus"`
	Pods int64 `json:"pods"`
}

// ModelLabels are the usual node labels for the model of GPUs, of NVIDIA, AMD and Intel, and of clouds.
func ModelLabels() []string {
	return []string{
		"nvidia.com/gpu.product", "amd.com/gpu.product-name", "gpu.intel.com/product",
		"cloud.google.com/gke-accelerator", "karpenter.k8s.aws/instance-gpu-name", "eks.amazonaws.com/instance-gpu-name",
	}
}

// gpuCounter reads nodes and pods.
type gpuCounter struct {
	dims    *api.Dimensions
	device  int // dimension
	devices *devicecounts.Counts
	borne   map[string]bool // claims that count for a pod
	types   map[string]*podType
}

// gpuNode is what is left of a node.
type gpuNode struct {
	*corev1.Node
	total int64
	idle  api.Resource
}

// podType are pods that run or wait, request the same and may run on the same nodes.
type podType struct {
	*api.Signature
	pods int64
}

// GPUs returns what nodes have of a resource, by the value of the first of the labels that a node has. Devices are those of DRA
// drivers.
func GPUs(name corev1.ResourceName, labels []string, nodes []corev1.Node, pods []corev1.Pod, devices *devicecounts.Counts) GPUUsageList {
	c := &gpuCounter{dims: api.NewDimensions(), devices: devices, borne: map[string]bool{}, types: map[string]*podType{}}
	c.device = c.dims.Index(name)
	byName, models := map[string]*gpuNode{}, map[string][]*gpuNode{}
	for i := range nodes {
		n := &gpuNode{Node: &nodes[i], idle: api.Allocatable(c.dims, &nodes[i], devices.Nodes[nodes[i].Name])}
		byName[n.Name] = n
		if n.total = n.idle.At(c.device); n.total > 0 {
			model := modelOf(n.Node, labels)
			models[model] = append(models[model], n)
		}
	}
	for _, placed := range []bool{true, false} { // a claim that pods share counts where one of them is
		for i := range pods {
			if p := &pods[i]; (p.Spec.NodeName != "") == placed {
				c.add(p, byName[p.Spec.NodeName])
			}
		}
	}
	list := GPUUsageList{Resource: name, Items: []GPUUsage{}}
	for _, model := range slices.Sorted(maps.Keys(models)) {
		list.Items = append(list.Items, c.usage(model, models[model]))
	}
	return list
}

func modelOf(n *corev1.Node, labels []string) string {
	for _, label := range labels {
		if model := n.Labels[label]; model != "" {
			return model
		}
	}
	return ""
}

// add counts a pod on its node, nil if it has none, and in its type.
func (c *gpuCounter) add(p *corev1.Pod, on *gpuNode) {
	status := api.StatusOf(p)
	if status.Ended() {
		return
	}
	request := c.dims.RequestOf(p)
	for i := range p.Spec.ResourceClaims {
		if claim := c.claimOf(p, &p.Spec.ResourceClaims[i]); claim != nil {
			request.Add(c.dims.Vector(claim.Required))
		}
	}
	if on != nil {
		on.idle.Sub(request)
	}
	if request.At(c.device) == 0 || status == api.Releasing {
		return
	}
	s := api.NewSignature("", p, request)
	key := fragmentation.TypeKey(s)
	if c.types[key] == nil {
		c.types[key] = &podType{Signature: s}
	}
	c.types[key].pods++
}

// claimOf returns what a claim of a pod requests; nil if that is nothing that counts, or if it counts for another pod.
func (c *gpuCounter) claimOf(p *corev1.Pod, claim *corev1.PodResourceClaim) *api.DeviceClaim {
	name, _, err := resourceclaim.Name(p, claim)
	if err != nil || name == nil {
		return nil
	}
	key := p.Namespace + "/" + *name
	if c.borne[key] {
		return nil
	}
	c.borne[key] = true
	return c.devices.Claims[key]
}

func (c *gpuCounter) usage(model string, nodes []*gpuNode) GPUUsage {
	u := GPUUsage{Model: model, Nodes: len(nodes)}
	for _, size := range fragmentation.PodSizes() {
		u.Fit = append(u.Fit, PodFit{GPUs: size})
	}
	for _, n := range nodes {
		free := n.free(c.device)
		u.Total += n.total
		u.Free += free
		for i := range u.Fit {
			u.Fit[i].Pods += free / u.Fit[i].GPUs
		}
	}
	types, popular := c.typesOn(nodes)
	if len(popular) == 0 {
		return u
	}
	set := fragmentation.NewSet(c.device, popular)
	lost, stranded := int64(0), int64(0)
	for _, n := range nodes {
		free := n.free(c.device)
		left := fragmentation.Node{Idle: n.idle, Devices: []fragmentation.Devices{{Free: fragmentation.Whole, Count: free}}}
		for i := range popular {
			if admits(types[popular[i].Key].Signature, n.Node) {
				left.Admits |= 1 << i
			}
		}
		of := set.Lost(&left)
		if lost += of; of == free*fragmentation.Whole*set.Total() {
			stranded += free
		}
	}
	u.Stranded, u.Fragmentation = &stranded, resource.NewMilliQuantity(lost/set.Total(), resource.DecimalSI)
	return u
}

// free returns how many GPUs of a node new pods can get.
func (n *gpuNode) free(device int) int64 {
	if n.Node.Spec.Unschedulable || !ready(n.Node) {
		return 0
	}
	return max(n.idle.At(device), 0)
}

// typesOn returns the types of pods that may run on some of the nodes, and the most frequent of them, whose keys are indexes of
// the former.
func (c *gpuCounter) typesOn(nodes []*gpuNode) (types []*podType, popular []fragmentation.Type) {
	var all []fragmentation.Type
	for _, key := range slices.Sorted(maps.Keys(c.types)) {
		t := c.types[key]
		if slices.ContainsFunc(nodes, func(n *gpuNode) bool { return admits(t.Signature, n.Node) }) {
			all = append(all, fragmentation.Type{Request: t.Request, Share: fragmentation.Whole, Weight: t.pods, Key: len(types)})
			types = append(types, t)
		}
	}
	return types, fragmentation.Popular(all)
}

// admits reports whether a pod may run on a node if the node has enough resources.
func admits(s *api.Signature, n *corev1.Node) bool {
	if !s.Admits(n) {
		return false
	}
	_, repelled := corev1helpers.FindMatchingUntoleratedTaint(klog.Background(), n.Spec.Taints, s.Exemplar.Tolerations,
		func(t *corev1.Taint) bool { return t.Effect != corev1.TaintEffectPreferNoSchedule }, true)
	return !repelled
}
