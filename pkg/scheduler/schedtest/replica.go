// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package schedtest

import (
	"fmt"
	"math/rand"
	"slices"

	"github.com/go-logr/logr"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/audit"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

// replica is one model of the cluster with the events that it has not applied.
type replica struct {
	title     string
	model     *model.Cluster
	profile   *framework.Profile // nil for the model without sessions
	log       logr.Logger
	pending   []event
	cooldowns map[api.JobID]cooldown
}

// replicas are models of one cluster that must stay equal. The sessions of the shuffled one know nothing about refusals of
// earlier sessions, so that each scenario also tests framework.Backlog.
type replicas struct {
	ordered, shuffled, sessionless *replica
	random                         *rand.Rand
}

func newReplicas(t T, registry *framework.Registry, policy *conf.Configuration, handle framework.Handle, cluster model.Options, seed int64) replicas {
	t.Helper()
	replicaOf := func(title string, sessions bool) *replica {
		r := &replica{title: title, log: logr.Discard(), cooldowns: map[api.JobID]cooldown{}, model: model.NewCluster(cluster)}
		if sessions {
			profile, err := registry.NewProfile(policy, handle)
			if err != nil {
				t.Fatal(err)
			}
			r.profile = profile
		}
		return r
	}
	rs := replicas{
		ordered:     replicaOf("with the objects in order", true),
		shuffled:    replicaOf("with the objects shuffled", true),
		sessionless: replicaOf("without sessions", false),
		random:      rand.New(rand.NewSource(seed)),
	}
	rs.shuffled.profile.TryAll()
	return rs
}

func (rs *replicas) all() []*replica { return []*replica{rs.ordered, rs.shuffled, rs.sessionless} }

func (rs *replicas) enqueue(e event) {
	for _, r := range rs.all() {
		r.pending = append(r.pending, e)
	}
}

// apply applies the pending events to the models.
func (rs *replicas) apply(t T) {
	t.Helper()
	rs.shuffled.pending = rs.shuffle(rs.shuffled.pending)
	for _, r := range rs.all() {
		for _, e := range r.pending {
			e.apply(r.model)
		}
		r.pending = nil
		r.model.Events().Recompute()
		r.audit(t, "after the events")
	}
}

// shuffle keeps the last event of each key, in random order.
func (rs *replicas) shuffle(events []event) []event {
	last := map[string]int{}
	for i, e := range events {
		last[e.key] = i
	}
	var kept []event
	for i, e := range events {
		if last[e.key] == i {
			kept = append(kept, e)
		}
	}
	rs.random.Shuffle(len(kept), func(i, j int) { kept[i], kept[j] = kept[j], kept[i] })
	return kept
}

func (r *replica) audit(t T, when string) {
	t.Helper()
	if err := audit.Model(r.model); err != nil {
		t.Fatalf("%s, the model %s: %v", when, r.title, err)
	}
}

// session runs the actions once and returns the recorded cycle.
func (r *replica) session(t T, s *Scenario) *cycle {
	t.Helper()
	result := &cycle{cluster: s, model: r.model, decided: map[api.TaskID]bool{}}
	ssn, _, err := r.profile.Run(t.Context(), r.model, result, r.log, framework.Hooks{
		Watch: []framework.WatchFn{func(ssn *framework.Session, decisions []api.Decision) {
			r.checkPlan(ssn, decisions, result)
		}},
		AfterOpen: func(ssn *framework.Session) {
			r.audit(t, "after the session has opened")
			if r == s.replicas.shuffled { // the other one logs what plugins answer
				checkClasses(result, ssn)
			}
		},
		AfterAction: func(_ *framework.Session, action framework.Action, err error) error {
			if err != nil {
				return fmt.Errorf("action %s: %w", action.Name(), err)
			}
			r.audit(t, "after action "+action.Name())
			result.check(action.Name())
			return nil
		},
		BeforeClose: result.observe,
	})
	if err != nil {
		t.Fatal(err)
	}
	result.explain(ssn)
	result.wake = ssn.Wake()
	result.refusals = slices.DeleteFunc(slices.Clone(ssn.Refusals()), ofCandidates)
	r.audit(t, "after the session")
	result.checkGangs()
	result.checkEvictions()
	if len(result.faults) > 0 {
		t.Fatalf("%s:\n%s\nthe transcript is\n%s", r.title, lines(result.faults), result.transcript())
	}
	return result
}

// ofCandidates reports whether a refusal is counted while victims are searched: how many candidates are asked about may
// depend on the order of objects, unlike the plan.
func ofCandidates(r framework.RefusalCount) bool {
	return slices.Contains([]string{
		framework.VictimRejected, framework.PlanRejected, framework.PlanInfeasible, framework.EvictionNotAllowed, framework.PodNotEvictable,
	}, r.Reason)
}
