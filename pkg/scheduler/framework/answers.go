// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"strconv"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// logAnswers wraps functions at extension points so that they log their answers: rejected plans at V(1), other refusals
// that Session.Refusals counts at V(4), all other answers and scores at V(5). Orders are not logged, and neither are
// answers that the node indexes remember. Functions are wrapped only if the verbosity is enabled when the session opens.
func logAnswers(ssn *Session) {
	if !ssn.Log.V(1).Enabled() {
		return
	}
	wrap(ssn.validatePlan, func(plugin string, fn PlanFn) PlanFn {
		return func(claim *api.Claim) bool {
			valid := fn(claim)
			if !valid {
				ssn.Log.V(1).Info("Plan dropped", "job", klog.KObj(claim.Job), "plugin", plugin, "reason", PlanRejected)
			}
			return valid
		}
	})
	if ssn.Log.V(4).Enabled() {
		logVotes(ssn)
	}
	if ssn.Log.V(5).Enabled() {
		logTests(ssn)
		logNodes(ssn)
	}
}

func wrap[F any](c chain[F], around func(plugin string, fn F) F) {
	for i := range c {
		c[i].fn = around(c[i].plugin, c[i].fn)
	}
}

// logAnswer logs one answer. The refusal is one of the reasons of refusals, empty if the answer refuses nothing.
func logAnswer(log logr.Logger, plugin, point, answer, refusal string) {
	if refusal != "" {
		log.V(4).Info("Plugin refused", "plugin", plugin, "point", point, "reason", refusal)
		return
	}
	log.V(5).Info("Plugin answered", "plugin", plugin, "point", point, "answer", answer)
}

// reasonIf returns the reason if the answer refuses, else nothing.
func reasonIf(refuses bool, reason string) string {
	if refuses {
		return reason
	}
	return ""
}

// logVotes wraps the functions whose answers Session.Refusals counts.
func logVotes(ssn *Session) {
	wrap(ssn.overused, func(plugin string, fn QueueFn) QueueFn {
		return func(q *api.QueueInfo, claim *api.Claim) bool {
			overused := fn(q, claim)
			log := ssn.Log.WithValues("job", klog.KObj(claim.Job), "queue", klog.KRef("", string(q.ID)))
			logAnswer(log, plugin, "Overused", strconv.FormatBool(overused), reasonIf(overused, QueueOverused))
			return overused
		}
	})
	wrap(ssn.preFilterPlan, func(plugin string, fn PlanFn) PlanFn {
		return func(claim *api.Claim) bool {
			feasible := fn(claim)
			log := ssn.Log.WithValues("job", klog.KObj(claim.Job))
			logAnswer(log, plugin, "PreFilterPlan", strconv.FormatBool(feasible), reasonIf(!feasible, PlanInfeasible))
			return feasible
		}
	})
	wrap(ssn.nonEvictable, func(plugin string, fn TaskFn) TaskFn {
		return func(t *api.TaskInfo) bool {
			protected := fn(t)
			log := ssn.Log.WithValues("pod", klog.KObj(t.Pod))
			logAnswer(log, plugin, "NonEvictable", strconv.FormatBool(protected), reasonIf(protected, PodNotEvictable))
			return protected
		}
	})
	wrap(ssn.evictionAllowed, logged(ssn, "EvictionAllowed", EvictionNotAllowed))
	wrap(ssn.preemptable, loggedVictims(ssn, "Preemptable"))
	wrap(ssn.reclaimable, loggedVictims(ssn, "Reclaimable"))
}

// loggedVictims returns what wraps functions that vote on victims.
func loggedVictims(ssn *Session, point string) func(string, VictimFn) VictimFn {
	return func(plugin string, fn VictimFn) VictimFn {
		return func(claim *api.Claim, unit api.Unit) api.Vote {
			vote := fn(claim, unit)
			log := ssn.Log.WithValues("job", klog.KObj(claim.Job), "victim", klog.KObj(unit.Job), "pod", klog.KObj(unit.Tasks[0].Pod), "pods", len(unit.Tasks))
			logAnswer(log, plugin, point, vote.String(), reasonIf(vote == api.Reject, VictimRejected))
			return vote
		}
	}
}

