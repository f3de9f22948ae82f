// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Topology describes how nodes are connected, by their labels: for example which of them share a rack, and which racks
// share a block. A PodGroup that names levels of it in spec.topologyConstraint runs within one domain, or within few.
//
// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,path=topologies
// +kubebuilder:printcolumn:name="Levels",type=string,JSONPath=`.spec.levels[*].nodeLabel`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Topology struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec TopologySpec `json:"spec"`
	// +optional
	Status TopologyStatus `json:"status,omitempty"`
}

// TopologySpec defines the levels of the topology.
type TopologySpec struct {
	// levels are the levels of the topology, the widest first. A domain of a level is the nodes with equal values of the
	// labels of this level and of all wider ones, so two racks of one name in two blocks are two domains. A node that lacks
	// one of these labels is in no domain of the level.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.exists_one(b, b.nodeLabel == a.nodeLabel))",message="no two levels may have the same nodeLabel"
	// +kubebuilder:validation:XValidation:rule="self.all(a, !has(a.name) || self.exists_one(b, has(b.name) && b.name == a.name))",message="no two levels may have the same name"
	Levels []TopologyLevel `json:"levels"`
}

// TopologyLevel is a level of a topology.
type TopologyLevel struct {
	// name is a short name of the level, such as rack. PodGroups name the level by it or by its nodeLabel.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`

	// nodeLabel is the label of nodes whose value says in which domain of the level a node is, such as
	// topology.kubernetes.io/zone.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",message="must be the key of a node label, such as topology.kubernetes.io/zone"
	NodeLabel string `json:"nodeLabel"`
}

// TopologyStatus is what the scheduler finds of a topology on the nodes. The scheduler writes it from the first PodGroup with a
// topologyConstraint on.
type TopologyStatus struct {
	// levels are the levels of spec.levels, in the same order.
	// +optional
	// +listType=atomic
	Levels []TopologyLevelStatus `json:"levels,omitempty"`

	// unlabelledNodes is the number of nodes that are in no domain of any level, because they lack the label of the widest
	// one. Nodes that lack the label of a narrower level only are missing in the nodes of that level.
	// +optional
	UnlabelledNodes int32 `json:"unlabelledNodes"`
}

// TopologyLevelStatus is what there is of a level.
type TopologyLevelStatus struct {
	// name is the name of the level, or its node label if it has none.
	Name string `json:"name"`

	// domains is the number of domains.
	Domains int32 `json:"domains"`

	// nodes is the number of nodes that are in a domain of the level.
	Nodes int32 `json:"nodes"`
}

// TopologyConstraint says in how many domains of a Topology the pods of a PodGroup run.
//
// +kubebuilder:validation:XValidation:rule="has(self.requiredTopologyLevel) || has(self.preferredTopologyLevel)",message="needs a requiredTopologyLevel, a preferredTopologyLevel, or both"
// +kubebuilder:validation:XValidation:rule="!has(self.preferredWait) || has(self.preferredTopologyLevel)",message="preferredWait needs a preferredTopologyLevel"
type TopologyConstraint struct {
	// topology is the name of the Topology. It may be left out if there is only one.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Topology string `json:"topology,omitempty"`

	// requiredTopologyLevel is the level of which all pods of the PodGroup share one domain: the name of the level, or its
	// node label. Pods beyond minMember, and pods that replace others, start in the domain of those that run, or wait.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	RequiredTopologyLevel string `json:"requiredTopologyLevel,omitempty"`

	// preferredTopologyLevel is the level of which the pods of the PodGroup use as few domains as possible, within one
	// domain of requiredTopologyLevel if that is set. It may not be wider than that level.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	PreferredTopologyLevel string `json:"preferredTopologyLevel,omitempty"`

	// preferredWait is how long the PodGroup waits for one domain of preferredTopologyLevel, from when its pods exist. For
	// this time the level is required. If it is not set, the PodGroup does not wait.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="must not be negative"
	PreferredWait *metav1.Duration `json:"preferredWait,omitempty"`
}

// TopologyList is a list of Topologies.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type TopologyList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Topology `json:"items"`
}
