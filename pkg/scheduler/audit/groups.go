// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// groups implements api.Groups. It derives the queues of groups of other APIs from all pods of the model.
type groups struct{ a *audit }

// Group implements api.Groups.
func (g groups) Group(key api.GroupKey) *api.Group { return g.a.i.GroupsByKey[key] }

// GroupWithUID implements api.Groups.
func (g groups) GroupWithUID(uid types.UID) *api.Group { return g.a.i.GroupsByUID[uid] }

// QueueOf implements api.Groups.
func (g groups) QueueOf(group *api.Group) api.QueueID {
	if group.Spec.Queue != "" {
		return api.QueueID(group.Spec.Queue)
	}
	if group.Source == api.SourceOwn {
		return g.a.i.DefaultQueue
	}
	if len(g.a.i.ChangedJobs) > 0 { // the next Recompute derives it
		return g.a.i.Groups.QueueOf(group)
	}
	var bound, named []api.QueueID
	for _, t := range g.a.c.Tasks() {
		commitment := api.CommitmentOf(t.Pod)
		if t.Tracking.Bind != nil {
			commitment = t.Tracking.Bind
		}
		label := api.QueueID(t.Pod.Labels[v1alpha1.LabelQueue])
		switch {
		case !slices.Contains(g.a.i.SchedulerNames, t.Pod.Spec.SchedulerName):
		case commitment != nil && commitment.GroupUID == group.UID && t.Pod.Namespace == group.Namespace:
			bound, named = append(bound, commitment.Queue), append(named, label)
		case commitment == nil && g.names(t, group):
			named = append(named, label)
		}
	}
	namespace := api.QueueID(g.a.i.Namespaces[group.Namespace].Labels[v1alpha1.LabelDefaultQueue])
	for _, names := range [][]api.QueueID{bound, named, {namespace}} {
		names = slices.DeleteFunc(names, func(name api.QueueID) bool { return name == "" })
		if len(names) > 0 {
			return slices.Min(names)
		}
	}
	return g.a.i.DefaultQueue
}

// names reports whether a pod that was not bound for a group is a member of the group.
func (g groups) names(t *api.TaskInfo, group *api.Group) bool {
	m := api.MembershipOf(t.Pod, nil, ruleOf(g.a))
	return api.GroupKey{Source: m.Source, Name: m.Group} == group.Key()
}
