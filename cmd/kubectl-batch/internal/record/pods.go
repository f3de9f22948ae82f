// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/resource"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// What a record keeps of objects. Strip is called before anything stores them, so that environments, commands, the names of
// secrets and all other annotations are not even in memory.

// kept are the annotations of pods that say which job they belong to, and where it runs.
func kept() []string {
	return append(api.TopologyAnnotations(),
		v1alpha1.AnnotationQueue, v1alpha1.AnnotationPodGroupUID, v1alpha1.AnnotationGroupName, v1alpha1.AnnotationGroupMinMember,
		v1alpha1.AnnotationGroupKey, v1alpha1.AnnotationMinMember, api.AnnotationKAIGroup, api.AnnotationKueueGroupSize)
}

// Strip returns an object with the fields that a record needs, or the object itself if it is of another kind than pods and
// nodes.
func Strip(object any) (any, error) {
	switch o := object.(type) {
	case *v1.Pod:
		return stripPod(o), nil
	case *v1.Node:
		n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion, Labels: o.Labels}}
		n.Spec.Taints, n.Spec.Unschedulable, n.Status.Allocatable = o.Spec.Taints, o.Spec.Unschedulable, o.Status.Allocatable
		for _, c := range o.Status.Conditions {
			if c.Type == v1.NodeReady {
				n.Status.Conditions = []v1.NodeCondition{{Type: c.Type, Status: c.Status}}
			}
		}
		return n, nil
	}
	return object, nil
}

func stripPod(o *v1.Pod) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion, Labels: o.Labels, OwnerReferences: o.OwnerReferences,
		CreationTimestamp: o.CreationTimestamp, DeletionTimestamp: o.DeletionTimestamp,
	}}
	for _, key := range kept() {
		if value, there := o.Annotations[key]; there {
			if p.Annotations == nil {
				p.Annotations = map[string]string{}
			}
			p.Annotations[key] = value
		}
	}
	p.Spec = v1.PodSpec{
		NodeName: o.Spec.NodeName, SchedulerName: o.Spec.SchedulerName, Priority: o.Spec.Priority, NodeSelector: o.Spec.NodeSelector,
		Affinity: o.Spec.Affinity, Tolerations: o.Spec.Tolerations, SchedulingGates: o.Spec.SchedulingGates, Overhead: o.Spec.Overhead,
		SchedulingGroup: o.Spec.SchedulingGroup, ActiveDeadlineSeconds: o.Spec.ActiveDeadlineSeconds, Resources: o.Spec.Resources,
		InitContainers: amounts(o.Spec.InitContainers), Containers: amounts(o.Spec.Containers),
	}
	for _, v := range o.Spec.Volumes {
		if api.BindsToNodes(&v) {
			nameless := v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{}}
			p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{VolumeSource: nameless}) // only its presence counts
		}
	}
	p.Spec.ResourceClaims = make([]v1.PodResourceClaim, len(o.Spec.ResourceClaims))
	p.Status.Phase, p.Status.StartTime = o.Status.Phase, o.Status.StartTime
	for _, c := range o.Status.Conditions {
		if c.Type == v1.DisruptionTarget || c.Type == v1.PodScheduled {
			p.Status.Conditions = append(p.Status.Conditions, v1.PodCondition{Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime})
		}
	}
	return p
}

// amounts returns containers with their resources alone.
func amounts(containers []v1.Container) []v1.Container {
	list := make([]v1.Container, len(containers))
	for i, c := range containers {
		list[i] = v1.Container{RestartPolicy: c.RestartPolicy, Resources: c.Resources}
	}
	return list
}

// kind is what equal pods of a job have in common.
type kind struct {
	Request     v1.ResourceList
	Selector    map[string][]string
	Tolerations []v1.Toleration
}

// kindOf returns the kind of a pod with a key, and what it has that a record cannot express.
func kindOf(p *v1.Pod) (k kind, key string, lost []string) {
	k.Request = resource.PodRequests(p, resource.PodResourcesOptions{})
	api.ClampQuantities(k.Request)
	var all bool
	if k.Selector, all = selectorOf(p); !all {
		lost = append(lost, "node affinity other than labels with values")
	}
	for _, t := range p.Spec.Tolerations {
		if !ofState(t.Key) {
			k.Tolerations = append(k.Tolerations, t)
		}
	}
	if a := p.Spec.Affinity; a != nil && (a.PodAffinity != nil || a.PodAntiAffinity != nil) {
		lost = append(lost, "affinity to other pods")
	}
	if len(p.Spec.Volumes)+len(p.Spec.ResourceClaims) > 0 {
		lost = append(lost, "volumes or devices that tie them to nodes")
	}
	encoded, err := json.Marshal(k)
	if err != nil {
		return k, "", lost // quantities, strings and integers can be encoded
	}
	return k, string(encoded), lost
}

// ofState reports whether a taint or toleration is about the state of the node, which a record has as up or cordon.
func ofState(key string) bool { return strings.HasPrefix(key, "node.kubernetes.io/") }

// selectorOf returns the permitted values of node labels, and false if the pod requires more than that.
func selectorOf(p *v1.Pod) (selector map[string][]string, all bool) {
	require := func(key string, values []string) {
		if selector == nil {
			selector = map[string][]string{}
		}
		if before, twice := selector[key]; twice {
			values = slices.DeleteFunc(slices.Clone(values), func(v string) bool { return !slices.Contains(before, v) })
		}
		selector[key] = values
	}
	for _, key := range slices.Sorted(maps.Keys(p.Spec.NodeSelector)) {
		require(key, []string{p.Spec.NodeSelector[key]})
	}
	if p.Spec.Affinity == nil || p.Spec.Affinity.NodeAffinity == nil || p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return selector, true
	}
	terms := p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	if len(terms) != 1 || len(terms[0].MatchFields) > 0 {
		return selector, false
	}
	all = true
	for _, e := range terms[0].MatchExpressions {
		if e.Operator == v1.NodeSelectorOpIn {
			require(e.Key, e.Values)
		} else {
			all = false
		}
	}
	return selector, all
}

// hasEnded reports whether a pod holds no resources any more.
func hasEnded(p *v1.Pod) bool {
	return p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed
}

// disrupted reports whether a pod was or is being evicted.
func disrupted(p *v1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c v1.PodCondition) bool {
		return c.Type == v1.DisruptionTarget && c.Status == v1.ConditionTrue
	})
}

// limitOf returns for how long a pod may run; 0 without limit.
func limitOf(p *v1.Pod) time.Duration {
	if p.Spec.ActiveDeadlineSeconds == nil {
		return 0
	}
	return time.Duration(*p.Spec.ActiveDeadlineSeconds) * time.Second
}
