// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package predicates

import (
	"time"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

// unavailableSoon returns the shared refusal of nodes that become unavailable at the same time.
func (p *plugin) unavailableSoon(n *api.NodeInfo) *api.Unfit {
	unfit := p.unavailable[n.UnavailableFrom]
	if unfit == nil {
		from := time.Unix(0, n.UnavailableFrom).UTC().Format(time.RFC3339)
		unfit = &api.Unfit{Reason: api.NodeUnavailableSoon, Detail: from, Plugin: Name}
		p.unavailable[n.UnavailableFrom] = unfit
	}
	return unfit
}

// wakeForUnavailable asks for a session when the next limit of a pending job ends after a node becomes unavailable: it waits
// for another reason from then on.
func wakeForUnavailable(ssn *framework.Session) {
	nodes := ssn.Cluster().NodesUnavailableSoon()
	if len(nodes) == 0 {
		return
	}
	limits := map[time.Duration]bool{}
	for _, j := range ssn.Cluster().WaitingJobs() {
		for _, t := range j.Tasks {
			if t.Waiting() {
				limits[t.Limit()] = true
			}
		}
	}
	now := ssn.Now.UnixNano()
	for _, n := range nodes {
		for limit := range limits { // the earliest time counts, so the order makes no difference
			if at := n.UnavailableFrom - int64(limit); limit > 0 && at >= now {
				ssn.WakeAt(time.Unix(0, at+1))
			}
		}
	}
}
