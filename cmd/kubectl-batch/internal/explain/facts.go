// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package explain says why a group, or a pod without one, waits: it reads what there is about it, with a number
// of requests that depends neither on the size of the cluster nor on that of the gang, and words it. Only of a gang that waits
// for a topology domain it also lists the pods of the nodes there.
package explain

import (
	"cmp"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/cmd/kubectl-batch/internal/show"
	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// Facts are what is known at a moment.
type Facts struct {
	Now time.Time

	// Group is what is asked about. It is nil when that is a pod without a group, which is then the only
	// one of Pods.
	Group *v1alpha1.PodGroup
	// Other is the group of another API that Group was converted from; nil for a PodGroup of this scheduler.
	Other *api.Group
	// PodGroups are the namespace/name of those that pods of Other name, if that is in a tree of groups; else nil.
	PodGroups map[string]bool

	// Pods are the members of the group, by name.
	Pods []corev1.Pod

	// Job creates the pods of the PodGroup. It is nil if no Job does, or it could not be read.
	Job *batchv1.Job
	// MissingGroup is the name of the PodGroup that the only pod names, if it does not exist or is not the one for which the
	// pod was bound.
	MissingGroup string

	// Queue is nil if it does not exist or could not be read.
	Queue *v1alpha1.Queue

	// Domain is the topology domain that the PodGroup waits for; nil if it waits for none, or it could not be read.
	Domain *show.HeldDomain

	// Events are about the group and some of its pods.
	Events []corev1.Event

	// Unread says what could not be read, and why. The answer is good without it.
	Unread []string

	// Verbose adds what only administrators of the scheduler need: its plugins.
	Verbose bool
}

// queueName is the queue that is asked for.
func (f *Facts) queueName() string {
	if f.Group != nil {
		return show.QueueName(f.Group)
	}
	if bound := api.CommitmentOf(&f.Pods[0]); bound != nil {
		return string(bound.Queue)
	}
	return cmp.Or(f.Pods[0].Labels[v1alpha1.LabelQueue], show.DefaultQueue)
}

// counts are members by what has become of them.
type counts struct{ running, waiting, succeeded, failed int }

// count leaves out pods that name the group and are another scheduler's.
func count(pods []corev1.Pod) counts {
	var c counts
	for i := range pods {
		switch p := &pods[i]; {
		case foreign(p):
		case p.Status.Phase == corev1.PodSucceeded:
			c.succeeded++
		case p.Status.Phase == corev1.PodFailed:
			c.failed++
		case waits(p):
			c.waiting++
		default:
			c.running++
		}
	}
	return c
}

// waits reports whether a pod has no node and may still get one.
func waits(p *corev1.Pod) bool {
	return p.Spec.NodeName == "" && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed
}

// holds reports whether a pod has a node and has not ended.
func holds(p *corev1.Pod) bool {
	return p.Spec.NodeName != "" && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed
}

// foreign reports whether kube-scheduler schedules a pod, as it does if the pod names no scheduler.
func foreign(p *corev1.Pod) bool { return p.Spec.SchedulerName == corev1.DefaultSchedulerName }

// timeLimit returns for how long each pod may run: the activeDeadlineSeconds of the first pod that has it, else of the
// template of the Job; zero for no limit.
func (f *Facts) timeLimit() time.Duration {
	for i := range f.Pods {
		if seconds := f.Pods[i].Spec.ActiveDeadlineSeconds; seconds != nil {
			return time.Duration(*seconds) * time.Second
		}
	}
	if f.Job != nil && f.Job.Spec.Template.Spec.ActiveDeadlineSeconds != nil {
		return time.Duration(*f.Job.Spec.Template.Spec.ActiveDeadlineSeconds) * time.Second
	}
	return 0
}

func podScheduled(p *corev1.Pod) *corev1.PodCondition {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == corev1.PodScheduled {
			return &p.Status.Conditions[i]
		}
	}
	return nil
}

// isMember reports whether a pod counts in the group.
func (f *Facts) isMember(pod *corev1.Pod) bool {
	if f.PodGroups != nil {
		return pod.Labels[v1alpha1.LabelPodGroup] == "" && f.PodGroups[api.NativeGroupOf(pod)]
	}
	if f.Other != nil {
		return api.IsMember(pod, f.Other)
	}
	return api.IsMember(pod, api.OwnGroup(f.Group))
}

// groupName returns namespace/name of the group, with the API if that is another one.
func (f *Facts) groupName() string {
	name := f.Group.Namespace + "/" + f.Group.Name
	if f.Other != nil {
		name += " of " + f.Other.Key().Reference().API
	}
	return name
}

// source returns the source of the group.
func (f *Facts) source() api.GroupSource {
	if f.Other == nil {
		return api.SourceOwn
	}
	return f.Other.Source
}
