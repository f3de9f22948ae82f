// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PodGroup is a gang of pods: at least minMember of them start together, or none of them. A pod is a member if it
// has the label scheduling.batch-scheduler.dev/pod-group with the name of the PodGroup, and the scheduler's name in
// spec.schedulerName.
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
// +kubebuilder:printcolumn:name="Evicted",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Evicted")].message`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="the name must have at most 63 characters, because pods carry it as the value of a label"
// +kubebuilder:validation:XValidation:rule=`!has(oldSelf.status) || !has(oldSelf.status.running) || oldSelf.status.running == 0 || (has(self.spec.queue) ? self.spec.queue : "") == (has(oldSelf.spec.queue) ? oldSelf.spec.queue : "")`,fieldPath=".spec.queue",message="cannot change while pods of the PodGroup run; delete the pods first, or create another PodGroup"
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

// PodGroupSpec defines what the PodGroup requires to start.
//
// +kubebuilder:validation:XValidation:rule="!has(self.expectedExecutionTimeSeconds) || !has(self.maximumExecutionTimeSeconds) || self.expectedExecutionTimeSeconds <= self.maximumExecutionTimeSeconds",fieldPath=".expectedExecutionTimeSeconds",message="must not exceed maximumExecutionTimeSeconds"
type PodGroupSpec struct {
	// minMember is the number of pods that start together or not at all. The scheduler starts pods above that number
	// one by one as resources become available. It can change at any time and takes effect in the next scheduling
	// cycle; a higher value stops no pod.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	MinMember int32 `json:"minMember,omitempty"`

	// queue is the name of the Queue to which the pods of the PodGroup belong. Empty means the default queue of the
	// scheduler. It cannot change while pods of the PodGroup run.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$')",message="must be the name of a Queue: lower case letters, digits and '-', with a letter or digit at both ends; or empty for the default queue"
	Queue string `json:"queue,omitempty"`

	// priorityClassName is the PriorityClass of the PodGroup. Without it the PodGroup has the highest priority of its
	// pods. The two system classes are not allowed.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('system-')",message="system-cluster-critical and system-node-critical are for the cluster's own pods; use a PriorityClass of your own"
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// minResources is the sum of the resources that the gang needs. The scheduler compares it with the capability of the
	// queue and the total of the cluster before it tries to place the gang; it never replaces the requests of the pods.
	// With the policy key expect, the rest that the pods of the gang do not request must be available too, and stays
	// reserved for further pods of the group.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, !string(self[k]).startsWith('-'))",message="no quantity may be negative"
	// +kubebuilder:validation:XValidation:rule="self.all(k, string(self[k]).matches('^[-+]?[0-9.]+([numkMGTPE]|[KMGTPE]i|[eE][-+]?[0-9]{1,2})?$'))",message="every quantity must be a number with at most one suffix, such as 4, 500m, 64Gi or 1e3"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['cpu', 'memory', 'ephemeral-storage', 'pods'] || k.startsWith('hugepages-') || k.contains('/'))",message="every name must be cpu, memory, ephemeral-storage, pods, hugepages-<size>, or an extended resource with its domain, such as nvidia.com/gpu"
	MinResources corev1.ResourceList `json:"minResources,omitempty"`

	// subGroups are parts of the PodGroup with minima of their own. The PodGroup starts with minMember pods and the minima
	// of all subgroups, or not at all; no pod above a minimum starts before. They can change at any time, like minMember.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.all(s, !has(s.parent) || s.parent == '' || self.exists(p, p.name == s.parent))",message="the parent of a subgroup must be the name of another one"
	SubGroups []SubGroup `json:"subGroups,omitempty"`

	// maximumExecutionTimeSeconds is the limit of the run time: the PodGroup is over by then, counted from when minMember of
	// its pods have nodes, or onOverrun states what happens. It can change at any time, also while the PodGroup runs. Without
	// it the activeDeadlineSeconds of the pods count, and then the default of the queue.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaximumExecutionTimeSeconds *int32 `json:"maximumExecutionTimeSeconds,omitempty"`

	// expectedExecutionTimeSeconds is an estimate of the run time, for planning alone. No pod is stopped because of it. If it
	// proves too short, the scheduler extends it step by step.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ExpectedExecutionTimeSeconds *int32 `json:"expectedExecutionTimeSeconds,omitempty"`

	// onOverrun states what happens to a PodGroup that runs for longer than its maximum: with Yield, the default, it may be
	// evicted for a PodGroup whose start depends on its end; with Evict it is evicted; with Ignore nothing happens, and the
	// maximum is no limit that others can rely on.
	// +optional
	OnOverrun OverrunPolicy `json:"onOverrun,omitempty"`

	// topologyConstraint makes all pods of the PodGroup run within one domain of a Topology, for example in one rack. A change
	// takes effect for pods that start later; running pods stay where they are.
	// +optional
	TopologyConstraint *TopologyConstraint `json:"topologyConstraint,omitempty"`
}

// OverrunPolicy is what happens to a PodGroup that runs for longer than its maximum.
// +kubebuilder:validation:Enum=Yield;Evict;Ignore
type OverrunPolicy string

const (
	// OverrunYield: it may be evicted for a PodGroup whose start depends on its end.
	OverrunYield OverrunPolicy = "Yield"
	// OverrunEvict: it is evicted.
	OverrunEvict OverrunPolicy = "Evict"
	// OverrunIgnore: nothing happens.
	OverrunIgnore OverrunPolicy = "Ignore"
)

