// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// TaskID is the UID of a pod.
type TaskID types.UID

// JobID names a job: "group/<namespace>/<name>" for the members of a PodGroup, "<source>/<namespace>/<name>" for
// those of a PodGroup of another API, and a "keyed/…", "owned/…", "unknown/…", "shadow/…", "orphaned/…" or
// "unsupported/…" id for jobs that have none (see Membership).
type JobID string

// QueueID is the name of a Queue; queues are cluster scoped.
type QueueID string

// Membership is the job and queue in which a pod counts.
type Membership struct {
	Job JobID
	// Group is the namespace/name of the PodGroup that the pod names, which is of Source; empty for pods
	// without one and for members of a deleted group.
	Group  string
	Source GroupSource
	// Queue is the queue of a job without PodGroup.
	Queue QueueID
	// MinMember is the gang size of a job without PodGroup.
	MinMember int32
	// Unsupported is the group of another API that the pod names, which keeps it from being placed; nil if it names none.
	Unsupported *GroupReference
	// Owner is the object that makes a gang of the pods of the job; nil if there is none.
	Owner *JobOwner
}

// Commitment is what the scheduler's Binding writes on a bound pod: from then on it decides where the pod
// counts, so that relabelling a pod or deleting its group does not exempt it from queue and cap.
type Commitment struct {
	Queue    QueueID
	GroupUID types.UID
}

// CommitmentOf reads the annotations of a bound pod. It is nil for pending pods and for pods
// that another client has bound.
func CommitmentOf(pod *v1.Pod) *Commitment {
	if pod.Spec.NodeName == "" {
		return nil
	}
	queue, present := pod.Annotations[v1alpha1.AnnotationQueue]
	uid, also := pod.Annotations[v1alpha1.AnnotationPodGroupUID]
	if !present || !also {
		return nil
	}
	return &Commitment{Queue: QueueID(queue), GroupUID: types.UID(uid)}
}

// MembershipRule is what MembershipOf depends on besides the pod.
type MembershipRule struct {
	DefaultQueue QueueID // of pods that name none
	Sources      GroupSources
	Groups       Groups
	Owners       Owners // nil if no kind of owners makes gangs
	KueueGroups  bool   // the labels of Kueue's groups of pods count as group keys
}

// Groups are the groups that exist.
type Groups interface {
	// Group returns the group with a key, or nil.
	Group(GroupKey) *Group
	// GroupWithUID returns the group with a UID, or nil.
	GroupWithUID(types.UID) *Group
	// QueueOf returns the queue of a group.
	QueueOf(*Group) QueueID
}

