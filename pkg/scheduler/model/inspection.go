// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// Inspection is the memory of a Cluster that sessions do not read, for package audit. Its maps and slices
// belong to the model. Read only.
type Inspection struct {
	SchedulerNames []string
	DefaultQueue   api.QueueID

	Nodes       map[string]*api.NodeInfo // by name, also those that do not exist
	FreeIndexes []int                    // of Cluster.Nodes

	GroupSources    api.GroupSources
	Groups          api.Groups
	GroupsByUID     map[types.UID]*api.Group
	GroupsByKey     map[api.GroupKey]*api.Group
	NativeTasks     map[string]map[api.TaskID]*api.TaskInfo // by the namespace/name of the native group that they name and do not count in
	OwnerRules      api.OwnerRules                          // nil if no kind of owners makes gangs; then the next three are nil
	Owners          map[api.OwnerKey]*api.Owner
	OwnedTasks      map[api.OwnerRef]map[api.TaskID]*api.TaskInfo // by the object that they name
	MissingOwners   map[api.OwnerRef]bool
	KueueGroups     bool
	PriorityClasses map[string]int32
	OrphanedJobs    map[types.UID]map[api.JobID]*api.JobInfo // by UID of the deleted group
	ChangedJobs     []*api.JobInfo                           // since the last Recompute
	WaitingJobs     map[*api.JobInfo]int64                   // with their JobInfo.Created when they were sorted

	Signatures map[string]*api.Signature // by key
	// TermReferences counts the signatures with each affinity term; IndexedTerms is how many terms the lookup by
	// label finds.
	TermReferences map[string]int
	IndexedTerms   int

	// Devices are the devices of nodes that device classes provide as resources, by node; DeviceDimensions are those
	// resources.
	Devices          map[string]v1.ResourceList
	DeviceDimensions []int
	// DeviceClaims are the claims whose devices count, by namespace/name.
	DeviceClaims map[string]*api.DeviceClaim

	Namespaces map[string]Namespace
	Budgets    map[string]map[string]*Budget // by namespace and name
	// UnconfirmedEvictions are decided and not yet shown by the API server.
	UnconfirmedEvictions map[*api.TaskInfo]struct{}

	// RestoredBinds and RestoredEvictions are in flight since a previous model; InFlight has all.
	RestoredBinds     map[api.TaskID]InFlightBind
	RestoredEvictions map[api.TaskID]struct{}
}

// Inspect returns the memory of a Cluster.
func Inspect(c *Cluster) Inspection {
	terms := c.signatures.terms
	i := Inspection{
		SchedulerNames:       c.schedulerNames,
		DefaultQueue:         c.jobs.groups.defaultQueue,
		Nodes:                c.nodes.byName,
		FreeIndexes:          c.nodes.freeIndex,
		GroupSources:         c.jobs.sources,
		Groups:               &c.jobs.groups,
		NativeTasks:          c.jobs.native,
		GroupsByUID:          c.jobs.groups.byUID,
		GroupsByKey:          c.jobs.groups.byKey,
		KueueGroups:          c.jobs.kueueGroups,
		PriorityClasses:      c.jobs.groups.priorities,
		OrphanedJobs:         c.jobs.orphaned,
		ChangedJobs:          c.jobs.changed,
		WaitingJobs:          c.jobs.waiting.created,
		Signatures:           c.signatures.byKey,
		TermReferences:       map[string]int{},
		IndexedTerms:         len(terms.others),
		Devices:              c.nodes.devices,
		DeviceDimensions:     c.signatures.deviceDimensions,
		DeviceClaims:         map[string]*api.DeviceClaim{},
		Namespaces:           c.namespaces.byName,
		Budgets:              c.budgets.budgets,
		UnconfirmedEvictions: c.budgets.unconfirmed,
		RestoredBinds:        c.inFlight.binds,
		RestoredEvictions:    c.inFlight.evictions,
	}
	if ot := c.jobs.owners; ot != nil {
		i.OwnerRules, i.Owners, i.MissingOwners = ot.rules, ot.byKey, ot.missing
		i.OwnedTasks = map[api.OwnerRef]map[api.TaskID]*api.TaskInfo{}
		for _, byUID := range ot.tasks {
			for _, of := range byUID {
				i.OwnedTasks[of.ref] = of.tasks
			}
		}
	}
	for key, claim := range c.claims.byKey {
		if claim.shown != nil {
			i.DeviceClaims[key] = claim.shown
		}
	}
	for key, term := range terms.byKey {
		i.TermReferences[key] = term.refs
	}
	for _, list := range terms.byLabel {
		i.IndexedTerms += len(list)
	}
	return i
}
