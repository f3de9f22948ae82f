// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// JobClass is what makes pending gangs equal: the same nodes and caps refuse them, with the same verdict. A job has a
// job class if all its tasks wait, are of one equivalence class that is local to nodes, and have one priority. Jobs
// without a job class are tried and explained one by one.
//
// For example, 10,000 gangs of 4 pods in 20 queues, created from 100 templates, have at most 2,000 job classes.
type JobClass struct {
	jobClassKey
	// Request is what the claim of a gang requests.
	Request api.Resource

	session uint64 // in which jobs was counted last
	job     *api.JobInfo
	jobs    int // of the job class, in that session
	refusal refusal
	last    *Outcome // of the last refusal, whether or not it still holds
	defers  deferral
}

type jobClassKey struct {
	queue     *api.QueueInfo
	class     *api.EquivalenceClass // and so the namespace: messages name jobs of the same one only
	priority  int32
	minMember int32
	tasks     int32
}

// Job returns one of the jobs that have the job class.
func (jc *JobClass) Job() *api.JobInfo { return jc.job }

// Count returns how many jobs of the session have the job class.
func (jc *JobClass) Count() int { return jc.jobs }

// jobClasses are the classes of all pending jobs. They are kept from session to session, because most jobs do not
// change.
type jobClasses struct {
	known   map[jobClassKey]*JobClass
	records []jobClassRecord // by JobInfo.Index
	terms   uint64           // generation of the equivalence classes
}

// jobClassRecord is the job class of a job and what it was derived from.
type jobClassRecord struct {
	job        *api.JobInfo
	queue      *api.QueueInfo
	jobClass   *JobClass // nil if the job has none
	generation uint64
	minMember  int32
}

// open drops all job classes if the equivalence classes are not valid any more.
func (x *jobClasses) open(terms uint64) {
	if x.known == nil || x.terms != terms {
		x.known, x.records, x.terms = map[jobClassKey]*JobClass{}, nil, terms
	}
}

// of returns the job class of a job, or nil.
func (x *jobClasses) of(c api.ClusterView, j *api.JobInfo) *JobClass {
	for j.Index >= len(x.records) {
		x.records = append(x.records, make([]jobClassRecord, max(64, len(x.records)))...)
	}
	r := &x.records[j.Index]
	if r.job != j || r.generation != j.Generation || r.queue != j.Queue || r.minMember != j.MinMember {
		*r = jobClassRecord{job: j, queue: j.Queue, jobClass: x.find(c, j), generation: j.Generation, minMember: j.MinMember}
	}
	return r.jobClass
}

func (x *jobClasses) find(c api.ClusterView, j *api.JobInfo) *JobClass {
	key, ok := keyOf(c, j)
	if !ok {
		return nil
	}
	jc := x.known[key]
	if jc == nil {
		jc = &JobClass{jobClassKey: key, Request: key.class.Signature.Request.Times(int64(key.minMember))}
		x.known[key] = jc
	}
	return jc
}

// keyOf returns the job class of a job, and whether it has one.
func keyOf(c api.ClusterView, j *api.JobInfo) (key jobClassKey, ok bool) {
	tasks := int32(len(j.Tasks))
	if j.Queue == nil || tasks == 0 || j.Waiting() != tasks || j.MinMember < 1 || j.MinMember > tasks {
		return key, false
	}
	first := j.Tasks[0]
	class := c.ClassOf(first)
	if s := class.Signature; !class.NodeLocal() || s.HasExternalResources() || s.BestEffort || s.SelfAffinityKey() != "" {
		return key, false
	}
	for _, t := range j.Tasks[1:] {
		if t.Signature != first.Signature || t.Priority != first.Priority || c.ClassOf(t) != class {
			return key, false
		}
	}
	return jobClassKey{j.Queue, class, first.Priority, j.MinMember, tasks}, true
}

// dropUnused drops the job classes that no job has had in a session if most are unused.
func (x *jobClasses) dropUnused(session uint64, used int) {
	if len(x.known) <= 2*used+64 {
		return
	}
	for key, jc := range x.known {
		if jc.session != session {
			delete(x.known, key)
		}
	}
}
