package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Queue is a share of the cluster. Groups name the queue they belong to; the cluster is divided between the
// queues that ask for something, in proportion to their weights.
//
// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=q
// +kubebuilder:printcolumn:name="Weight",type=integer,JSONPath=`.spec.weight`
// +kubebuilder:printcolumn:name="Pending",type=integer,JSONPath=`.status.groups.pending`,description="Groups that wait"
// +kubebuilder:printcolumn:name="Running",type=integer,JSONPath=`.status.groups.running`,description="Groups that run"
// +kubebuilder:printcolumn:name="Deserved",type=string,JSONPath=`.status.deserved`
// +kubebuilder:printcolumn:name="Allocated",type=string,JSONPath=`.status.allocated`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Capability",type=string,priority=1,JSONPath=`.spec.capability`
// +kubebuilder:printcolumn:name="Guarantee",type=string,priority=1,JSONPath=`.spec.guarantee`
// +kubebuilder:printcolumn:name="Reclaimable",type=boolean,priority=1,JSONPath=`.spec.reclaimable`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63 && !self.metadata.name.contains('.')",message="the name must have at most 63 characters and no dot, because pods carry it as the value of a label"
type Queue struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	// +kubebuilder:default={}
	Spec QueueSpec `json:"spec,omitempty"`
	// +optional
	Status QueueStatus `json:"status,omitempty"`
}

// QueueSpec says what share of the cluster the queue has.
//
// +kubebuilder:validation:XValidation:rule="!has(self.guarantee) || !has(self.capability) || self.guarantee.all(k, !(k in self.capability) || string(self.guarantee[k]).matches('[eE].{4}') || string(self.capability[k]).matches('[eE].{4}') || !quantity(string(self.guarantee[k])).isGreaterThan(quantity(string(self.capability[k]))))",fieldPath=".guarantee",message="must not exceed capability"
type QueueSpec struct {
	// weight is the share of the queue in relation to the weights of the other queues that ask for something.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Weight int32 `json:"weight,omitempty"`

	// capability is what the pods of the queue may hold at most, also when the cluster is idle. A resource that is
	// not named has no such limit.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, !string(self[k]).startsWith('-'))",message="no quantity may be negative"
	// +kubebuilder:validation:XValidation:rule="self.all(k, string(self[k]).matches('^[-+]?[0-9.]+([numkMGTPE]|[KMGTPE]i|[eE][-+]?[0-9]{1,2})?$'))",message="every quantity must be a number with at most one suffix, such as 4, 500m, 64Gi or 1e3"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['cpu', 'memory', 'ephemeral-storage', 'pods'] || k.startsWith('hugepages-') || k.contains('/'))",message="every name must be cpu, memory, ephemeral-storage, pods, hugepages-<size>, or an extended resource with its domain, such as nvidia.com/gpu"
	Capability corev1.ResourceList `json:"capability,omitempty"`

	// guarantee is what the queue can always get back from others, whatever the weights say. When the guarantees
	// of all queues exceed the cluster they are scaled down in proportion.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, !string(self[k]).startsWith('-'))",message="no quantity may be negative"
	// +kubebuilder:validation:XValidation:rule="self.all(k, string(self[k]).matches('^[-+]?[0-9.]+([numkMGTPE]|[KMGTPE]i|[eE][-+]?[0-9]{1,2})?$'))",message="every quantity must be a number with at most one suffix, such as 4, 500m, 64Gi or 1e3"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['cpu', 'memory', 'ephemeral-storage', 'pods'] || k.startsWith('hugepages-') || k.contains('/'))",message="every name must be cpu, memory, ephemeral-storage, pods, hugepages-<size>, or an extended resource with its domain, such as nvidia.com/gpu"
	Guarantee corev1.ResourceList `json:"guarantee,omitempty"`

	// reclaimable says whether the queue takes part in borrowing. A queue that is not reclaimable never holds more
	// than it deserves, and gives back only what the guarantee of another queue needs.
	// +optional
	// +kubebuilder:default=true
	Reclaimable *bool `json:"reclaimable,omitempty"`
}

// QueueStatus is what the scheduler reports about a queue.
type QueueStatus struct {
	// deserved is the queue's share of the cluster: by its weight, never below its guarantee nor above its
	// capability, and no more than it asks for.
	// +optional
	Deserved corev1.ResourceList `json:"deserved,omitempty"`

	// allocated is what the pods of the queue hold on nodes.
	// +optional
	Allocated corev1.ResourceList `json:"allocated,omitempty"`

	// pending is what the waiting pods of the queue ask for.
	// +optional
	Pending corev1.ResourceList `json:"pending,omitempty"`

	// groups counts the groups of the queue by phase.
	// +optional
	Groups QueueGroups `json:"groups,omitempty"`

	// conditions say what is wrong with the queue, if anything is.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +patchStrategy=merge
	// +patchMergeKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}

// QueueGroups counts the groups of a queue by phase.
type QueueGroups struct {
	// pending is the number of groups of which no pod runs.
	// +optional
	Pending int32 `json:"pending"`

	// running is the number of groups of which at least minMember pods run.
	// +optional
	Running int32 `json:"running"`

	// unknown is the number of groups of which some pods run, but fewer than minMember.
	// +optional
	Unknown int32 `json:"unknown"`

	// finished is the number of groups that have ended.
	// +optional
	Finished int32 `json:"finished"`
}

// QueueList is a list of Queues.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type QueueList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Queue `json:"items"`
}
