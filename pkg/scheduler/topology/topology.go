// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package topology is the policy that the members of a gang, or of a subgroup, with a topology constraint are in one domain
// of the level that it requires, whichever action places them. It is part of every configuration.
//
// Package place searches for a domain that holds the gang. This package only refuses nodes: those that are in no domain of
// the level, and when a member has a node, those outside of its domain. So no plan, nomination or reservation can break the
// requirement, and surplus pods and replacements stay in the domain of the gang.
//
// A level that is preferred refuses no node: package place looks for the fewest domains of it. This package only keeps a gang
// from starting in several of them while it waits for one.
package topology

import (
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/nodeindex"
)

// Name is the name of the component.
const Name = api.RefusedByTopology

// Required registers the policy.
func Required() framework.ComponentSpec {
	return framework.ComponentSpec{Name: Name, New: func(framework.Environment) (framework.Plugin, framework.Action) {
		return &constraints{}, nil
	}}
}

// constraints are those of the gangs of one session.
type constraints struct {
	ssn      *framework.Session
	refusals map[refused]*api.Unfit
}

// refused is the domain that a node is not in; without a domain it is in none of the level.
type refused struct {
	level  *api.TopologyLevel
	domain *nodeindex.Domain
}

func (*constraints) Name() string { return Name }

// OnSessionOpen registers nothing if no group has a constraint.
func (r *constraints) OnSessionOpen(ssn *framework.Session) {
	if ssn.Cluster().JobTable().CountConstrained() > 0 {
		r.ssn, r.refusals = ssn, map[refused]*api.Unfit{}
		ssn.AddPredicateFn(Name, r.unfit)
		ssn.AddStartableFn(Name, r.startable)
		ssn.AddEvictionAllowedFn(Name, r.evictionAllowed)
	}
}

func (r *constraints) OnSessionClose(*framework.Session) { r.ssn, r.refusals = nil, nil }

// unfit returns why t must not run on n, or nil.
func (r *constraints) unfit(t *api.TaskInfo, n *api.NodeInfo, _ api.When) *api.Unfit {
	if t.Job == nil {
		return nil
	}
	if level := t.Job.TopologyLevel; level != nil {
		domains := r.ssn.Nodes().Domains(level)
		if unfit := r.outside(n, domains, domains.OfJob(t.Job)); unfit != nil {
			return unfit
		}
	}
	for s := t.SubGroup(); s != nil; s = s.Parent {
		if s.TopologyLevel == nil {
			continue
		}
		domains := r.ssn.Nodes().Domains(s.TopologyLevel)
		if unfit := r.outside(n, domains, domains.OfSubGroup(t.Job, s)); unfit != nil {
			return unfit
		}
	}
	return nil
}

// outside returns why a node is in no domain of a level, or not in the one where members are; nil if it may be used.
func (r *constraints) outside(n *api.NodeInfo, domains *nodeindex.Domains, members *nodeindex.Domain) *api.Unfit {
	if there := domains.Of(n); there != nil && (members == nil || there == members) {
		return nil
	}
	return r.refusal(refused{domains.Level(), members})
}

func (r *constraints) refusal(key refused) *api.Unfit {
	if r.refusals[key] == nil {
		where := "any " + key.level.Name
		if key.domain != nil {
			where = key.level.Name + " " + key.domain.Path
		}
		r.refusals[key] = &api.Unfit{Reason: api.OutsideDomain, Detail: where, Plugin: Name}
	}
	return r.refusals[key]
}
