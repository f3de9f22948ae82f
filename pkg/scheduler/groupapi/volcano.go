// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package groupapi

import (
	"cmp"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// volcano returns scheduling.volcano.sh/v1beta1 of volcano-sh/volcano. The controllers of Volcano, KubeRay, the training
// operator and LeaderWorkerSet create its PodGroups.
func volcano() *API {
	return &API{
		Source:   api.SourceVolcano,
		Resource: schema.GroupVersionResource{Group: "scheduling.volcano.sh", Version: "v1beta1", Resource: "podgroups"},
		Kind:     "PodGroup",
		read:     readVolcano,
		shown:    volcanoShown,
		status:   volcanoStatus,
	}
}

// volcanoPodGroup has the fields of a PodGroup that the scheduler reads. Those that it cannot honour are not decoded: it
// matters only whether they are there.
type volcanoPodGroup struct {
	Spec struct {
		MinMember         int32                   `json:"minMember"`
		MinResources      v1.ResourceList         `json:"minResources"`
		MinTaskMember     map[string]int32        `json:"minTaskMember"`
		Queue             string                  `json:"queue"`
		PriorityClassName string                  `json:"priorityClassName"`
		NetworkTopology   *volcanoTopology        `json:"networkTopology"`
		SubGroupPolicy    []volcanoSubGroupPolicy `json:"subGroupPolicy"`
	} `json:"spec"`
	Status volcanoPodGroupStatus `json:"status"`
}

// volcanoPodGroupStatus has the fields of the status that the scheduler writes.
type volcanoPodGroupStatus struct {
	Phase      string             `json:"phase,omitempty"`
	Conditions []volcanoCondition `json:"conditions"`
	Running    int32              `json:"running"`
	Succeeded  int32              `json:"succeeded"`
	Failed     int32              `json:"failed"`
}

type volcanoCondition struct {
	Type               string      `json:"type,omitempty"`
	Status             string      `json:"status,omitempty"`
	TransitionID       string      `json:"transitionID,omitempty"`
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`
	Reason             string      `json:"reason,omitempty"`
	Message            string      `json:"message,omitempty"`
}

// Phases and conditions of a PodGroup of Volcano. Some controllers create the pods only when the phase is Inqueue.
const (
	volcanoPending   = "Pending"
	volcanoInqueue   = "Inqueue"
	volcanoRunning   = "Running"
	volcanoUnknown   = "Unknown"
	volcanoCompleted = "Completed"

	volcanoScheduled     = "Scheduled"
	volcanoUnschedulable = "Unschedulable"

	// volcanoPreemptable is an annotation of a group: "false" protects its pods from eviction.
	volcanoPreemptable = "volcano.sh/preemptable"

	// volcanoDefaultQueue is what the API server fills in for spec.queue.
	volcanoDefaultQueue = "default"
)

func readVolcano(u *unstructured.Unstructured) (*api.Group, error) {
	object, err := decode[volcanoPodGroup](u)
	if err != nil {
		return nil, err
	}
	spec := &object.Spec
	g := &api.Group{PodGroup: &v1alpha1.PodGroup{Spec: v1alpha1.PodGroupSpec{
		MinMember: max(spec.MinMember, 1), MinResources: withoutQuotas(spec.MinResources), PriorityClassName: spec.PriorityClassName,
	}}}
	if spec.Queue != volcanoDefaultQueue {
		g.Spec.Queue = spec.Queue
	}
	g.Spec.SubGroups, g.NotSupported = volcanoSubGroups(spec.MinTaskMember, spec.SubGroupPolicy)
	if n := spec.NetworkTopology; n != nil {
		constraint, notSupported := n.constraint()
		g.Spec.TopologyConstraint = constraint
		g.NotSupported = cmp.Or(g.NotSupported, notSupported)
	}
	g.NonPreemptable = u.GetAnnotations()[volcanoPreemptable] == "false"
	if object.Status.Phase == volcanoCompleted {
		g.Status.Phase = v1alpha1.PodGroupFinished
		if object.Status.Failed > 0 && object.Status.Succeeded < g.Spec.MinMember {
			g.Status.Phase = v1alpha1.PodGroupFailed
		}
	}
	return g, nil
}

// withoutQuotas returns the resources that nodes have. The Job controller of Volcano also writes the names that a
// ResourceQuota has for them, such as requests.cpu and count/pods.
func withoutQuotas(list v1.ResourceList) v1.ResourceList {
	if list == nil {
		return nil
	}
	kept := v1.ResourceList{}
	for name, quantity := range list {
		text := string(name)
		if !strings.HasPrefix(text, "requests.") && !strings.HasPrefix(text, "limits.") && !strings.HasPrefix(text, "count/") {
			kept[name] = quantity
		}
	}
	return kept
}
