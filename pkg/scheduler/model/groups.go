// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model/grouptree"
)

// groupTable holds the PodGroups of all sources, and the priority classes. It implements api.Groups.
type groupTable struct {
	defaultQueue api.QueueID
	byUID        map[types.UID]*api.Group
	byKey        map[api.GroupKey]*api.Group
	members      memberQueues
	priorities   map[string]int32 // of priority classes
	trees        grouptree.Trees  // of the groups that are in one
}

var _ api.Groups = (*groupTable)(nil)

// GroupsOf returns the groups of all sources.
func GroupsOf(c *Cluster) api.Groups { return &c.jobs.groups }

func newGroupTable(defaultQueue api.QueueID) groupTable {
	return groupTable{
		defaultQueue: defaultQueue,
		byUID:        map[types.UID]*api.Group{},
		byKey:        map[api.GroupKey]*api.Group{},
		members:      memberQueues{},
		priorities:   map[string]int32{},
	}
}

// set adds or replaces a group, and returns the previous one with this key, or nil.
func (gt *groupTable) set(key api.GroupKey, g *api.Group) *api.Group {
	old := gt.byKey[key]
	if old != nil && old.UID != g.UID {
		delete(gt.byUID, old.UID)
		delete(gt.members, old.UID)
	}
	gt.byUID[g.UID], gt.byKey[key] = g, g
	return old
}

// remove deletes the group with this key if it has this UID, and returns it, or nil.
func (gt *groupTable) remove(key api.GroupKey, uid types.UID) *api.Group {
	delete(gt.byUID, uid)
	delete(gt.members, uid)
	old := gt.byKey[key]
	if old == nil || old.UID != uid {
		return nil
	}
	delete(gt.byKey, key)
	return old
}

// Group implements api.Groups.
func (gt *groupTable) Group(key api.GroupKey) *api.Group { return gt.byKey[key] }

// GroupWithUID implements api.Groups.
func (gt *groupTable) GroupWithUID(uid types.UID) *api.Group { return gt.byUID[uid] }

// QueueOf implements api.Groups.
func (gt *groupTable) QueueOf(g *api.Group) api.QueueID {
	if g.Spec.Queue != "" {
		return api.QueueID(g.Spec.Queue)
	}
	if of, ok := gt.members[g.UID]; ok {
		return of.queue
	}
	return gt.defaultQueue
}

// priorityOf returns the priority of the group, else of its priority class; nil without group, or if it has neither.
func (gt *groupTable) priorityOf(g *api.Group) *int32 {
	switch {
	case g == nil:
		return nil
	case g.Priority != nil:
		return g.Priority
	case g.Spec.PriorityClassName == "":
		return nil
	}
	if value, ok := gt.priorities[g.Spec.PriorityClassName]; ok {
		return &value
	}
	return nil
}