// logged returns what wraps functions that answer about a job. The reason is that of the answer false; it may be empty.
func logged(ssn *Session, point, reason string) func(string, TestFn) TestFn {
	return func(plugin string, fn TestFn) TestFn {
		return func(j *api.JobInfo) bool {
			yes := fn(j)
			logAnswer(ssn.Log.WithValues("job", klog.KObj(j)), plugin, point, strconv.FormatBool(yes), reasonIf(!yes, reason))
			return yes
		}
	}
}

// logTests wraps the functions that answer about jobs and nothing else.
func logTests(ssn *Session) {
	wrap(ssn.jobReady, logged(ssn, "JobReady", ""))
	wrap(ssn.jobPipelined, logged(ssn, "JobPipelined", ""))
	wrap(ssn.jobValid, func(plugin string, fn ValidFn) ValidFn {
		return func(j *api.JobInfo) *api.Verdict {
			verdict, answer := fn(j), "Valid"
			if verdict != nil {
				answer = verdict.Reason
			}
			logAnswer(ssn.Log.WithValues("job", klog.KObj(j)), plugin, "JobValid", answer, "")
			return verdict
		}
	})
	wrap(ssn.allocatable, func(plugin string, fn CapFn) CapFn {
		return func(j *api.JobInfo, request api.Resource, when api.When) bool {
			allows := fn(j, request, when)
			log := ssn.Log.WithValues("job", klog.KObj(j), "request", ssn.cluster.Dims().Format(request), "future", when == api.Future)
			logAnswer(log, plugin, "Allocatable", strconv.FormatBool(allows), "")
			return allows
		}
	})
}

// logNodes wraps the functions that answer about nodes.
func logNodes(ssn *Session) {
	wrap(ssn.filter, func(plugin string, fn FilterFn) FilterFn {
		return func(s *api.Signature, n *api.NodeInfo) *api.Unfit {
			unfit := fn(s, n)
			log := ssn.Log.WithValues("request", ssn.cluster.Dims().Format(s.Request), "node", klog.KRef("", n.Name))
			logAnswer(log, plugin, "Filter", fitText(unfit), "")
			return unfit
		}
	})
	wrap(ssn.predicate, func(plugin string, fn PredicateFn) PredicateFn {
		return func(t *api.TaskInfo, n *api.NodeInfo, when api.When) *api.Unfit {
			unfit := fn(t, n, when)
			log := ssn.Log.WithValues("pod", klog.KObj(t.Pod), "node", klog.KRef("", n.Name), "future", when == api.Future)
			logAnswer(log, plugin, "Predicate", fitText(unfit), "")
			return unfit
		}
	})
	wrap(ssn.nodeOrder, func(plugin string, fn ScoreFn) ScoreFn {
		return func(t *api.TaskInfo, n *api.NodeInfo) api.Score {
			score := fn(t, n)
			ssn.Log.V(5).Info("Node scored", "pod", klog.KObj(t.Pod), "node", klog.KRef("", n.Name), "plugin", plugin, "score", int64(score))
			return score
		}
	})
	wrap(ssn.evictionScore, func(plugin string, fn EvictionScoreFn) EvictionScoreFn {
		return func(t *api.TaskInfo, n *api.NodeInfo, freed api.Resource) api.Score {
			score := fn(t, n, freed)
			ssn.Log.V(5).Info("Evictions scored", "pod", klog.KObj(t.Pod), "node", klog.KRef("", n.Name), "plugin", plugin, "score", int64(score))
			return score
		}
	})
}

// fitText returns the refusal of a node as text; "Fits" if it is nil.
func fitText(unfit *api.Unfit) string {
	if unfit == nil {
		return "Fits"
	}
	return unfit.String()
}
