// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package groupapi

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// kai returns scheduling.run.ai/v2alpha2 of kai-scheduler/KAI-Scheduler. Its pod-grouper creates a PodGroup for each workload.
func kai() *API {
	return &API{
		Source:            api.SourceKAI,
		Resource:          schema.GroupVersionResource{Group: "scheduling.run.ai", Version: "v2alpha2", Resource: "podgroups"},
		Kind:              "PodGroup",
		StatusSubresource: true,
		read:              readKAI,
		shown:             kaiShown,
		status:            kaiStatus,
	}
}

// kaiPodGroup has the fields of a PodGroup that the scheduler reads.
type kaiPodGroup struct {
	Spec struct {
		MinMember          *int32        `json:"minMember"`
		MinSubGroup        *int32        `json:"minSubGroup"`
		Queue              string        `json:"queue"`
		PriorityClassName  string        `json:"priorityClassName"`
		Preemptibility     string        `json:"preemptibility"`
		PreemptionDelay    string        `json:"preemptionDelay"`
		TopologyConstraint kaiTopology   `json:"topologyConstraint"`
		SubGroups          []kaiSubGroup `json:"subGroups"`
	} `json:"spec"`
}

// kaiTopology is set in all groups of the pod-grouper, and empty if the workload has no constraint.
type kaiTopology struct {
	Topology  string `json:"topology"`
	Required  string `json:"requiredTopologyLevel"`
	Preferred string `json:"preferredTopologyLevel"`
}

// constraint returns the constraint of a group; nil if there is none.
func (t *kaiTopology) constraint() *v1alpha1.TopologyConstraint {
	if t.Required == "" && t.Preferred == "" {
		return nil
	}
	return &v1alpha1.TopologyConstraint{
		Topology: cmp.Or(t.Topology, api.AnyTopology), RequiredTopologyLevel: t.Required, PreferredTopologyLevel: t.Preferred,
	}
}

// required returns the constraint of a subgroup; nil if it requires no level.
func (t *kaiTopology) required() *v1alpha1.RequiredTopology {
	if t.Required == "" {
		return nil
	}
	return &v1alpha1.RequiredTopology{Topology: cmp.Or(t.Topology, api.AnyTopology), RequiredTopologyLevel: t.Required}
}

// kaiSubGroup is a part of a group: of pods that name it with a label, or of other subgroups.
type kaiSubGroup struct {
	Name               string      `json:"name"`
	Parent             string      `json:"parent"`
	MinMember          *int32      `json:"minMember"`
	MinSubGroup        *int32      `json:"minSubGroup"`
	TopologyConstraint kaiTopology `json:"topologyConstraint"`
}

const (
	kaiPreemptible    = "preemptible"
	kaiNonPreemptible = "non-preemptible"

	// kaiNonPreemptibleFrom is the priority from which a group is not preemptible that does not say whether it is.
	kaiNonPreemptibleFrom = 100

	// kaiNodePool is a label of groups that may use only the nodes of a pool, which have the same label.
	kaiNodePool        = "kai.scheduler/node-pool"
	kaiDefaultNodePool = "default"

	// kaiAll is the subgroup above those of the group, if the group does not need all of them. No subgroup of KAI Scheduler has
	// that name, because it is no DNS label.
	kaiAll = "subGroups"
)

func readKAI(u *unstructured.Unstructured) (*api.Group, error) {
	object, err := decode[kaiPodGroup](u)
	if err != nil {
		return nil, err
	}
	spec := &object.Spec
	g := &api.Group{PodGroup: &v1alpha1.PodGroup{Spec: v1alpha1.PodGroupSpec{
		MinMember: max(ptr.Deref(spec.MinMember, 1), 1), Queue: spec.Queue, PriorityClassName: spec.PriorityClassName,
		SubGroups: kaiSubGroups(spec.SubGroups, spec.MinSubGroup), TopologyConstraint: spec.TopologyConstraint.constraint(),
	}}}
	switch spec.Preemptibility {
	case "":
		g.NonPreemptableFrom = ptr.To[int32](kaiNonPreemptibleFrom)
	case kaiPreemptible:
	case kaiNonPreemptible:
		g.NonPreemptable = true
	default:
		g.NotSupported = "spec.preemptibility " + spec.Preemptibility
	}
	pool := u.GetLabels()[kaiNodePool]
	switch {
	case spec.PreemptionDelay != "":
		g.NotSupported = "spec.preemptionDelay"
	case ptr.Deref(spec.MinMember, 0) > 0 && spec.MinSubGroup != nil:
		g.NotSupported = "spec.minMember with spec.minSubGroup"
	case pool != "" && pool != kaiDefaultNodePool:
		g.NotSupported = "label " + kaiNodePool
	}
	for i := range spec.SubGroups {
		if c := spec.SubGroups[i].TopologyConstraint; c.Preferred != "" && c.Preferred != c.Required {
			g.NotSupported = "spec.subGroups.topologyConstraint.preferredTopologyLevel"
		}
	}
	return g, nil
}

// kaiSubGroups returns the subgroups of a PodGroup of KAI Scheduler, of which minSubGroup must be complete; all if that is nil.
func kaiSubGroups(parts []kaiSubGroup, minSubGroup *int32) []v1alpha1.SubGroup {
	if len(parts) == 0 {
		return nil
	}
	parents := map[string]bool{}
	top := int32(0) // subgroups without a parent
	for i := range parts {
		parents[parts[i].Parent] = true
		if parts[i].Parent == "" {
			top++
		}
	}
	var list []v1alpha1.SubGroup
	above := ""
	if minSubGroup != nil && *minSubGroup != top {
		above = kaiAll
		list = append(list, v1alpha1.SubGroup{Name: kaiAll, MinSubGroup: minSubGroup})
	}
	for i := range parts {
		p := &parts[i]
		s := v1alpha1.SubGroup{
			Name: p.Name, Parent: cmp.Or(p.Parent, above), MinMember: p.MinMember, MinSubGroup: p.MinSubGroup,
			TopologyConstraint: p.TopologyConstraint.required(),
		}
		if !parents[p.Name] {
			s.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{api.LabelKAISubGroup: p.Name}}
		} else if ptr.Deref(p.MinMember, 0) == 0 {
			s.MinMember = nil // the pod-grouper writes 0
		}
		list = append(list, s)
	}
	return list
}
