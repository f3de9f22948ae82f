// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/batch-scheduler/batch-scheduler/cmd/kubectl-batch/internal/othergroups"
	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/client/clientset/versioned"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// podsAsked is of how many members the events are read: the API server looks through all events of the
// namespace for each.
const podsAsked = 2

// Reader reads facts from the API server. It writes nothing.
type Reader struct {
	Core      kubernetes.Interface
	Batch     versioned.Interface
	Other     othergroups.Reader
	Namespace string
	Now       func() time.Time

	// Source is where groups are looked for; nil for everywhere.
	Source *api.GroupSource

	// Fresh has pods read from etcd. Without it they are what the API server has in its cache, which costs least
	// and is new enough for a person to read.
	Fresh bool

	// AllEvents has it wait for events, however long that takes.
	AllEvents bool
}

// Group reads what there is about a group. The error is the API server's if there is no such group, and another one if
// several APIs have a group of this name.
func (r Reader) Group(ctx context.Context, name string) (*Facts, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	f, about := &Facts{Now: r.Now()}, r.eventReader()
	about.read(ctx, "PodGroup", name)
	var others []othergroups.Group
	var otherErr, ownErr error
	var reading sync.WaitGroup
	if r.Source == nil || *r.Source != api.SourceOwn {
		reading.Go(func() { others, otherErr = r.Other.Find(ctx, r.Namespace, name) })
	}
	f.Group, f.Pods, ownErr = r.Members(ctx, name)
	reading.Wait()
	other, err := choose(r.Source, name, ownErr, others, otherErr)
	if err == nil && other != nil {
		err = readOther(ctx, r, f, other, ownErr == nil)
	}
	if err != nil {
		return nil, err
	}
	return f, r.rest(ctx, f, about)
}

// Members reads a group and its pods, by name.
func (r Reader) Members(ctx context.Context, name string) (*v1alpha1.PodGroup, []corev1.Pod, error) {
	var group *v1alpha1.PodGroup
	var pods []corev1.Pod
	var groupErr, podsErr error
	var reading sync.WaitGroup
	reading.Go(func() {
		group, groupErr = r.Batch.SchedulingV1alpha1().PodGroups(r.Namespace).Get(ctx, name, metav1.GetOptions{})
	})
	reading.Go(func() { pods, podsErr = r.pods(ctx, labels.Set{v1alpha1.LabelPodGroup: name}.String()) })
	reading.Wait()
	if err := cmp.Or(groupErr, podsErr); err != nil {
		return nil, nil, err
	}
	pods = members(pods, group)
	if s := group.Status; int(s.Pending+s.Running+s.Succeeded+s.Failed) <= len(pods) && (s.Phase != "" || len(pods) > 0) {
		return group, pods, nil
	}
	// Some members have the annotation of kube-batch instead of the label, and by that the API server cannot select.
	pods, err := r.pods(ctx, "")
	return group, members(pods, group), err
}

// Pod reads what there is about a pod, or about its group if it has one.
func (r Reader) Pod(ctx context.Context, name string) (*Facts, error) {
	pod, err := r.Core.CoreV1().Pods(r.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	f, missing, err := groupOf(ctx, r, pod)
	if f != nil || err != nil {
		return f, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	f = &Facts{Now: r.Now(), Pods: []corev1.Pod{*pod}, MissingGroup: missing}
	return f, r.rest(ctx, f, r.eventReader())
}

// Past returns what events report about a PodGroup that does not exist any more; empty if there are none, or they cannot
// be read.
func (r Reader) Past(ctx context.Context, name string) string {
	about := r.eventReader()
	about.read(ctx, "PodGroup", name)
	events, _, err := about.wait(true)
	if err != nil || len(events) == 0 {
		return ""
	}
	f := &Facts{Now: r.Now(), Events: events}
	var s textWriter
	s.add("PodGroup", r.Namespace+"/"+name+", which does not exist any more")
	s.add("History", historyOf(f).lines(f.age)...)
	return s.String()
}

func (r Reader) eventReader() *eventReader {
	return &eventReader{core: r.Core, namespace: r.Namespace, began: time.Now()}
}

// rest reads the queue, and the events of some pods.
func (r Reader) rest(ctx context.Context, f *Facts, about *eventReader) error {
	for _, p := range telling(f.Pods) {
		about.read(ctx, "Pod", p.Name)
	}
	var jobErr error
	unreadDomain := ""
	var reading sync.WaitGroup
	if f.Group != nil {
		reading.Go(func() { jobErr = r.readJob(ctx, f) })
		reading.Go(func() { f.Domain, unreadDomain = readDomain(ctx, r, f) })
	}
	queue, err := r.Batch.SchedulingV1alpha1().Queues().Get(ctx, f.queueName(), metav1.GetOptions{})
	switch {
	case err == nil:
		f.Queue = queue
	case apierrors.IsForbidden(err):
		f.Unread = append(f.Unread, fmt.Sprintf("queue %s: %v. Its shares, and the position in its order, require a ClusterRoleBinding to the role batch-scheduler-view.", f.queueName(), err))
	case !apierrors.IsNotFound(err):
		f.Unread = append(f.Unread, fmt.Sprintf("queue %s: %v", f.queueName(), err))
	}
	reading.Wait()
	if jobErr != nil {
		f.Unread = append(f.Unread, fmt.Sprintf("Job: %v", jobErr))
	}
	if unreadDomain != "" {
		f.Unread = append(f.Unread, unreadDomain)
	}
	events, all, err := about.wait(r.AllEvents)
	switch {
	case err != nil:
		f.Unread = append(f.Unread, fmt.Sprintf("events: %v", err))
	case !all:
		f.Unread = append(f.Unread, "events: reading them takes long; --events waits for them")
	}
	ours := map[types.UID]bool{}
	if f.Group != nil {
		ours[f.Group.UID] = true
	}
	for i := range f.Pods {
		ours[f.Pods[i].UID] = true
	}
	for _, e := range events { // one of the same name may have been there before
		if ours[e.InvolvedObject.UID] {
			f.Events = append(f.Events, e)
		}
	}
	return ctx.Err()
}

// pods lists the pods that the selector selects, all if it is empty, by name.
func (r Reader) pods(ctx context.Context, selector string) ([]corev1.Pod, error) {
	list, err := r.Core.CoreV1().Pods(r.Namespace).List(ctx, r.fromCache(metav1.ListOptions{LabelSelector: selector}))
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return list.Items, nil
}

// fromCache lets the API server answer a list from its cache, unless the reader wants it fresh.
func (r Reader) fromCache(options metav1.ListOptions) metav1.ListOptions {
	if !r.Fresh {
		options.ResourceVersion = "0"
	}
	return options
}

// members returns the pods that count in the group.
func members(pods []corev1.Pod, group *v1alpha1.PodGroup) []corev1.Pod {
	of := api.OwnGroup(group)
	return slices.DeleteFunc(slices.Clone(pods), func(p corev1.Pod) bool { return !api.IsMember(&p, of) })
}

// telling returns the pods whose events tell most: the first that waits and the first that does not.
func telling(pods []corev1.Pod) []corev1.Pod {
	var chosen []corev1.Pod
	for i := range pods {
		if len(chosen) == 0 || len(chosen) < podsAsked && waits(&pods[i]) != waits(&chosen[0]) {
			chosen = append(chosen, pods[i])
		}
	}
	return chosen
}
