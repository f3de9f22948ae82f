// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Queue is a share of the cluster. A PodGroup names its queue. The scheduler divides the cluster between the
// queues with requests, in proportion to their weights.
//
// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=q
// +kubebuilder:printcolumn:name="Weight",type=integer,JSONPath=`.spec.weight`
// +kubebuilder:printcolumn:name="Pending",type=integer,JSONPath=`.status.groups.pending`,description="Pending PodGroups"
// +kubebuilder:printcolumn:name="Running",type=integer,JSONPath=`.status.groups.running`,description="Running PodGroups"
// +kubebuilder:printcolumn:name="CPU",type=string,JSONPath=`.status.allocated.cpu`,description="Allocated CPU"
// +kubebuilder:printcolumn:name="Deserved CPU",type=string,JSONPath=`.status.deserved.cpu`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Deserved",type=string,priority=1,JSONPath=`.status.deserved`
// +kubebuilder:printcolumn:name="Allocated",type=string,priority=1,JSONPath=`.status.allocated`
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

// QueueSpec defines the share of the queue.
//
// +kubebuilder:validation:XValidation:rule="!has(self.guarantee) || !has(self.capability) || self.guarantee.all(k, !(k in self.capability) || string(self.guarantee[k]).matches('[eE].{4}') || string(self.capability[k]).matches('[eE].{4}') || !quantity(string(self.guarantee[k])).isGreaterThan(quantity(string(self.capability[k]))))",fieldPath=".guarantee",message="must not exceed capability"
type QueueSpec struct {
	// weight is the share of the queue relative to the weights of the other queues with requests.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Weight int32 `json:"weight,omitempty"`

	// capability is the upper limit of the resources that the pods of the queue hold, even if the cluster is idle. A
	// resource that is not listed has no limit.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, !string(self[k]).startsWith('-'))",message="no quantity may be negative"
	// +kubebuilder:validation:XValidation:rule="self.all(k, string(self[k]).matches('^[-+]?[0-9.]+([numkMGTPE]|[KMGTPE]i|[eE][-+]?[0-9]{1,2})?$'))",message="every quantity must be a number with at most one suffix, such as 4, 500m, 64Gi or 1e3"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['cpu', 'memory', 'ephemeral-storage', 'pods'] || k.startsWith('hugepages-') || k.contains('/'))",message="every name must be cpu, memory, ephemeral-storage, pods, hugepages-<size>, or an extended resource with its domain, such as nvidia.com/gpu"
	Capability corev1.ResourceList `json:"capability,omitempty"`

	// guarantee is the lower limit of the deserved resources of the queue, whatever its weight is: the queue can always
	// reclaim that much. If the guarantees of all queues exceed the cluster, they are scaled down in proportion.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, !string(self[k]).startsWith('-'))",message="no quantity may be negative"
	// +kubebuilder:validation:XValidation:rule="self.all(k, string(self[k]).matches('^[-+]?[0-9.]+([numkMGTPE]|[KMGTPE]i|[eE][-+]?[0-9]{1,2})?$'))",message="every quantity must be a number with at most one suffix, such as 4, 500m, 64Gi or 1e3"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['cpu', 'memory', 'ephemeral-storage', 'pods'] || k.startsWith('hugepages-') || k.contains('/'))",message="every name must be cpu, memory, ephemeral-storage, pods, hugepages-<size>, or an extended resource with its domain, such as nvidia.com/gpu"
	Guarantee corev1.ResourceList `json:"guarantee,omitempty"`

	// reclaimable states whether the queue can borrow, and other queues can reclaim from it what it borrows. A queue
	// that is not reclaimable never exceeds its deserved resources, and loses pods only to the guarantee of another
	// queue.
	// +optional
	// +kubebuilder:default=true
	Reclaimable *bool `json:"reclaimable,omitempty"`

	// executionTime limits the run times of the jobs of the queue.
	// +optional
	ExecutionTime *QueueExecutionTime `json:"executionTime,omitempty"`
}

// QueueExecutionTime limits the run times of the jobs of a queue, in seconds.
//
// +kubebuilder:validation:XValidation:rule="!has(self.default) || !has(self.maximum) || self.default <= self.maximum",fieldPath=".default",message="must not exceed maximum"
type QueueExecutionTime struct {
	// default is the limit of the run time of jobs that declare none, in seconds. If it is not set, maximum is.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Default *int32 `json:"default,omitempty"`

	// maximum is the longest limit of a job that the queue admits, in seconds. A job with a longer one does not
	// start.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Maximum *int32 `json:"maximum,omitempty"`
}

// QueueStatus is the state of a queue as the scheduler observes it.
type QueueStatus struct {
	// deserved is the share of the queue: according to its weight, at least its guarantee, at most its capability and
	// its requests.
	// +optional
	Deserved corev1.ResourceList `json:"deserved,omitempty"`

	// allocated is the sum of the resources that the pods of the queue hold on nodes.
	// +optional
	Allocated corev1.ResourceList `json:"allocated,omitempty"`

	// pending is the sum of the requests of the pending pods of the queue.
	// +optional
	Pending corev1.ResourceList `json:"pending,omitempty"`

	// groups counts the PodGroups of the queue by phase.
	// +optional
	Groups QueueGroups `json:"groups,omitempty"`

	// order is the order in which the scheduler tries the jobs of the queue that are pending. It changes with
	// priorities, and with what the jobs and queues hold. Empty if no job is pending.
	// +optional
	Order *QueueOrder `json:"order,omitempty"`
}

// QueueOrder is the order in which the scheduler tries the pending jobs of a queue: PodGroups, and pods without a
// PodGroup by their controller. Jobs that the scheduler does not try have no position, for example PodGroups whose pods
// do not exist yet, and neither do pods above minMember.
type QueueOrder struct {
	// length is the number of pending jobs that the scheduler tries.
	// +optional
	Length int32 `json:"length"`

	// first are the first of these jobs. There are at most 50, so that a long queue does not make a large object.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	First []QueuedJob `json:"first,omitempty"`
}

// MaxQueuedJobs is how many jobs status.order.first of a Queue lists at most.
const MaxQueuedJobs = 50

// QueuedJob is a pending job: a PodGroup, or pods without a PodGroup.
type QueuedJob struct {
	// namespace of the job.
	Namespace string `json:"namespace"`

	// name of the PodGroup, or of the controller of pods without a PodGroup, or of the pod if it has no controller.
	Name string `json:"name"`

	// withoutPodGroup is set if the job consists of pods without a PodGroup.
	// +optional
	WithoutPodGroup bool `json:"withoutPodGroup,omitempty"`
}

// QueueGroups counts the PodGroups of a queue by phase.
type QueueGroups struct {
	// pending is the number of PodGroups without a running pod.
	// +optional
	Pending int32 `json:"pending"`

	// running is the number of PodGroups with at least minMember running pods.
	// +optional
	Running int32 `json:"running"`

	// unknown is the number of PodGroups with some running pods, but fewer than minMember.
	// +optional
	Unknown int32 `json:"unknown"`

	// finished is the number of PodGroups that have ended successfully.
	// +optional
	Finished int32 `json:"finished"`

	// failed is the number of PodGroups that have failed.
	// +optional
	Failed int32 `json:"failed"`
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
