// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// groupTable holds the PodGroups and priority classes.
type groupTable struct {
	defaultQueue api.QueueID
	byUID        map[types.UID]*v1alpha1.PodGroup
	byKey        map[string]*v1alpha1.PodGroup // by namespace/name
	priorities   map[string]int32              // of priority classes
}

func newGroupTable(defaultQueue api.QueueID) groupTable {
	return groupTable{
		defaultQueue: defaultQueue,
		byUID:        map[types.UID]*v1alpha1.PodGroup{},
		byKey:        map[string]*v1alpha1.PodGroup{},
		priorities:   map[string]int32{},
	}
}

// set adds or replaces a group, and returns the previous one with this name, or nil.
func (gt *groupTable) set(key string, g *v1alpha1.PodGroup) *v1alpha1.PodGroup {
	old := gt.byKey[key]
	if old != nil && old.UID != g.UID {
		delete(gt.byUID, old.UID)
	}
	gt.byUID[g.UID], gt.byKey[key] = g, g
	return old
}

// remove reports whether the group with this name had this UID.
func (gt *groupTable) remove(key string, uid types.UID) bool {
	delete(gt.byUID, uid)
	old := gt.byKey[key]
	if old == nil || old.UID != uid {
		return false
	}
	delete(gt.byKey, key)
	return true
}

// live returns namespace/name and queue of the group with a UID, if there is one.
func (gt *groupTable) live(uid types.UID) (key string, queue api.QueueID, ok bool) {
	g := gt.byUID[uid]
	if g == nil {
		return "", "", false
	}
	return g.Namespace + "/" + g.Name, gt.queueOf(g), true
}

func (gt *groupTable) queueOf(g *v1alpha1.PodGroup) api.QueueID {
	if g.Spec.Queue == "" {
		return gt.defaultQueue
	}
	return api.QueueID(g.Spec.Queue)
}

// priorityOf returns the priority of the group's priority class; nil without group or class.
func (gt *groupTable) priorityOf(g *v1alpha1.PodGroup) *int32 {
	if g == nil || g.Spec.PriorityClassName == "" {
		return nil
	}
	if value, ok := gt.priorities[g.Spec.PriorityClassName]; ok {
		return &value
	}
	return nil
}
