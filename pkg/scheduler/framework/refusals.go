// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"cmp"
	"maps"
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// Refusal is what a plugin refuses and why. Both are from small sets: names of plugins (or one of api.RefusedBy...), and
// reasons of package v1alpha1, names of api.UnfitReason, or one of the reasons below.
type Refusal struct{ Plugin, Reason string }

// Reasons of refusals at the extension points that answer yes or no, or vote.
const (
	QueueOverused      = "QueueOverused"
	VictimRejected     = "VictimRejected"
	PlanRejected       = "PlanRejected"
	PlanInfeasible     = "PlanInfeasible"
	EvictionNotAllowed = "EvictionNotAllowed"
	PodNotEvictable    = "PodNotEvictable"
)

// RefusalCount is a refusal with how often it occurred in a session.
type RefusalCount struct {
	Refusal
	Count int
}

// Refusals counts the refusals of the session: each reason once for each pending job that it applies to, however many
// nodes it applies to, and each vote against a queue, a victim, a plan or an eviction. They are sorted by plugin, then by
// reason. The slice is valid until the next session counts.
func (ssn *Session) Refusals() []RefusalCount {
	counts := ssn.memory.refusals
	clear(counts)
	countLinks(counts, ssn.overused, QueueOverused)
	countLinks(counts, ssn.preemptable, VictimRejected)
	countLinks(counts, ssn.reclaimable, VictimRejected)
	countLinks(counts, ssn.validatePlan, PlanRejected)
	countLinks(counts, ssn.preFilterPlan, PlanInfeasible)
	countLinks(counts, ssn.evictionAllowed, EvictionNotAllowed)
	countLinks(counts, ssn.nonEvictable, PodNotEvictable)
	CountOutcomes(ssn, func(o *Outcome, _ *api.QueueInfo, jobs int) { o.count(counts, jobs) })
	list := ssn.memory.refusalList[:0]
	for refusal, n := range counts {
		list = append(list, RefusalCount{refusal, n})
	}
	slices.SortFunc(list, func(a, b RefusalCount) int {
		return cmp.Or(cmp.Compare(a.Plugin, b.Plugin), cmp.Compare(a.Reason, b.Reason))
	})
	ssn.memory.refusalList = list
	return list
}

func countLinks[F any](counts map[Refusal]int, c chain[F], reason string) {
	for i := range c {
		if c[i].refusals > 0 {
			counts[Refusal{c[i].plugin, reason}] += c[i].refusals
		}
	}
}

// count adds the refusals of jobs with the outcome, each once for each job.
func (o *Outcome) count(counts map[Refusal]int, jobs int) {
	if len(o.Tasks) == 0 && o.Job != nil {
		eachRefusal(o.Job, func(r Refusal) { counts[r] += jobs })
		return
	}
	seen := map[Refusal]bool{}
	add := func(r Refusal) { seen[r] = true }
	if o.Job != nil {
		eachRefusal(o.Job, add)
	}
	for verdict := range maps.Values(o.Tasks) {
		eachRefusal(verdict, add)
	}
	for r := range seen {
		counts[r] += jobs
	}
}

// eachRefusal visits the refusals of a verdict, each once.
func eachRefusal(v *api.Verdict, visit func(Refusal)) {
	if v.Plugin != "" {
		visit(Refusal{v.Plugin, v.Reason})
	}
	unfit := v.Nodes.Unfit
	for i := range unfit {
		sameBefore := slices.ContainsFunc(unfit[:i], func(other api.UnfitCount) bool {
			return other.Plugin == unfit[i].Plugin && other.Reason == unfit[i].Reason
		})
		if !sameBefore && unfit[i].Plugin != "" {
			visit(Refusal{unfit[i].Plugin, unfit[i].Reason.String()})
		}
	}
}
