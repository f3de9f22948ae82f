// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package reservation

import (
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

// reservation keeps resources for a job in one session.
type reservation struct {
	job        *api.JobInfo
	placements []api.Decision
	held       *api.Reservation // nil while the resources are available to the current job
}

func (r *reservation) hold(ssn *framework.Session) {
	if r.held == nil {
		r.held = ssn.Reserve(r.job.Queue, r.placements)
	}
}

func (r *reservation) release(ssn *framework.Session) {
	if r.held != nil {
		ssn.Unreserve(r.held)
		r.held = nil
	}
}

// availableTo reports whether job may use the resources.
func (r *reservation) availableTo(ssn *framework.Session, job *api.JobInfo) bool {
	return job != nil && mayUse(ssn, job, r.job)
}

// mayUse reports whether a job may use what is reserved for another: it is the same job, or one of the same queue with a
// higher priority that job order puts first.
func mayUse(ssn *framework.Session, job, owner *api.JobInfo) bool {
	return job == owner || job.Queue == owner.Queue && job.Priority > owner.Priority && ssn.CompareJobs(job, owner) < 0
}
