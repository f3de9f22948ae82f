// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/batch-scheduler/batch-scheduler/cmd/kubectl-batch/internal/show"
	"github.com/batch-scheduler/batch-scheduler/internal/text"
	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// nodesAsked is of how many nodes the pods are listed one by one. The API server has an index for that; it looks through
// all pods of the cluster otherwise.
const nodesAsked = 64

// readDomain returns who holds the topology domain that the PodGroup waits for, nil if it waits for none, and what could not be
// read of it; empty if all could.
func readDomain(ctx context.Context, r Reader, f *Facts) (domain *show.HeldDomain, unread string) {
	nearest, wanted := f.Group.Status.NearestDomain, wantedBy(f.Pods)
	if nearest == nil || len(wanted) == 0 {
		return nil, ""
	}
	nodes, err := r.Core.CoreV1().Nodes().List(ctx, r.fromCache(metav1.ListOptions{LabelSelector: labels.Set(nearest.NodeLabels).String()}))
	var pods []corev1.Pod
	if err == nil && len(nodes.Items) > 0 {
		pods, err = podsOn(ctx, r, nodes.Items)
	}
	what := fmt.Sprintf("who holds %s %s: ", nearest.Level, nearest.Name)
	switch {
	case apierrors.IsForbidden(err):
		return nil, what + "requires a ClusterRoleBinding to a role that may list nodes and pods, such as batch-scheduler-record"
	case err != nil:
		return nil, what + err.Error()
	case len(nodes.Items) == 0:
		return nil, ""
	}
	domain = scarcest(nearest, nodes.Items, pods, wanted)
	readEnds(ctx, r, domain.Main(), pods)
	return domain, ""
}

// wantedBy returns what the pods that wait request in sum, without zeros.
func wantedBy(pods []corev1.Pod) corev1.ResourceList {
	sum := corev1.ResourceList{}
	for i := range pods {
		if !waits(&pods[i]) || foreign(&pods[i]) {
			continue
		}
		for name, q := range resourcehelper.PodRequests(&pods[i], resourcehelper.PodResourcesOptions{}) {
			if total := sum[name]; !q.IsZero() {
				total.Add(q)
				sum[name] = total
			}
		}
	}
	return sum
}

// podsOn returns the pods of all namespaces on nodes, which may include others if there are many nodes.
func podsOn(ctx context.Context, r Reader, nodes []corev1.Node) ([]corev1.Pod, error) {
	selectors := []fields.Selector{fields.OneTermNotEqualSelector("spec.nodeName", "")}
	if len(nodes) <= nodesAsked {
		selectors = nil
		for i := range nodes {
			selectors = append(selectors, fields.OneTermEqualSelector("spec.nodeName", nodes[i].Name))
		}
	}
	lists, errs := make([]*corev1.PodList, len(selectors)), make([]error, len(selectors))
	var reading sync.WaitGroup
	for i, s := range selectors {
		reading.Go(func() {
			lists[i], errs[i] = r.Core.CoreV1().Pods("").List(ctx, r.fromCache(metav1.ListOptions{FieldSelector: s.String()}))
		})
	}
	reading.Wait()
	var pods []corev1.Pod
	for i := range lists {
		if errs[i] != nil {
			return nil, errs[i]
		}
		pods = append(pods, lists[i].Items...)
	}
	return pods, nil
}

// scarcest returns the domain by the resource of which it has the least free relative to what is wanted. Of resources that are
// equally scarce it is the last one in the order of output, so that GPUs come before cpu.
func scarcest(nearest *v1alpha1.NearestDomain, nodes []corev1.Node, pods []corev1.Pod, wanted corev1.ResourceList) (domain *show.HeldDomain) {
	var least api.Share
	for _, name := range slices.Backward(text.Resources(wanted)) {
		d := show.Domain(nearest.Name, nodes, pods, name)
		want := wanted[name]
		free := api.Share{Part: d.Free.MilliValue(), Whole: want.MilliValue()}
		if domain == nil || free.Compare(least) < 0 {
			domain, least = &show.HeldDomain{Level: nearest.Level, Resource: name, DomainUsage: d}, free
		}
	}
	return domain
}

// readEnds sets when holders are expected to end. What may not be read, or is of another API, has no known end unless its pods
// declare one.
func readEnds(ctx context.Context, r Reader, holders []show.Holder, pods []corev1.Pod) {
	var reading sync.WaitGroup
	for i := range holders {
		reading.Go(func() {
			h, f := &holders[i], &Facts{Now: r.Now()}
			for k := range pods {
				if show.PodGroupOf(&pods[k]) == h.PodGroup && holds(&pods[k]) {
					f.Pods = append(f.Pods, pods[k])
				}
			}
			namespace, name, _ := strings.Cut(h.PodGroup, "/")
			group, err := r.Batch.SchedulingV1alpha1().PodGroups(namespace).Get(ctx, name, metav1.GetOptions{})
			if err == nil && api.IsMember(&f.Pods[0], api.OwnGroup(group)) {
				f.Group = group
			}
			if queue, err := r.Batch.SchedulingV1alpha1().Queues().Get(ctx, f.Pods[0].Annotations[v1alpha1.AnnotationQueue], metav1.GetOptions{}); err == nil {
				f.Queue = queue
			}
			h.ExpectedEnd = expectedEnd(f)
		})
	}
	reading.Wait()
}
