// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	v1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// owners implements api.Owners from the objects of the model and the flags of its tasks.
type owners struct {
	api.OwnerRules
	a *audit
}

// Owner implements api.Owners.
func (o owners) Owner(ref api.OwnerRef) *api.Owner {
	if found := o.a.i.Owners[ref.OwnerKey]; found != nil && (ref.UID == "" || ref.UID == found.UID) {
		return found
	}
	return nil
}

// Gone implements api.Owners.
func (o owners) Gone(pod *v1.Pod) bool { return o.a.c.Tasks()[api.TaskID(pod.UID)].Tracking.OwnerGone }

// ruleOf returns the rule that assigns the tasks of the model to their jobs.
func ruleOf(a *audit) api.MembershipRule {
	rule := api.MembershipRule{DefaultQueue: a.i.DefaultQueue, Sources: a.i.GroupSources, Groups: groups{a}, KueueGroups: a.i.KueueGroups}
	if a.i.OwnerRules != nil {
		rule.Owners = owners{a.i.OwnerRules, a}
	}
	return rule
}

// taskOwner checks what is recorded about the object that a task of the scheduler names.
func taskOwner(a *audit, what string, t *api.TaskInfo) {
	var ref api.OwnerRef
	found := false
	if a.i.OwnerRules != nil {
		ref, found = a.i.OwnerRules.OwnerOf(t.Pod)
	}
	if !found {
		expect(a, what+" names an owner", t.Tracking.Owner, nil)
		expect(a, what+" has an owner that is gone", t.Tracking.OwnerGone, false)
		return
	}
	if t.Tracking.Owner == nil || *t.Tracking.Owner != ref || a.i.OwnedTasks[ref][t.ID] != t {
		a.report(what + ": is not known by its owner " + ref.Name)
	}
	known := owners{a.i.OwnerRules, a}.Owner(ref) != nil
	expect(a, what+" has an owner that is known and gone", known && t.Tracking.OwnerGone, false)
	if !known && !t.Tracking.OwnerGone {
		expect(a, what+" owner is missing", a.i.MissingOwners[ref], true)
	}
}

// auditOwners checks the records of objects that make gangs of their pods.
func auditOwners(a *audit) {
	for ref, tasks := range a.i.OwnedTasks {
		expect(a, "owner "+ref.Name+" has tasks", len(tasks) > 0, true)
		for id, t := range tasks {
			expect(a, "owner "+ref.Name+" has the task "+string(id), a.c.Tasks()[id], t)
		}
	}
	for ref := range a.i.MissingOwners {
		expect(a, "missing owner "+ref.Name+" has tasks", len(a.i.OwnedTasks[ref]) > 0, true)
		expect(a, "missing owner "+ref.Name+" is known", owners{a.i.OwnerRules, a}.Owner(ref) != nil, false)
	}
}