// MembershipOf is the one rule that assigns a pod to its job. The first match wins:
//
//  1. a commitment that names a group: that group while it exists in that queue, else
//     an orphaned job, in the queue of the commitment. A group of another namespace, which only
//     a forged annotation names, counts as deleted;
//  2. the label scheduling.batch-scheduler.dev/pod-group;
//  3. the field spec.schedulingGroup, if the source native is enabled and the group is not known to be no gang: the group, or
//     the root of its tree of groups;
//  4. the label scheduling.x-k8s.io/pod-group, if the source scheduler-plugins is enabled;
//  5. the annotation scheduling.k8s.io/group-name of kube-batch and Volcano: a group of Volcano if that source is enabled and
//     there is no PodGroup of this scheduler with this name;
//  6. the annotation pod-group-name, if the source kai is enabled;
//  7. the annotation scheduling.batch-scheduler.dev/group-key, or that of Kueue if it is enabled: one job per key and queue;
//  8. for pods without a node, a group of another API (see groupAPIs): an unsupported job, so that no member of a
//     gang starts alone;
//  9. the rule of an owner, if its kind is enabled and the pod has no annotation scheduling.k8s.io/group-min-member;
//  10. one shadow job per controller owner and queue, else one per pod.
func MembershipOf(pod *v1.Pod, binding *Commitment, rule MembershipRule) Membership {
	if binding != nil && binding.GroupUID != "" {
		if g := rule.Groups.GroupWithUID(binding.GroupUID); g != nil && g.Namespace == pod.Namespace && g.HasJob() && rule.Groups.QueueOf(g) == binding.Queue {
			return memberOf(g.Key())
		}
		id := JobID("orphaned/" + string(binding.GroupUID) + "/" + pod.Namespace + "/" + string(binding.Queue))
		return Membership{Job: id, Queue: binding.Queue, MinMember: 1}
	}
	if binding == nil {
		if group, found := rule.groupOf(pod); found {
			return memberOf(group)
		}
	}
	queue := QueueID(pod.Labels[v1alpha1.LabelQueue])
	if binding != nil {
		queue = binding.Queue
	}
	if queue == "" {
		queue = rule.DefaultQueue
	}
	if key := rule.groupKeyOf(pod); key != "" {
		n, _ := KeyedMinMember(pod)
		return Membership{Job: JobID(keyedPrefix + pod.Namespace + "/" + string(queue) + "/" + key), Queue: queue, MinMember: n}
	}
	if binding == nil && pod.Spec.NodeName == "" {
		if group := unsupportedGroup(pod, rule.Sources); group != nil {
			id := JobID("unsupported/" + pod.Namespace + "/" + group.Field + "/" + group.Name + "/" + string(queue))
			return Membership{Job: id, Queue: queue, MinMember: ShadowMinMember(pod), Unsupported: group}
		}
	}
	if pod.Annotations[v1alpha1.AnnotationGroupMinMember] == "" {
		if m, found := rule.ofOwner(pod, queue); found {
			return m
		}
	}
	return Membership{Job: shadowJob(pod, queue), Queue: queue, MinMember: ShadowMinMember(pod)}
}

func memberOf(k GroupKey) Membership {
	return Membership{Job: k.JobID(), Group: k.Name, Source: k.Source}
}

// groupOf returns the gang that a pod names first.
func (rule *MembershipRule) groupOf(pod *v1.Pod) (group GroupKey, found bool) {
	if name := pod.Labels[v1alpha1.LabelPodGroup]; name != "" {
		return GroupKey{SourceOwn, pod.Namespace + "/" + name}, true
	}
	if name := schedulingGroup(pod); name != "" && rule.Sources.Native {
		native := GroupKey{SourceNative, pod.Namespace + "/" + name}
		g := rule.Groups.Group(native)
		switch root := g.root(); {
		case root != "":
			return GroupKey{SourceComposite, root}, true
		case g == nil || !g.Basic:
			return native, true
		}
	}
	if name := pod.Labels[LabelSchedulerPluginsGroup]; name != "" && rule.Sources.SchedulerPlugins {
		return GroupKey{SourceSchedulerPlugins, pod.Namespace + "/" + name}, true
	}
	if name := pod.Annotations[v1alpha1.AnnotationGroupName]; name != "" {
		own := GroupKey{SourceOwn, pod.Namespace + "/" + name}
		if rule.Sources.Volcano && rule.Groups.Group(own) == nil {
			return GroupKey{SourceVolcano, own.Name}, true
		}
		return own, true
	}
	if name := pod.Annotations[AnnotationKAIGroup]; name != "" && rule.Sources.KAI {
		return GroupKey{SourceKAI, pod.Namespace + "/" + name}, true
	}
	return GroupKey{}, false
}

// IsMember reports whether a pod counts in a group, for clients that do not have the model. A group that names
// no queue is in the queue that its pods were bound for.
func IsMember(pod *v1.Pod, group *Group) bool {
	binding := CommitmentOf(pod)
	rule := MembershipRule{Groups: oneGroup{group, binding}}
	if group.Source != SourceOwn {
		rule.Sources = AllGroupSources()
	}
	m := MembershipOf(pod, binding, rule)
	return GroupKey{m.Source, m.Group} == group.Key()
}

// oneGroup are Groups of which only one is known.
type oneGroup struct {
	group   *Group
	binding *Commitment // of the pod in question
}

func (o oneGroup) Group(k GroupKey) *Group {
	if k == o.group.Key() {
		return o.group
	}
	return nil
}

func (o oneGroup) GroupWithUID(uid types.UID) *Group {
	if uid == o.group.UID {
		return o.group
	}
	return nil
}

