// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package proportion is the plugin that shares the cluster between queues by weight, with
// guarantees as floors and capabilities as hard caps.
package proportion

import (
	"fmt"
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

// Name is the plugin's name in configurations.
const Name = "proportion"

// Spec registers the plugin; it takes no arguments.
func Spec() framework.PluginSpec { return SpecWith(DefaultRules()) }

// SpecWith registers it with other rules than the default ones.
func SpecWith(rules Rules) framework.PluginSpec {
	return framework.PluginSpec{
		New: func(*conf.Decoder, framework.Handle) (framework.Plugin, error) {
			return &plugin{rules: rules, cooldowns: map[api.JobID]cooldown{}}, nil
		},
		NeverPermits: []conf.Point{conf.Preemptable},
		Without:      "queues have no shares, and their capability and guarantee do not apply",
	}
}

// plugin lives as long as its configuration.
type plugin struct {
	rules     Rules
	cooldowns map[api.JobID]cooldown
	open      *shares                         // of the session that is open
	last      map[*api.QueueInfo]api.Resource // what queues deserved in the one before
}

func (*plugin) Name() string { return Name }

func (p *plugin) OnSessionOpen(ssn *framework.Session) {
	s := &shares{
		Rules: p.rules, ssn: ssn, dims: ssn.Cluster().Dims(), cooldowns: p.cooldowns, before: p.last,
		recorded: map[api.JobID]cooldown{}, waiting: map[*api.QueueInfo]api.Resource{}, largest: map[*api.QueueInfo]api.Resource{},
	}
	p.open = s
	ssn.AddJobValidFn(Name, s.minResourcesPossible)
	ssn.AddOpenedFn(Name, s.compute)
	ssn.AddQueueOrderFn(Name, s.leastServedFirst)
	ssn.AddOverusedFn(Name, s.overused)
	ssn.AddAllocatableFn(Name, s.allocatable)
	ssn.AddReclaimableFn(Name, s.reclaimable)
	if ssn.Enabled(conf.Reclaimable) { // else other plugins permit evictions, by rules of their own
		ssn.AddCommittedFn(Name, s.recordReclaim)
		ssn.AddCommittedFn(Name, s.recordWaiting)
	}
	ssn.AddPlanFns(Name, framework.PlanFns{PreFilter: s.preFilterPlan, Validate: s.validatePlan})
}

func (p *plugin) OnSessionClose(*framework.Session) {
	p.open.expireCooldowns()
	p.last = p.open.deserved
	p.open = nil
}

// shares is what queues deserve in one session. It is computed once, when the session opens; what queues hold
// changes with each decision.
type shares struct {
	Rules
	ssn      *framework.Session
	dims     *api.Dimensions
	deserved map[*api.QueueInfo]api.Resource // in parts of a unit, see api.Parts
	before   map[*api.QueueInfo]api.Resource // in the session before

	cooldowns map[api.JobID]cooldown
	recorded  map[api.JobID]cooldown          // began in this session
	waiting   map[*api.QueueInfo]api.Resource // see recordWaiting

	largest map[*api.QueueInfo]api.Resource // see largestJob

	last claimStatus // of the claim that was asked about last
}

// compute divides the usable total between the queues, dimension by dimension.
func (s *shares) compute() {
	queues := s.ssn.Cluster().SortedQueues()
	requests := sumRequests(s.ssn)
	total := s.ssn.Nodes().Total()
	s.deserved = make(map[*api.QueueInfo]api.Resource, len(queues))
	for _, q := range queues {
		s.deserved[q] = make(api.Resource, s.dims.Len())
	}
	parties := make([]party, len(queues))
	for d := range s.dims.Len() {
		if !s.dims.Shared(d) {
			continue
		}
		for i, q := range queues {
			parties[i] = party{weight: q.Weight, request: api.InParts(d, requests[q].At(d)), guarantee: api.InParts(d, q.Guarantee.At(d))}
			if d < len(q.Capability) && q.Capability[d] != api.Unlimited {
				parties[i].request = min(parties[i].request, api.InParts(d, q.Capability[d]))
			}
		}
		divide(max(api.InParts(d, total.At(d)), 0), parties)
		for i, q := range queues {
			s.deserved[q][d] = parties[i].deserved
		}
	}
	for _, q := range queues {
		s.ssn.SetDeserved(q, s.deserved[q])
		if !s.before[q].Equal(s.deserved[q]) {
			s.ssn.Plans().Invalidate()
		}
	}
}

// share is the part of its deserved that a queue holds, in its most used dimension.
func (s *shares) share(q *api.QueueInfo) api.Share {
	return s.shareOf(s.Held(q), s.deserved[q])
}

func (s *shares) shareOf(held, deserved api.Resource) api.Share {
	var most api.Share
	for d, n := range held {
		if n > 0 && s.dims.Shared(d) {
			if share := (api.Share{Part: api.InParts(d, n), Whole: deserved.At(d)}); share.Compare(most) > 0 {
				most = share
			}
		}
	}
	return most
}

func (s *shares) leastServedFirst(a, b *api.QueueInfo) int { return s.share(a).Compare(s.share(b)) }

// overused reports whether the queue has what it deserves in a dimension that is short: one of
// which the claim requests more than its feasible nodes have available. If no dimension is short
// for the claim, every dimension that it requests counts.
func (s *shares) overused(q *api.QueueInfo, claim *api.Claim) bool {
	var over, under []int
	for d, n := range claim.Request {
		if n <= 0 || !s.dims.Shared(d) {
			continue
		}
		if api.InParts(d, s.Held(q).At(d)) >= s.deserved[q].At(d) {
			over = append(over, d)
		} else {
			under = append(under, d)
		}
	}
	if len(over) == 0 || len(under) == 0 {
		return len(over) > 0 // all or nothing: what is short makes no difference
	}
	for _, d := range over {
		if s.ssn.Nodes().Insufficient(claim, d) {
			return true
		}
	}
	return !slices.ContainsFunc(under, func(d int) bool { return s.ssn.Nodes().Insufficient(claim, d) })
}

// allocatable holds a queue to its capability, and one that is not reclaimable also to what it
// deserves, because no other queue could take back what it borrows. The same holds for a job in cooldown, and for others
// of its queue while it waits for what it may have.
func (s *shares) allocatable(j *api.JobInfo, request api.Resource, when api.When) bool {
	q := j.Queue
	if q.CapAllows(request, when) >= 0 {
		return false
	}
	mayBorrow := q.Reclaimable && !s.inCooldown(j)
	waiting := s.waiting[q]
	if mayBorrow && waiting == nil {
		return true
	}
	for d, n := range request {
		if n > 0 && s.dims.Shared(d) && api.InParts(d, s.Held(q).At(d)+n) > s.deserved[q].At(d) && !(mayBorrow && waiting.At(d) == 0) {
			if mayBorrow {
				s.ssn.SetYielding(j)
			}
			return false
		}
	}
	return true
}

// minResourcesPossible refuses groups whose spec.minResources can never be there.
func (s *shares) minResourcesPossible(j *api.JobInfo) *api.Verdict {
	if j.MinResources == nil {
		return nil
	}
	if d := j.MinResources.Exceeds(j.Queue.Capability); d >= 0 {
		return &api.Verdict{Reason: v1alpha1.ReasonExceedsQueueCapability, Name: string(j.Queue.ID), Dimension: d,
			Limit: j.Queue.Capability[d], Asked: j.MinResources[d], Detail: "requested by spec.minResources"}
	}
	total := s.ssn.Nodes().Total()
	if d := j.MinResources.InsufficientDimension(total); d >= 0 && s.dims.Shared(d) {
		return &api.Verdict{Reason: v1alpha1.ReasonExceedsClusterCapacity, Detail: fmt.Sprintf(
			"spec.minResources requests %s, but the nodes that suit a pending or running pod have %s in total",
			s.dims.FormatOne(d, j.MinResources[d]), s.dims.FormatOne(d, total.At(d)))}
	}
	return nil
}
