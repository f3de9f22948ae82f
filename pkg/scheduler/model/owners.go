// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// The objects that make gangs of their pods. A pod whose object is not known waits, until an event shows the object, or that
// it does not exist. The latter counts for the pods that exist by then, and not for later ones: an object of the same name
// may have been created meanwhile.

// ownerTable holds these objects, and the tasks that name them. It implements api.Owners.
type ownerTable struct {
	rules api.OwnerRules

	byKey map[api.OwnerKey]*api.Owner
	tasks map[api.OwnerKey]map[types.UID]*ownedTasks // by the UID that the pods name; empty if they name none

	// missing are the objects that tasks wait for; asked is set if OwnerEvents.Missing has returned them.
	missing map[api.OwnerRef]bool
	asked   bool
}

// ownedTasks are the tasks that name one object.
type ownedTasks struct {
	ref   api.OwnerRef
	tasks map[api.TaskID]*api.TaskInfo
}

var _ api.Owners = (*ownerTable)(nil)

func newOwnerTable(rules api.OwnerRules) *ownerTable {
	if rules == nil {
		return nil
	}
	return &ownerTable{
		rules: rules, byKey: map[api.OwnerKey]*api.Owner{}, tasks: map[api.OwnerKey]map[types.UID]*ownedTasks{},
		missing: map[api.OwnerRef]bool{},
	}
}

// OwnerOf implements api.OwnerRules.
func (ot *ownerTable) OwnerOf(pod *v1.Pod) (api.OwnerRef, bool) { return ot.rules.OwnerOf(pod) }

// Owner implements api.Owners.
func (ot *ownerTable) Owner(ref api.OwnerRef) *api.Owner {
	if o := ot.byKey[ref.OwnerKey]; o != nil && ref.Names(o.UID) {
		return o
	}
	return nil
}

// Gone implements api.Owners.
func (ot *ownerTable) Gone(pod *v1.Pod) bool {
	ref, _ := ot.rules.OwnerOf(pod)
	of := ot.tasks[ref.OwnerKey][ref.UID]
	if of == nil {
		return false
	}
	t := of.tasks[api.TaskID(pod.UID)]
	return t != nil && t.Tracking.OwnerGone
}

// name records the object that t names.
func (ot *ownerTable) name(t *api.TaskInfo) {
	ref, found := ot.rules.OwnerOf(t.Pod)
	if before := t.Tracking.Owner; before != nil {
		if found && *before == ref {
			return
		}
		ot.forget(t)
	}
	if !found {
		return
	}
	byUID := ot.tasks[ref.OwnerKey]
	if byUID == nil {
		byUID = map[types.UID]*ownedTasks{}
		ot.tasks[ref.OwnerKey] = byUID
	}
	of := byUID[ref.UID]
	if of == nil {
		of = &ownedTasks{ref, map[api.TaskID]*api.TaskInfo{}}
		byUID[ref.UID] = of
	}
	of.tasks[t.ID] = t
	t.Tracking.Owner = &of.ref
	if ot.Owner(ref) == nil {
		ot.setMissing(ref, true)
	}
}

// forget removes t from the tasks of the object that it names, if there is one.
func (ot *ownerTable) forget(t *api.TaskInfo) {
	if t.Tracking.Owner == nil {
		return
	}
	ref := *t.Tracking.Owner
	t.Tracking.Owner, t.Tracking.OwnerGone = nil, false
	byUID := ot.tasks[ref.OwnerKey]
	delete(byUID[ref.UID].tasks, t.ID)
	if len(byUID[ref.UID].tasks) > 0 {
		return
	}
	delete(byUID, ref.UID)
	if len(byUID) == 0 {
		delete(ot.tasks, ref.OwnerKey)
	}
	ot.setMissing(ref, false)
}

func (ot *ownerTable) setMissing(ref api.OwnerRef, missing bool) {
	if ot.missing[ref] == missing {
		return
	}
	ot.asked = false
	if missing {
		ot.missing[ref] = true
	} else {
		delete(ot.missing, ref)
	}
}

// naming returns the tasks that name an object, in the order of the UIDs that they name and of their own.
func (ot *ownerTable) naming(key api.OwnerKey) []*ownedTasks {
	byUID := ot.tasks[key]
	all := make([]*ownedTasks, 0, len(byUID))
	for _, uid := range slices.Sorted(maps.Keys(byUID)) {
		all = append(all, byUID[uid])
	}
	return all
}

// OwnerEvents applies to a Cluster what is known about objects that make gangs of their pods. As with Events, the functions
// may be called in any order and repeatedly.
type OwnerEvents struct{ c *Cluster }

// Owners returns the functions that apply what is known about owners of pods.
func Owners(c *Cluster) OwnerEvents { return OwnerEvents{c} }

// Set adds or updates an object that makes gangs of its pods.
func (e OwnerEvents) Set(o *api.Owner) {
	ot := e.c.jobs.owners
	if ot == nil {
		return
	}
	old := ot.byKey[o.Key()]
	ot.byKey[o.Key()] = o
	if old != nil && api.EqualOwners(old, o) {
		return
	}
	for _, of := range ot.naming(o.Key()) {
		switch {
		case of.ref.Names(o.UID):
			ot.setMissing(of.ref, false)
			setGone(of, false)
		case old != nil && of.ref.Names(old.UID):
			ot.setMissing(of.ref, true)
		default:
			continue
		}
		e.rejoin(of)
	}
}

// Delete deletes an object if it still has this UID.
func (e OwnerEvents) Delete(key api.OwnerKey, uid types.UID) {
	ot := e.c.jobs.owners
	if ot == nil || ot.byKey[key] == nil || ot.byKey[key].UID != uid {
		return
	}
	delete(ot.byKey, key)
	for _, of := range ot.naming(key) {
		if of.ref.Names(uid) {
			ot.setMissing(of.ref, true)
			e.rejoin(of)
		}
	}
}

// Gone records that the object does not exist that pods name. It counts for the pods that exist now.
func (e OwnerEvents) Gone(ref api.OwnerRef) {
	ot := e.c.jobs.owners
	if ot == nil || ot.Owner(ref) != nil {
		return
	}
	ot.setMissing(ref, false)
	if of := ot.tasks[ref.OwnerKey][ref.UID]; of != nil {
		setGone(of, true)
		e.rejoin(of)
	}
}

// Missing returns the objects that pods wait for, sorted, and whether they are others than at the last call.
func (e OwnerEvents) Missing() (refs []api.OwnerRef, changed bool) {
	ot := e.c.jobs.owners
	if ot == nil || ot.asked {
		return nil, false
	}
	ot.asked = true
	return slices.SortedFunc(maps.Keys(ot.missing), api.OwnerRef.Compare), true
}

func setGone(of *ownedTasks, gone bool) {
	for _, t := range of.tasks {
		t.Tracking.OwnerGone = gone
	}
}

// rejoin applies the membership rule again to tasks whose owner has changed.
func (e OwnerEvents) rejoin(of *ownedTasks) {
	for _, id := range slices.Sorted(maps.Keys(of.tasks)) {
		t := of.tasks[id]
		e.c.detach(t)
		e.c.jobs.join(t)
		e.c.attach(t)
	}
}
