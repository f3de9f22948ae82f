// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// GroupReference is how a pod names the group that it belongs to.
type GroupReference struct {
	API   string // that defines the group; empty for the PodGroups of this scheduler
	Field string // of the pod, such as "label scheduling.x-k8s.io/pod-group"
	Name  string // of the group
}

// groupAPI is an API whose groups this scheduler does not read, and where pods name them.
type groupAPI struct {
	name        string
	labels      []string
	annotations []string
	field       string // of the pod, and the function that reads it; empty if the API has none
	read        func(*v1.Pod) string
}

// LabelSchedulerPluginsGroup is the label by which pods name a PodGroup of scheduler-plugins.
const LabelSchedulerPluginsGroup = "scheduling.x-k8s.io/pod-group"

// How pods name a PodGroup of KAI Scheduler, and their subgroup. Its pod-grouper sets both, some time after a pod is created,
// on pods with the scheduler name KAISchedulerName.
const (
	AnnotationKAIGroup = "pod-group-name"
	LabelKAISubGroup   = "kai.scheduler/subgroup-name"
	KAISchedulerName   = "kai-scheduler"
)

// Reference returns how pods name a group of another API, for messages.
func (k GroupKey) Reference() *GroupReference {
	_, name, _ := strings.Cut(k.Name, "/")
	r := GroupReference{Name: name}
	switch k.Source {
	case SourceNative, SourceComposite:
		r.API, r.Field = apiNative, fieldSchedulingGroup
	case SourceSchedulerPlugins:
		r.API, r.Field = apiSchedulerPlugins, "label "+LabelSchedulerPluginsGroup
	case SourceVolcano:
		r.API, r.Field = apiVolcano, "annotation "+v1alpha1.AnnotationGroupName
	case SourceKAI:
		r.API, r.Field = apiKAI, fieldKAIGroup
	}
	return &r
}

// Names of APIs in messages.
const (
	apiNative           = "Kubernetes (scheduling.k8s.io)"
	apiSchedulerPlugins = "scheduler-plugins (scheduling.x-k8s.io)"
	apiVolcano          = "Volcano (scheduling.volcano.sh)"
	apiKAI              = "KAI Scheduler (scheduling.run.ai)"

	fieldSchedulingGroup = "field spec.schedulingGroup"
	fieldKAIGroup        = "annotation " + AnnotationKAIGroup
)

// groupAPIs are the APIs of other gang schedulers. Annotation scheduling.k8s.io/group-name, which Volcano shares with
// kube-batch, is not among them: MembershipOf reads it as the name of a PodGroup of this scheduler.
var groupAPIs = [...]groupAPI{
	{
		name: apiSchedulerPlugins,
		labels: []string{
			LabelSchedulerPluginsGroup,
			"pod-group.scheduling.sigs.k8s.io",      // of former releases
			"pod-group.scheduling.sigs.k8s.io/name", // of former releases
		},
	},
	{
		name:        apiVolcano,
		labels:      []string{"scheduling.volcano.sh/group-name"},
		annotations: []string{"scheduling.volcano.sh/group-name"},
	},
	{
		name:        apiKAI,
		labels:      []string{LabelKAISubGroup},
		annotations: []string{AnnotationKAIGroup},
	},
	{
		name:        "YuniKorn (yunikorn.apache.org)",
		annotations: []string{"yunikorn.apache.org/task-group-name"},
	},
	{
		name:  apiNative,
		field: fieldSchedulingGroup,
		read:  schedulingGroup,
	},
}

// NativeGroupOf returns the namespace/name of the native group that a pod names, empty if none.
func NativeGroupOf(pod *v1.Pod) string {
	if name := schedulingGroup(pod); name != "" {
		return pod.Namespace + "/" + name
	}
	return ""
}

func schedulingGroup(pod *v1.Pod) string {
	if g := pod.Spec.SchedulingGroup; g != nil && g.PodGroupName != nil {
		return *g.PodGroupName
	}
	return ""
}

// unsupportedGroup returns the group of another API that the pod names first, in the order of groupAPIs; nil if it names
// none. If the native groups are read, a pod that names one gets here only if it is no gang. A pod whose group the pod-grouper
// of KAI Scheduler has not named yet has a group without a name.
func unsupportedGroup(pod *v1.Pod, sources GroupSources) *GroupReference {
	for i := range groupAPIs {
		if groupAPIs[i].read != nil && sources.Native {
			continue
		}
		if r := groupAPIs[i].reference(pod); r.Name != "" {
			r.API = groupAPIs[i].name
			return &r
		}
	}
	if sources.KAI && pod.Spec.SchedulerName == KAISchedulerName {
		return &GroupReference{API: apiKAI, Field: fieldKAIGroup}
	}
	return nil
}

// reference returns how the pod names a group of the API, without a name if it does not.
func (a *groupAPI) reference(pod *v1.Pod) GroupReference {
	for _, key := range a.annotations {
		if name := pod.Annotations[key]; name != "" {
			return GroupReference{Field: "annotation " + key, Name: name}
		}
	}
	for _, key := range a.labels {
		if name := pod.Labels[key]; name != "" {
			return GroupReference{Field: "label " + key, Name: name}
		}
	}
	if a.read == nil {
		return GroupReference{}
	}
	return GroupReference{Field: a.field, Name: a.read(pod)}
}
