// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// JobClass is what makes pending gangs equal: the same nodes and caps refuse them, with the same verdict. A job has a
// job class if all its tasks wait, are of one equivalence class that is local to nodes, and have one priority. Gangs that
// must be in one topology domain have one in common if that is all that distinguishes their classes. Jobs without a job
// class are tried and explained one by one.
//
// For example, 10,000 gangs of 4 pods in 20 queues, created from 100 templates, have at most 2,000 job classes.
type JobClass struct {
	jobClassKey
	// Request is what the claim of a gang requests.
	Request api.Resource

	members agedJobs
	session uint64       // that is open, if gangs of the job class are pending in it
	job     *api.JobInfo // one of them
	jobs    int          // their number
	refusal refusal
	last    *Outcome // of the last refusal, whether or not it still holds
	defers  deferral
	shown   *Outcome // of the jobs, in the session
}

type jobClassKey struct {
	queue        *api.QueueInfo
	class        *api.EquivalenceClass // Common of those of the tasks, and so the namespace: messages name no others
	priority     int32                 // of the tasks
	jobPriority  int32
	minMember    int32
	tasks        int32
	minResources string
	preferred    *api.TopologyLevel // if a level is required; else it makes no difference to a refusal
	only         *api.JobInfo       // nil: the job class may have several jobs
}

// Job returns one of the jobs that have the job class.
func (jc *JobClass) Job() *api.JobInfo { return jc.job }

// Count returns how many jobs of the session have the job class.
func (jc *JobClass) Count() int { return jc.jobs }

// Queue returns the queue of the jobs.
func (jc *JobClass) Queue() *api.QueueInfo { return jc.queue }

// Jobs returns the jobs that had the job class when the session opened, oldest first, which is their job order. Some of
// them may be unlike the others in the session, so that Backlog.JobClass does not return the job class for them.
func (jc *JobClass) Jobs() []*api.JobInfo { return jc.members.list }

// Outcome returns why these jobs wait; nil if the session does not know. If it is the same object in a later session, it
// has the same words.
func (jc *JobClass) Outcome() *Outcome { return jc.shown }

// Version changes when Jobs does.
func (jc *JobClass) Version() uint64 { return jc.members.version }