// PodGroupPhase is a summary of the state of a PodGroup.
// +kubebuilder:validation:Enum=Pending;Running;Unknown;Finished;Failed
type PodGroupPhase string

const (
	// PodGroupPending: no pod of the PodGroup runs, and the PodGroup has not ended.
	PodGroupPending PodGroupPhase = "Pending"
	// PodGroupRunning: at least minMember pods have a node or have succeeded.
	PodGroupRunning PodGroupPhase = "Running"
	// PodGroupUnknown: some pods run, but fewer than minMember.
	PodGroupUnknown PodGroupPhase = "Unknown"
	// PodGroupFinished: no pod is pending or running, some have succeeded, and either minMember pods have succeeded or
	// none has failed. Pods that were evicted or deleted do not count as failed.
	PodGroupFinished PodGroupPhase = "Finished"
	// PodGroupFailed: no pod is pending or running, some have failed, and fewer than minMember have succeeded. If the
	// controller of the pods creates others, the PodGroup is Pending again.
	PodGroupFailed PodGroupPhase = "Failed"
)

// PodGroupStatus is the state of a PodGroup as the scheduler observes it.
type PodGroupStatus struct {
	// phase is a summary of the state: Pending, Running, Unknown (some pods run, but fewer than minMember), Finished or
	// Failed (no pod is pending or running, and the kept pods have succeeded or failed). A PodGroup that is Finished or
	// Failed remains so when its pods are deleted.
	// +optional
	Phase PodGroupPhase `json:"phase,omitempty"`

	// pending is the number of pods without a node.
	// +optional
	Pending int32 `json:"pending"`

	// running is the number of pods that have a node and have not ended, even if their containers do not run yet.
	// +optional
	Running int32 `json:"running"`

	// succeeded is the number of pods in phase Succeeded.
	// +optional
	Succeeded int32 `json:"succeeded"`

	// failed is the number of pods in phase Failed.
	// +optional
	Failed int32 `json:"failed"`

	// conditions contains the type PodGroupScheduled. It is True if minMember pods have a node; otherwise its reason
	// and message state what is missing. After the scheduler has evicted pods of the PodGroup, the type Evicted describes
	// the last eviction. It is True until the gang runs again, and False if the gang has lost only surplus pods.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +patchStrategy=merge
	// +patchMergeKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`

	// unschedulablePlugins are the plugins of the scheduler for which the PodGroup waits, sorted: those that refuse it, and
	// those that refuse nodes for its pods. "model", "resources", "reservation" and "topology" take the place of a plugin
	// where a part of the PodGroup is missing, where the resources of nodes do not suffice, where they are reserved, and
	// where nodes are outside of its topology domain. The list is written with the condition, and is empty when the condition is True.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	UnschedulablePlugins []string `json:"unschedulablePlugins,omitempty"`

	// startTime is when minMember pods had nodes. It is absent if fewer have; a PodGroup that is Finished or Failed keeps it.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// estimatedStartTime is when the scheduler plans to start the PodGroup. It is absent while that is not known.
	// +optional
	EstimatedStartTime *metav1.Time `json:"estimatedStartTime,omitempty"`

	// latestStartTime is when the scheduler starts the PodGroup at the latest, by the limits of the run times of those that
	// it waits for. It is absent if one of them has no limit.
	// +optional
	LatestStartTime *metav1.Time `json:"latestStartTime,omitempty"`

	// topology has the domains where pods of the PodGroup have nodes, for the levels that spec.topologyConstraint requires
	// and prefers, the wider one first. Nodes that are in no domain of a level are left out. It is absent while no pod has a
	// node.
	// +optional
	// +listType=map
	// +listMapKey=level
	// +kubebuilder:validation:MaxItems=2
	Topology []OccupiedDomains `json:"topology,omitempty"`

	// nearestDomain is the topology domain that the message of the condition is about, if the pods must be in one domain:
	// where resources are reserved for the PodGroup or its start is planned, else where the most of its pods could start.
	// It is written with the condition, and absent when the condition is True.
	// +optional
	NearestDomain *NearestDomain `json:"nearestDomain,omitempty"`
}

// NearestDomain is a topology domain for which a PodGroup waits.
type NearestDomain struct {
	// level is the name of the level, or its node label if it has none.
	Level string `json:"level"`

	// name is the name of the domain: the values of the node labels of the wider levels and of this one, with slashes between
	// them.
	Name string `json:"name"`

	// nodeLabels are the labels that the nodes of the domain have in common, and no other nodes have.
	NodeLabels map[string]string `json:"nodeLabels"`
}

// OccupiedDomains are the domains of a topology level where pods of a PodGroup have nodes.
type OccupiedDomains struct {
	// level is the name of the level, or its node label if it has none.
	Level string `json:"level"`

	// domains are the names of the domains, sorted: the values of the node labels of the wider levels and of this one, with
	// slashes between them. At most 16 are listed.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Domains []string `json:"domains,omitempty"`

	// more is the number of domains that are not listed.
	// +optional
	More int32 `json:"more,omitempty"`
}

// MaxOccupiedDomains is how many domains of a level status.topology lists at most.
const MaxOccupiedDomains = 16

// MaxUnschedulablePlugins is how many plugins status.unschedulablePlugins lists at most.
const MaxUnschedulablePlugins = 8

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
