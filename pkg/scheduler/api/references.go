// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	v1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// AllSources returns all sources, in the order in which a pod names their groups.
func AllSources() []GroupSource {
	return []GroupSource{SourceOwn, SourceNative, SourceSchedulerPlugins, SourceVolcano}
}

// GroupsNamedBy returns the groups that a pod names, in the order of MembershipOf, whether they exist or not. The
// annotation that kube-batch and Volcano share names two of them.
func GroupsNamedBy(pod *v1.Pod) []GroupKey {
	var keys []GroupKey
	add := func(source GroupSource, name string) {
		if name != "" {
			keys = append(keys, GroupKey{source, pod.Namespace + "/" + name})
		}
	}
	add(SourceOwn, pod.Labels[v1alpha1.LabelPodGroup])
	add(SourceNative, schedulingGroup(pod))
	add(SourceSchedulerPlugins, pod.Labels[LabelSchedulerPluginsGroup])
	add(SourceOwn, pod.Annotations[v1alpha1.AnnotationGroupName])
	add(SourceVolcano, pod.Annotations[v1alpha1.AnnotationGroupName])
	return keys
}
