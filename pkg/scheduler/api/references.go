// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// AllSources returns all sources, in the order in which a pod names their groups.
func AllSources() []GroupSource {
	return []GroupSource{SourceOwn, SourceNative, SourceSchedulerPlugins, SourceVolcano, SourceKAI}
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
	add(SourceKAI, pod.Annotations[AnnotationKAIGroup])
	return keys
}

// NamedGangs are the names of the gangs that a pod names, by where it names them: the label of a PodGroup of this scheduler,
// spec.schedulingGroup, the label of scheduler-plugins, the annotation of kube-batch and Volcano, that of KAI Scheduler, the
// group key.
type NamedGangs [6]string

// NamedGangsOf returns the names of the gangs that a pod names.
func NamedGangsOf(pod *v1.Pod) NamedGangs {
	return NamedGangs{
		pod.Labels[v1alpha1.LabelPodGroup], schedulingGroup(pod), pod.Labels[LabelSchedulerPluginsGroup],
		pod.Annotations[v1alpha1.AnnotationGroupName], pod.Annotations[AnnotationKAIGroup], pod.Annotations[v1alpha1.AnnotationGroupKey],
	}
}

// Several returns the gang in which a pod counts that has these names, and another gang that it names, as text; empty if it
// names one gang at most. Names of sources that are not enabled do not count.
func (n NamedGangs) Several(namespace string, rule MembershipRule) (first, other string) {
	key := func(source GroupSource, at int) GroupKey { return GroupKey{source, namespace + "/" + n[at]} }
	var gangs []string
	add := func(k GroupKey) {
		if text := k.describe(); len(gangs) == 0 || gangs[0] != text {
			gangs = append(gangs, text)
		}
	}
	if n[0] != "" {
		add(key(SourceOwn, 0))
	}
	if n[1] != "" && rule.Sources.Native {
		if g := rule.Groups.Group(key(SourceNative, 1)); g == nil || !g.Basic {
			add(key(SourceNative, 1))
		}
	}
	if n[2] != "" && rule.Sources.SchedulerPlugins {
		add(key(SourceSchedulerPlugins, 2))
	}
	if n[3] != "" {
		own, ofVolcano := key(SourceOwn, 3), key(SourceVolcano, 3)
		exists := rule.Groups.Group(own) != nil
		if exists || !rule.Sources.Volcano {
			add(own)
		}
		if rule.Sources.Volcano && (!exists || rule.Groups.Group(ofVolcano) != nil) {
			add(ofVolcano)
		}
	}
	if n[4] != "" && rule.Sources.KAI {
		add(key(SourceKAI, 4))
	}
	if n[5] != "" {
		gangs = append(gangs, "the gang with the group key "+n[5])
	}
	if len(gangs) < 2 {
		return "", ""
	}
	return gangs[0], gangs[1]
}

// describe names a group in messages about pods of its namespace.
func (k GroupKey) describe() string {
	_, name, _ := strings.Cut(k.Name, "/")
	if k.Source == SourceOwn {
		return "PodGroup " + name
	}
	return "group " + name + " of " + k.Reference().API
}