func (o oneGroup) QueueOf(g *Group) QueueID {
	if g.Spec.Queue == "" {
		return o.binding.Queue
	}
	return QueueID(g.Spec.Queue)
}

// GroupJobID returns the id of the job of a PodGroup of this scheduler, given its namespace/name.
func GroupJobID(group string) JobID { return JobID("group/" + group) }

// GroupNameOf returns the name of the PodGroup that a pod names, empty if none.
func GroupNameOf(pod *v1.Pod) string {
	if name := pod.Labels[v1alpha1.LabelPodGroup]; name != "" {
		return name
	}
	return pod.Annotations[v1alpha1.AnnotationGroupName]
}

func shadowJob(pod *v1.Pod, queue QueueID) JobID {
	owner := string(pod.UID)
	if controller := metav1.GetControllerOf(pod); controller != nil {
		owner = string(controller.UID)
	}
	return JobID("shadow/" + pod.Namespace + "/" + owner + "/" + string(queue))
}

// ShadowMinMember returns the gang size annotation of a pod without PodGroup; what is not a positive number counts as 1.
func ShadowMinMember(pod *v1.Pod) int32 {
	n, err := strconv.ParseInt(pod.Annotations[v1alpha1.AnnotationGroupMinMember], 10, 32)
	if err != nil || n < 1 {
		return 1
	}
	return int32(n)
}

// keyedPrefix begins the ids of jobs whose pods have a group key.
const keyedPrefix = "keyed/"

// GroupKey returns the group key by which the pods of the job are a gang; empty if they have none.
func (j *JobInfo) GroupKey() string {
	rest, keyed := strings.CutPrefix(string(j.ID), keyedPrefix)
	if !keyed {
		return ""
	}
	return strings.SplitN(rest, "/", 3)[2] // after namespace and queue
}

// How the pods of a group of Kueue name their group, and how many pods it has.
const (
	LabelKueueGroup          = "kueue.x-k8s.io/pod-group-name"
	AnnotationKueueGroupSize = "kueue.x-k8s.io/pod-group-total-count"
)

// groupKeyOf returns the group key of a pod; empty if it has none.
func (rule *MembershipRule) groupKeyOf(pod *v1.Pod) string {
	if key := pod.Annotations[v1alpha1.AnnotationGroupKey]; key != "" || !rule.KueueGroups {
		return key
	}
	return pod.Labels[LabelKueueGroup]
}

// GroupKeyFields returns the field that gives a pod its group key, such as "annotation K", and the annotation with the size
// of the gang.
func GroupKeyFields(pod *v1.Pod) (key, size string) {
	if usesKueueGroup(pod) {
		return "label " + LabelKueueGroup, AnnotationKueueGroupSize
	}
	return "annotation " + v1alpha1.AnnotationGroupKey, v1alpha1.AnnotationMinMember
}

func usesKueueGroup(pod *v1.Pod) bool {
	return pod.Annotations[v1alpha1.AnnotationGroupKey] == "" && pod.Labels[LabelKueueGroup] != ""
}

// KeyedMinMember returns the gang size that a pod with a group key names, and whether it names one; 1 if it does not.
func KeyedMinMember(pod *v1.Pod) (n int32, ok bool) {
	size := v1alpha1.AnnotationMinMember
	if usesKueueGroup(pod) {
		size = AnnotationKueueGroupSize
	}
	parsed, err := strconv.ParseInt(pod.Annotations[size], 10, 32)
	if err != nil || parsed < 1 {
		return 1, false
	}
	return int32(parsed), true
}

// OrphanedGroup returns the UID of the deleted group of which the job collects members that were bound for it, else "".
func (j *JobInfo) OrphanedGroup() types.UID {
	rest, ok := strings.CutPrefix(string(j.ID), "orphaned/")
	if !ok {
		return ""
	}
	uid, _, _ := strings.Cut(rest, "/")
	return types.UID(uid)
}

// QueueFound reports whether the queue that the job names exists.
func (j *JobInfo) QueueFound() bool { return j.Queue != nil && j.Queue.ID == j.QueueName }
