// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"k8s.io/klog/v2"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

// noPlan is why there is no plan for a claim, in the log.
type noPlan string

const (
	notAllowed      noPlan = framework.EvictionNotAllowed
	tooFewPods      noPlan = "TooFewPods"
	knownInfeasible noPlan = "KnownInfeasible" // an entry of the negative plan cache
	noCandidates    noPlan = "NoCandidates"
	notNeededForFit noPlan = "FitsWithoutEvictions"
	notFound        noPlan = "NotFound"
)

// logNoPlan logs that there is no plan for a claim.
func (p *Planner) logNoPlan(claim *api.Claim, rules Rules, why noPlan) {
	if log := p.ssn.Log.V(4); log.Enabled() {
		log.Info("Plan not found", "job", klog.KObj(claim.Job), "pod", klog.KObj(claim.Tasks[0].Pod), "pods", len(claim.Tasks),
			"cause", rules.Cause.String(), "reason", string(why))
	}
}
