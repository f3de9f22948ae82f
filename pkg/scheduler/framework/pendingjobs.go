// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// pendingJobs divides the waiting jobs into those of each job class, and others. It is kept from session to session,
// because most jobs do not change: a session costs time for each job class, but not for each of their jobs.
type pendingJobs struct {
	cluster  api.ClusterView
	enabled  bool // otherwise no job has a job class
	apart    bool // each job has a job class of its own
	reader   api.JournalReader
	terms    uint64 // generation of the equivalence classes
	records  []pendingRecord
	classes  map[jobClassKey]*JobClass
	list     []*JobClass // in the order of their creation
	others   agedJobs
	affected []*JobClass // whose jobs change
}

// pendingRecord is what is known about a waiting job; by JobInfo.Index.
type pendingRecord struct {
	job        *api.JobInfo // nil: none, or it does not wait
	class      *JobClass    // nil: one of the others
	generation uint64       // of the job when it had the class last
	created    int64
	key        string
	opened     uint64 // session in which the job was valid, but none of its class
	decided    uint64 // session that has placed tasks of the job
}

// update follows the changes of the model.
func (p *pendingJobs) update(c api.ClusterView, enabled, apart bool) {
	changed, known := p.reader.CatchUp(c.JobTable().Changes(), 1<<15)
	terms := c.Generations().Terms
	if !known || p.cluster != c || p.terms != terms || p.enabled != enabled || p.apart != apart {
		clear(p.records)
		*p = pendingJobs{
			cluster: c, enabled: enabled, apart: apart, reader: p.reader, terms: terms, records: p.records, classes: map[jobClassKey]*JobClass{},
		}
		changed = nil
		for _, j := range c.WaitingJobs() {
			p.follow(j.Index, j)
		}
	}
	for _, i := range changed {
		p.follow(int(i), c.JobTable().ByIndex()[i])
	}
	p.others.update(func(j *api.JobInfo) bool { return p.isIn(j, nil) })
	for _, jc := range p.affected {
		jc.members.update(func(j *api.JobInfo) bool { return p.isIn(j, jc) })
	}
	p.affected = p.affected[:0]
}

// none returns a state without jobs, which takes over the memory for records.
func (p *pendingJobs) none() pendingJobs {
	clear(p.records)
	return pendingJobs{records: p.records}
}

func (p *pendingJobs) isIn(j *api.JobInfo, jc *JobClass) bool {
	r := p.record(j)
	return r != nil && r.class == jc
}

// record returns what is known about a job; nil if it does not wait.
func (p *pendingJobs) record(j *api.JobInfo) *pendingRecord {
	if j.Index >= len(p.records) || p.records[j.Index].job != j {
		return nil
	}
	return &p.records[j.Index]
}

// follow examines the job of an index again; nil if there is none.
func (p *pendingJobs) follow(i int, j *api.JobInfo) {
	for i >= len(p.records) {
		p.records = append(p.records, make([]pendingRecord, max(64, len(p.records)))...)
	}
	r := &p.records[i]
	before := *r
	*r = pendingRecord{}
	if j != nil && j.Waits() {
		*r = pendingRecord{job: j, class: p.classOf(j), generation: j.Generation, created: j.Created, key: j.Key, opened: before.opened}
	}
	same := r.job == before.job && r.class == before.class
	if same && (r.job == nil || r.created == before.created && r.key == before.key) {
		return
	}
	if before.job != nil {
		list := p.listOf(before.class)
		list.unsorted = list.unsorted || same
		list.dropped = list.dropped || !same
	}
	if r.job != nil && !same {
		list := p.listOf(r.class)
		list.added = append(list.added, j)
	}
}

// listOf returns the list that has the jobs of a class, or the others, to change it.
func (p *pendingJobs) listOf(jc *JobClass) *agedJobs {
	if jc == nil {
		return &p.others
	}
	if !jc.members.changed() {
		p.affected = append(p.affected, jc)
	}
	return &jc.members
}

// classOf returns the job class of a job; nil if it has none.
func (p *pendingJobs) classOf(j *api.JobInfo) *JobClass {
	key, ok := p.keyOf(j)
	if !ok {
		return nil
	}
	jc := p.classes[key]
	if jc == nil {
		jc = &JobClass{jobClassKey: key, Request: key.class.Signature.Request.Times(int64(key.minMember))}
		p.classes[key] = jc
		p.list = append(p.list, jc)
	}
	return jc
}

// keyOf returns the job class of a job, and whether it has one.
func (p *pendingJobs) keyOf(j *api.JobInfo) (key jobClassKey, ok bool) {
	tasks := int32(len(j.Tasks))
	if !p.enabled || tasks == 0 || j.SubGroups != nil || j.PreferredWait > 0 || j.Waiting() != tasks || j.MinMember < 1 || j.MinMember > tasks || p.cluster.Admissible(j) != nil {
		return key, false
	}
	first := j.Tasks[0]
	class := p.cluster.ClassOf(first)
	if s := class.Signature; !class.NodeLocal() && !class.NodeLocalUnpinned() || s.BestEffort || s.SelfAffinityKey() != "" {
		return key, false
	}
	for _, t := range j.Tasks[1:] {
		if t.Signature != first.Signature || t.Priority != first.Priority || p.cluster.ClassOf(t) != class {
			return key, false
		}
	}
	class = class.Common // all tasks wait
	key = jobClassKey{
		queue: j.Queue, class: class, priority: first.Priority, jobPriority: j.Priority, minMember: j.MinMember, tasks: tasks,
		minResources: string(j.MinResources.AppendKey(nil)),
	}
	if class.Level != nil {
		key.preferred = j.PreferredLevel
	}
	if p.apart {
		key.only = j
	}
	return key, true
}

// hasStill reports whether a job that had the class when the session opened has it now.
func (p *pendingJobs) hasStill(r *pendingRecord) bool {
	if r.generation == r.job.Generation {
		return true
	}
	key, ok := p.keyOf(r.job)
	if !ok || p.classes[key] != r.class {
		return false
	}
	r.generation = r.job.Generation
	return true
}

// dropUnused drops the job classes without jobs if they are most.
func (p *pendingJobs) dropUnused(used int) {
	if len(p.list) <= 2*used+64 {
		return
	}
	p.list = slices.DeleteFunc(p.list, func(jc *JobClass) bool {
		unused := len(jc.members.list) == 0
		if unused {
			delete(p.classes, jc.jobClassKey)
		}
		return unused
	})
}
