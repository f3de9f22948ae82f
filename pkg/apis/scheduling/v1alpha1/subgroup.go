// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SubGroup is a part of a PodGroup with a minimum of its own, such as the workers of one kind. A subgroup that others
// name as their parent consists of these. Any other consists of pods: those with the label
// scheduling.batch-scheduler.dev/subgroup and its name, and those without that label for which its selector is the first
// that matches. Pods of no subgroup only count towards spec.minMember.
//
// +kubebuilder:validation:XValidation:rule="!has(self.minMember) || !has(self.minSubGroup) && !has(self.segmentSize)",message="minMember is for subgroups of single pods; those with segments or with other subgroups have minSubGroup"
// +kubebuilder:validation:XValidation:rule="!has(self.segmentBy) || has(self.segmentSize)",message="segmentBy needs a segmentSize"
// +kubebuilder:validation:XValidation:rule="!has(self.segmentTopologyConstraint) || has(self.segmentSize)",message="segmentTopologyConstraint needs a segmentSize"
// +kubebuilder:validation:XValidation:rule="!has(self.parent) || self.parent != self.name",message="a subgroup cannot be its own parent"
type SubGroup struct {
	// name identifies the subgroup within the PodGroup.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// parent is the name of the subgroup that this one is a part of; empty for a part of the PodGroup itself. The tree
	// has at most four levels.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Parent string `json:"parent,omitempty"`

	// selector selects the pods of the subgroup by their labels. A subgroup without selector has only pods that name it with
	// the label scheduling.batch-scheduler.dev/subgroup.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// minMember is the number of pods of the subgroup without which the PodGroup does not start; 1 if it is not set. With 0
	// the PodGroup does not wait for the subgroup.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MinMember *int32 `json:"minMember,omitempty"`

	// minSubGroup is the number of parts without which the PodGroup does not start, in a subgroup of other subgroups or of
	// segments. If it is not set, all subgroups must be complete, and one segment. Further parts start as a whole when
	// resources become available.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MinSubGroup *int32 `json:"minSubGroup,omitempty"`

	// segmentSize divides the pods of the subgroup into segments of so many pods, such as the hosts of one replica. The
	// pods of a segment start together or not at all.
	// +optional
	// +kubebuilder:validation:Minimum=1
	SegmentSize int32 `json:"segmentSize,omitempty"`

	// segmentBy is the label whose value says to which segment a pod belongs. The labels
	// batch.kubernetes.io/job-completion-index, which is the default, apps.kubernetes.io/pod-index and
	// training.kubeflow.org/replica-index number the pods: their value is divided by segmentSize.
	// +optional
	// +kubebuilder:validation:MaxLength=317
	SegmentBy string `json:"segmentBy,omitempty"`

	// topologyConstraint requires that all pods of the subgroup run in one domain of a level, inside the domains of its parent
	// and of the PodGroup. All constraints of a PodGroup are about one Topology.
	// +optional
	TopologyConstraint *RequiredTopology `json:"topologyConstraint,omitempty"`

	// segmentTopologyConstraint requires that the pods of each segment run in one domain of a level, inside the domain of the
	// subgroup.
	// +optional
	SegmentTopologyConstraint *RequiredTopology `json:"segmentTopologyConstraint,omitempty"`
}

// RequiredTopology says in which domains of a Topology the pods of a subgroup or of a segment run.
type RequiredTopology struct {
	// topology is the name of the Topology. It may be left out if there is only one.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Topology string `json:"topology,omitempty"`

	// requiredTopologyLevel is the level of which all pods share one domain: the name of the level, or its node label.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	RequiredTopologyLevel string `json:"requiredTopologyLevel"`
}

// MaxSubGroups is how many subgroups a PodGroup has at most, and MaxSubGroupLevels how many levels their tree has.
const (
	MaxSubGroups      = 64
	MaxSubGroupLevels = 4
)
