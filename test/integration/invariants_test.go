// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/test/capacity"
	"github.com/batch-scheduler/batch-scheduler/test/scheduler"
)

// invariants returns the errors of a cluster in a stable state that every case excludes. The groups
// named need not be whole.
func (v *observer) invariants(short ...string) error {
	pods, _ := v.pods.List(labels.Everything())
	return errors.Join(v.capacityKept(pods), noneRejected(pods), committed(pods), v.gangsWhole(pods, short))
}

// capacityKept: no node holds more than it has.
func (v *observer) capacityKept(pods []*corev1.Pod) error {
	used := map[string]corev1.ResourceList{}
	for _, p := range pods {
		if p.Spec.NodeName == "" || capacity.Ended(p) {
			continue
		}
		if used[p.Spec.NodeName] == nil {
			used[p.Spec.NodeName] = corev1.ResourceList{}
		}
		capacity.Add(used[p.Spec.NodeName], capacity.Request(p))
	}
	nodes, _ := v.nodes.List(labels.Everything())
	var errs []error
	for _, n := range nodes {
		if lacking := capacity.Lacking(used[n.Name], n.Status.Allocatable); lacking != "" {
			errs = append(errs, fmt.Errorf("node %s holds %s", n.Name, lacking))
		}
	}
	return errors.Join(errs...)
}

// noneRejected: no kubelet has rejected a pod that the scheduler bound.
func noneRejected(pods []*corev1.Pod) error {
	var errs []error
	for _, p := range pods {
		if ours(p) && p.Status.Phase == corev1.PodFailed && p.Status.Reason != "" {
			errs = append(errs, fmt.Errorf("pod %s was rejected by node %s: %s", p.Name, p.Spec.NodeName, p.Status.Reason))
		}
	}
	return errors.Join(errs...)
}

// committed: every pod that the scheduler has bound says where it counts.
func committed(pods []*corev1.Pod) error {
	var errs []error
	for _, p := range pods {
		if !ours(p) || p.Spec.NodeName == "" {
			continue
		}
		for _, key := range []string{v1alpha1.AnnotationQueue, v1alpha1.AnnotationPodGroupUID} {
			if _, ok := p.Annotations[key]; !ok {
				errs = append(errs, fmt.Errorf("pod %s is bound without annotation %s", p.Name, key))
			}
		}
	}
	return errors.Join(errs...)
}

// gangsWhole: no group has started with fewer pods than minMember, except those named.
func (v *observer) gangsWhole(pods []*corev1.Pod, short []string) error {
	started := map[string]int32{}
	for _, p := range pods {
		if ours(p) && p.Spec.NodeName != "" {
			started[p.Annotations[v1alpha1.AnnotationPodGroupUID]]++
		}
	}
	groups, _ := v.groups.List(labels.Everything())
	var errs []error
	for _, g := range groups {
		if n := started[string(g.UID)]; n > 0 && n < g.Spec.MinMember && !slices.Contains(short, g.Name) {
			errs = append(errs, fmt.Errorf("group %s has started with %d pods of at least %d", g.Name, n, g.Spec.MinMember))
		}
	}
	return errors.Join(errs...)
}

// ours reports whether the pod is one that the scheduler takes care of.
func ours(p *corev1.Pod) bool { return p.Spec.SchedulerName == scheduler.Name }

// message returns the conditions' messages about a pending job: of its groups if it has any, else of
// its pods; each text once.
func (v *observer) message(job string) string {
	texts := map[string]bool{}
	selector := labels.SelectorFromSet(labels.Set{jobLabel: job})
	groups, _ := v.groups.List(selector)
	for _, g := range groups {
		texts[scheduled(g).Message] = true
	}
	if len(groups) == 0 {
		pods, _ := v.pods.List(selector)
		for _, p := range pods {
			texts[podScheduled(p).Message] = true
		}
	}
	var all []string
	for text := range texts {
		all = append(all, text)
	}
	return strings.Join(all, "\n")
}
