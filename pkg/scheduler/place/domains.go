// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"cmp"
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/nodeindex"
)

// Domain is a topology domain that the tasks of a claim may be placed in; nil stands for all nodes.
type Domain struct {
	*nodeindex.Domain
	Level *api.TopologyLevel
	// Available is how many tasks like the first one of the claim fit once the resources that are being released are free,
	// and Capacity is how many fit if no member of a queue runs there.
	Available, Capacity int64
	// HoldsAll: the tasks of the claim fit, if those that are alike are counted without the others. That is necessary, and
	// if all are alike and only resources matter, it is sufficient. MayHoldAll is the same with Capacity.
	HoldsAll, MayHoldAll bool
	// Occupied: members have nodes there.
	Occupied bool

	// The rest is known of those to try only.
	parts  []part // for the level that the job prefers; nil if it prefers none
	needed int    // of the parts
	lost   int    // nodes, see nodeindex.Domains.Lost
}

// Contains reports whether a node is in the domain.
func (d *Domain) Contains(n *api.NodeInfo) bool { return d == nil || d.Domain.Contains(n) }

// RequiredLevel returns the topology level of which all tasks of the claim must be in one domain; nil if there is none. If
// members run, a pod affinity of the gang to itself needs none: the predicates know the domain.
func RequiredLevel(ssn *framework.Session, claim *api.Claim) *api.TopologyLevel {
	level := ssn.Cluster().ClassOf(claim.Tasks[0]).RequiredLevel()
	if level != nil && level.Topology == "" && claim.Job.ReadyCount() > 0 {
		return nil
	}
	return level
}

// Domains returns the domains of a level that claim could be placed in, those with the most available resources first. If
// members have nodes, that is their domain.
func Domains(ssn *framework.Session, claim *api.Claim, level *api.TopologyLevel) []*Domain {
	domains := ssn.Nodes().Domains(level)
	all := domains.All()
	pinned := domains.OfJob(claim.Job)
	if pinned != nil {
		all = []*nodeindex.Domain{pinned}
	}
	kinds := kindsOf(claim.Tasks)
	list := make([]*Domain, 0, len(all))
	available, capacity := make([]nodeindex.DomainCounts, len(kinds)), make([]nodeindex.DomainCounts, len(kinds))
	for i, k := range kinds {
		available[i], capacity[i] = domains.Available(k.task), domains.Capacity(k.task.Signature)
	}
	for _, domain := range all {
		d := &Domain{
			Domain: domain, Level: level, Available: available[0].In(domain), Capacity: capacity[0].In(domain),
			HoldsAll: true, MayHoldAll: true, Occupied: pinned != nil,
		}
		for i, k := range kinds {
			d.HoldsAll = d.HoldsAll && available[i].In(domain) >= k.count
			d.MayHoldAll = d.MayHoldAll && capacity[i].In(domain) >= k.count
		}
		if d.Available+d.Capacity > 0 || len(all) == 1 {
			list = append(list, d)
		}
	}
	slices.SortFunc(list, func(a, b *Domain) int {
		return cmp.Or(cmp.Compare(b.Available, a.Available), cmp.Compare(b.Capacity, a.Capacity), cmp.Compare(a.Path, b.Path))
	})
	return list
}

// kindOfTasks are tasks that are alike.
type kindOfTasks struct {
	task  *api.TaskInfo
	count int64
}

func (k kindOfTasks) alike(o kindOfTasks) bool {
	return k.task.Signature == o.task.Signature && k.task.Priority == o.task.Priority
}

func kindsOf(tasks []*api.TaskInfo) []kindOfTasks {
	var kinds []kindOfTasks
	for _, t := range tasks {
		at := slices.IndexFunc(kinds, kindOfTasks{task: t}.alike)
		if at < 0 {
			at = len(kinds)
			kinds = append(kinds, kindOfTasks{task: t})
		}
		kinds[at].count++
	}
	return kinds
}

// maxDomainTries is how many domains are tried for a claim, and largestTries how many of them are the ones with the most
// available resources, if more hold the claim by the counts.
const (
	maxDomainTries = 16
	largestTries   = 4
)

// toTry returns the domains of a claim in the order in which they are tried; the tasks are those of the claim, followed by
// their substitutes. For a pod affinity these are all, the one with the most available resources first, because pods of
// other jobs may follow. For a level of a topology these are the domains that hold the claim by the counts, in the order of
// inOrder. If no domain holds the claim, the one with the most available resources is tried, so that there is a reason to
// report.
func toTry(ssn *framework.Session, claim *api.Claim, level *api.TopologyLevel, tasks []*api.TaskInfo) []*Domain {
	list := Domains(ssn, claim, level)
	if level.Topology == "" || len(list) == 0 {
		return list
	}
	if enough := inOrder(ssn, list, newPreferred(ssn, claim), tasks); len(enough) > 0 {
		return enough
	}
	return list[:1]
}

// inOrder returns those domains of a level that hold the claim by the counts:
//
//  1. where most of the substitutes fit too: they will not be placed elsewhere
//  2. with the fewest domains of the preferred level
//  3. with the fewest nodes lost: those in domains where no member of a queue runs and that would not be whole any more
//  4. with the least left over
//  5. by their paths
//
// Of too many domains, it returns the first ones and then those with the most available: tasks of several kinds may fit one
// kind by one, and not together.
//
// For example, racks with 4, 4 and 2 free nodes: a gang of 2 gets the rack of 2, and leaves both others whole.
func inOrder(ssn *framework.Session, list []*Domain, p *preferred, tasks []*api.TaskInfo) []*Domain {
	enough := slices.DeleteFunc(slices.Clone(list), func(d *Domain) bool { return !d.HoldsAll })
	if len(enough) == 0 {
		return nil
	}
	alike := int64(0)
	for _, t := range tasks {
		if t.Signature == tasks[0].Signature {
			alike++
		}
	}
	domains := ssn.Nodes().Domains(enough[0].Level)
	for _, d := range enough {
		if p != nil {
			d.parts, d.needed = p.within(d.Domain, d.Level)
		}
		if p == nil || d.needed > len(d.parts) {
			d.lost = domains.Lost(d.Domain)
		} else {
			d.lost = p.lost(d.parts[:d.needed])
		}
	}
	slices.SortFunc(enough, func(a, b *Domain) int {
		return cmp.Or(
			cmp.Compare(min(b.Available, alike), min(a.Available, alike)),
			cmp.Compare(a.needed, b.needed),
			cmp.Compare(a.lost, b.lost),
			cmp.Compare(a.Available, b.Available),
			cmp.Compare(a.Path, b.Path))
	})
	if len(enough) > maxDomainTries {
		rest := enough[maxDomainTries-largestTries:]
		slices.SortStableFunc(rest, func(a, b *Domain) int { return cmp.Compare(b.Available, a.Available) })
	}
	return enough[:min(len(enough), maxDomainTries)]
}
