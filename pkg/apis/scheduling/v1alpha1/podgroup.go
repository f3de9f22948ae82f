package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PodGroup is a gang of pods: at least minMember of them start together, or none does. Pods join it with the
// label scheduling.batch-scheduler.dev/pod-group and must ask for the same scheduler in spec.schedulerName.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=pg
// +kubebuilder:selectablefield:JSONPath=.spec.queue
// +kubebuilder:printcolumn:name="Queue",type=string,JSONPath=`.spec.queue`
// +kubebuilder:printcolumn:name="Min",type=integer,JSONPath=`.spec.minMember`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Pending",type=integer,JSONPath=`.status.pending`
// +kubebuilder:printcolumn:name="Running",type=integer,JSONPath=`.status.running`
// +kubebuilder:printcolumn:name="Succeeded",type=integer,JSONPath=`.status.succeeded`
// +kubebuilder:printcolumn:name="Failed",type=integer,JSONPath=`.status.failed`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="PodGroupScheduled")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="PodGroupScheduled")].message`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="the name must have at most 63 characters, because pods carry it as the value of a label"
// +kubebuilder:validation:XValidation:rule=`!has(oldSelf.status) || !has(oldSelf.status.running) || oldSelf.status.running == 0 || (has(self.spec.queue) ? self.spec.queue : "") == (has(oldSelf.spec.queue) ? oldSelf.spec.queue : "")`,fieldPath=".spec.queue",message="cannot change while pods of the group run; delete the pods first, or create another PodGroup"
type PodGroup struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	// +kubebuilder:default={}
	Spec PodGroupSpec `json:"spec,omitempty"`
	// +optional
	Status PodGroupStatus `json:"status,omitempty"`
}

// PodGroupSpec says what the group needs to start.
type PodGroupSpec struct {
	// minMember is the number of pods that start together or not at all. Pods above that number are started one
	// by one when there is room. It may change at any time and counts from the next scheduling cycle; raising it
	// stops no pod.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	MinMember int32 `json:"minMember,omitempty"`

	// queue is the name of the Queue that the group's pods count in. Empty means the default queue of the
	// scheduler. It cannot change while pods of the group run.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$')",message="must be the name of a Queue: lower case letters, digits and '-', with a letter or digit at both ends; or empty for the default queue"
	Queue string `json:"queue,omitempty"`

	// priorityClassName is the PriorityClass that orders the group among others. Without it the group has the
	// highest priority of its pods. The two system classes are refused.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('system-')",message="system-cluster-critical and system-node-critical are for the cluster's own pods; use a PriorityClass of your own"
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// minResources is what the gang needs in total before it is worth trying. It is compared with the capability
	// of the queue and the total of the cluster; it never replaces the requests of the pods.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, !string(self[k]).startsWith('-'))",message="no quantity may be negative"
	// +kubebuilder:validation:XValidation:rule="self.all(k, string(self[k]).matches('^[-+]?[0-9.]+([numkMGTPE]|[KMGTPE]i|[eE][-+]?[0-9]{1,2})?$'))",message="every quantity must be a number with at most one suffix, such as 4, 500m, 64Gi or 1e3"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['cpu', 'memory', 'ephemeral-storage', 'pods'] || k.startsWith('hugepages-') || k.contains('/'))",message="every name must be cpu, memory, ephemeral-storage, pods, hugepages-<size>, or an extended resource with its domain, such as nvidia.com/gpu"
	MinResources corev1.ResourceList `json:"minResources,omitempty"`
}

// PodGroupPhase sums up in one word how far a group has come.
// +kubebuilder:validation:Enum=Pending;Running;Unknown;Finished
type PodGroupPhase string

const (
	// PodGroupPending: no pod of the group runs, and it has not ended.
	PodGroupPending PodGroupPhase = "Pending"
	// PodGroupRunning: at least minMember pods have a node or have succeeded.
	PodGroupRunning PodGroupPhase = "Running"
	// PodGroupUnknown: some pods run, but fewer than minMember.
	PodGroupUnknown PodGroupPhase = "Unknown"
	// PodGroupFinished: no pod waits or runs any more, and at least minMember have ended.
	PodGroupFinished PodGroupPhase = "Finished"
)

// PodGroupStatus is what the scheduler reports about a group.
type PodGroupStatus struct {
	// phase sums up how far the group has come: Pending, Running, Unknown (some pods run, but fewer than
	// minMember) or Finished.
	// +optional
	Phase PodGroupPhase `json:"phase,omitempty"`

	// pending is the number of pods without a node.
	// +optional
	Pending int32 `json:"pending"`

	// running is the number of pods that have a node and have not ended, whether their containers run yet or not.
	// +optional
	Running int32 `json:"running"`

	// succeeded is the number of pods that ended well.
	// +optional
	Succeeded int32 `json:"succeeded"`

	// failed is the number of pods that ended badly.
	// +optional
	Failed int32 `json:"failed"`

	// conditions has the type PodGroupScheduled: True when minMember pods have a node; otherwise its reason and
	// message say what the group waits for.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +patchStrategy=merge
	// +patchMergeKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}

// PodGroupList is a list of PodGroups.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type PodGroupList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PodGroup `json:"items"`
}
