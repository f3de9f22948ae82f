// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package proportion

import (
	"k8s.io/klog/v2"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// rejection is why the plugin rejects a victim, in the log.
type rejection string

const (
	// noOtherQueue: the victim is in the queue of the claim, or its queue does not exist.
	noOtherQueue rejection = "NoOtherQueue"
	// notReclaimable: the victim queue is not reclaimable, and the claim is not within the guarantee of its own queue.
	notReclaimable rejection = "QueueNotReclaimable"
	// notBorrowed: the victim holds nothing of what is short for the claim, or its queue holds no more of that than it
	// deserves.
	notBorrowed rejection = "NotBorrowed"
	// guaranteed: the victim queue would hold less than its guarantee.
	guaranteed rejection = "Guaranteed"
	// notEntitled: the queue of the claim would hold more than it deserves, and its share would rise above that of the
	// victim queue.
	notEntitled rejection = "NotEntitled"
)

// logRejection logs why a victim is rejected, and what both queues hold and deserve. It allocates nothing unless its
// verbosity is enabled.
func logRejection(s *shares, claim *api.Claim, unit api.Unit, cause rejection) {
	log := s.ssn.Log.V(4)
	if !log.Enabled() {
		return
	}
	log.Info("Victim rejected", "plugin", Name, "job", klog.KObj(claim.Job), "victim", klog.KObj(unit.Job), "cause", string(cause),
		"claim", s.dims.Format(claim.Request), "queue", string(claim.Job.QueueName), "held", s.dims.Format(s.Before(claim)),
		"deserved", formatDeserved(s, claim.Job.Queue), "victimQueue", string(unit.Job.QueueName),
		"victimHeld", formatHeld(s, unit.Job.Queue), "victimDeserved", formatDeserved(s, unit.Job.Queue))
}

func formatHeld(s *shares, q *api.QueueInfo) string {
	if q == nil {
		return ""
	}
	return s.dims.Format(s.Held(q))
}

// formatDeserved formats what a queue deserves, rounded down to units.
func formatDeserved(s *shares, q *api.QueueInfo) string {
	units := make(api.Resource, s.dims.Len())
	for d := range units {
		units[d] = s.deserved[q].At(d) / api.Parts(d)
	}
	return s.dims.Format(units)
}
