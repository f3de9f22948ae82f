// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package reservation

import (
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/klog/v2"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/place"
)

// Why a nomination ends without effect, in the log.
const (
	evictionFailed = "EvictionFailed" // or a node was lost
	noResources    = "NoResources"
	jobNotPending  = "JobNotPending"
)

// logNoEffect logs that a nomination ends without effect. The job may evict again after the backoff.
func logNoEffect(ssn *framework.Session, j *api.JobInfo, reason string, backoff time.Duration) {
	if log := ssn.Log.V(1); log.Enabled() {
		log.Info("Nomination ended", "job", klog.KObj(j), "reason", reason, "backoff", backoff.String())
	}
}

// logEnded logs the nominations of jobs that have no valid pending pods left. It is called before the nominations are
// placed.
func logEnded(n *nominations) {
	log := n.ssn.Log.V(1)
	if !log.Enabled() {
		return
	}
	pending := map[api.JobID]bool{}
	for _, one := range n.reserved {
		pending[one.reservation.job.ID] = true
	}
	for _, id := range slices.Sorted(maps.Keys(n.byJob)) {
		if !pending[id] {
			log.Info("Nomination ended", "job", refOf(n.ssn, id), "reason", jobNotPending)
		}
	}
}

// logCreated logs that resources are reserved for a gang for the first time.
func logCreated(ssn *framework.Session, r *reservation) {
	if log := ssn.Log; log.Enabled() {
		log.Info("Reservation created", "job", klog.KObj(r.job), "queue", klog.KRef("", string(r.job.QueueName)),
			"pods", len(r.placements), "nodes", countNodes(r.placements))
	}
}

// logReleased logs the gangs for which the last session has reserved resources, and this one has not.
func logReleased(ssn *framework.Session, before, now map[api.JobID]place.Placements) {
	log := ssn.Log
	if !log.Enabled() {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(before)) {
		if now[id] == nil {
			j := ssn.Cluster().Jobs()[id]
			log.Info("Reservation released", "job", refOf(ssn, id), "started", j != nil && j.Ready())
		}
	}
}

// refOf returns the reference to a job that may not exist any more.
func refOf(ssn *framework.Session, id api.JobID) klog.ObjectRef {
	if j := ssn.Cluster().Jobs()[id]; j != nil {
		return klog.KObj(j)
	}
	parts := strings.SplitN(string(id), "/", 3) // see api.JobID
	if len(parts) < 3 {
		return klog.KRef("", string(id))
	}
	return klog.KRef(parts[1], parts[2])
}
