// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/batch-scheduler/batch-scheduler/cmd/kubectl-batch/internal/othergroups"
	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/groupapi"
)

// choose returns which of the groups of a name is asked about, of a source if that is not nil; nil for that of this scheduler. ownErr is why there is no
// PodGroup of this scheduler, otherErr what kept the reader from reading another API.
func choose(source *api.GroupSource, name string, ownErr error, others []othergroups.Group, otherErr error) (*othergroups.Group, error) {
	if source != nil {
		at := slices.IndexFunc(others, func(g othergroups.Group) bool {
			return g.Source == *source || g.Source == api.SourceComposite && *source == api.SourceNative
		})
		switch {
		case *source == api.SourceOwn:
			return nil, ownErr
		case at >= 0:
			return &others[at], nil
		}
		return nil, cmp.Or(otherErr, notFound(*source, name))
	}
	var found []string
	if ownErr == nil {
		found = append(found, api.SourceOwn.String())
	}
	for i := range others {
		found = append(found, others[i].Source.String())
	}
	switch {
	case len(found) > 1:
		return nil, fmt.Errorf("PodGroup %q exists in more than one API: %s; name one of them, such as --source %s", name, strings.Join(found, ", "), found[len(found)-1])
	case ownErr == nil || !apierrors.IsNotFound(ownErr) || len(others) == 0 && otherErr == nil:
		return nil, ownErr
	case len(others) == 0:
		return nil, fmt.Errorf("PodGroup %q is not one of %s, and other APIs could not be read: %w", name, v1alpha1.GroupName, otherErr)
	}
	return &others[0], nil
}

func notFound(source api.GroupSource, name string) error {
	for _, a := range groupapi.All() {
		if a.Source == source {
			return apierrors.NewNotFound(a.Resource.GroupResource(), name)
		}
	}
	return apierrors.NewNotFound(v1alpha1.Resource("podgroups"), name)
}

// readOther reads the members of a group of another API, and derives from them what its status has no field for.
func readOther(ctx context.Context, r Reader, f *Facts, g *othergroups.Group, ownExists bool) error {
	selector := ""
	if g.Source == api.SourceSchedulerPlugins {
		selector = labels.Set{api.LabelSchedulerPluginsGroup: g.Name}.String()
	}
	all, err := r.pods(ctx, selector)
	if err != nil {
		return err
	}
	if g.IsPart() {
		if f.PodGroups, err = r.Other.PodGroupsOf(ctx, g.Group); err != nil {
			return err
		}
	}
	f.Other, f.Group = g.Group, g.PodGroup.DeepCopy()
	f.Pods = slices.DeleteFunc(all, func(p corev1.Pod) bool {
		if ownExists && g.Source == api.SourceVolcano { // whose name the annotation takes
			bound := api.CommitmentOf(&p)
			return bound == nil || bound.GroupUID != g.UID
		}
		return !f.isMember(&p)
	})
	f.Group.Status = g.Shown()
	if f.Group.Spec.Queue == "" {
		f.Group.Spec.Queue = queueOfMembers(ctx, r, f.Pods)
	}
	deriveStatus(f)
	return nil
}

// queueOfMembers returns the queue of a group that names none; empty for the default queue.
func queueOfMembers(ctx context.Context, r Reader, pods []corev1.Pod) string {
	for i := range pods {
		if bound := api.CommitmentOf(&pods[i]); bound != nil {
			return string(bound.Queue)
		}
	}
	for i := range pods {
		if queue := pods[i].Labels[v1alpha1.LabelQueue]; queue != "" {
			return queue
		}
	}
	namespace, err := r.Core.CoreV1().Namespaces().Get(ctx, r.Namespace, metav1.GetOptions{})
	if err != nil {
		return "" // users often may not read it
	}
	return namespace.Labels[v1alpha1.LabelDefaultQueue]
}

// deriveStatus completes the status of a group of another API. The API of scheduler-plugins has no reasons, that of
// Kubernetes has one for all that wait; this one and that of KAI Scheduler have neither phase nor counts. The pods that wait have
// our reason.
func deriveStatus(f *Facts) {
	s, c := &f.Group.Status, count(f.Pods)
	complete := c.running+c.succeeded >= int(max(f.Group.Spec.MinMember, 1))
	condition := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionPodGroupScheduled)
	if f.PodGroups != nil { // the minima are those of a tree
		complete = condition != nil && condition.Status == metav1.ConditionTrue && c.running+c.succeeded > 0
	}
	waiting := slices.IndexFunc(f.Pods, func(p corev1.Pod) bool { return waits(&p) && !foreign(&p) && podScheduled(&p) != nil })
	switch stale := condition != nil && condition.Status == metav1.ConditionTrue; {
	case complete:
		if condition == nil {
			condition = &metav1.Condition{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonScheduled, LastTransitionTime: lastBound(f.Pods)}
		}
	case waiting >= 0 && (condition == nil || stale || condition.Reason == corev1.PodReasonUnschedulable):
		why := podScheduled(&f.Pods[waiting])
		condition = &metav1.Condition{Status: metav1.ConditionFalse, Reason: why.Reason, Message: why.Message, LastTransitionTime: why.LastTransitionTime}
	case stale:
		condition = nil
	}
	if condition != nil {
		condition.Type, condition.ObservedGeneration = v1alpha1.ConditionPodGroupScheduled, f.Group.Generation
		s.Conditions = []metav1.Condition{*condition}
	}
	if f.Other.Source.ShowsPhase() || s.Phase != "" {
		return
	}
	switch {
	case complete && c.running > 0:
		s.Phase = v1alpha1.PodGroupRunning
	case complete:
		s.Phase = v1alpha1.PodGroupFinished
	case condition != nil:
		s.Phase = v1alpha1.PodGroupPending
	}
}

// lastBound returns when the last of the pods was bound.
func lastBound(pods []corev1.Pod) metav1.Time {
	var last metav1.Time
	for i := range pods {
		last = metav1.NewTime(latest(last.Time, bound(&pods[i])))
	}
	return last
}

// groupOf reads about the group in which a pod counts; nil if it counts in none. missing is the name of the group that the
// pod names first, if it does not exist or is not the one for which the pod was bound.
func groupOf(ctx context.Context, r Reader, pod *corev1.Pod) (f *Facts, missing string, err error) {
	for _, key := range api.GroupsNamedBy(pod) {
		_, name, _ := strings.Cut(key.Name, "/")
		one := r
		one.Source = &key.Source
		f, err := one.Group(ctx, name)
		switch {
		case err == nil && f.isMember(pod):
			return f, "", nil
		case err != nil && !apierrors.IsNotFound(err):
			return nil, "", err
		case err == nil && f.Other != nil && f.Other.Basic:
		case missing == "":
			missing = name
		}
	}
	return nil, missing, nil
}

const (
	adviceBasic       = "\"kubectl batch why pod/NAME\" explains a pod of it."
	adviceNoneReadsIt = "Check whether the scheduler runs, and whether its policy lists the source of the group in groupSources."
)
