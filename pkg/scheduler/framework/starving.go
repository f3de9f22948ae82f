package framework

import (
	"slices"
	"time"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// trackDegraded remembers since when gangs hold some of what they need and cannot go on.
func (ssn *Session) trackDegraded(waiting []*api.JobInfo) {
	before := ssn.memory.degradedSince
	ssn.memory.degradedSince = map[api.JobID]time.Time{}
	for _, j := range waiting {
		if !j.Degraded() {
			continue
		}
		since, known := before[j.ID]
		if !known {
			since = ssn.Now
		}
		ssn.memory.degradedSince[j.ID] = since
		if grace := ssn.profile.grace; grace > 0 && ssn.Now.Before(since.Add(grace)) {
			ssn.WakeAt(since.Add(grace))
		}
	}
}

// GangGrace is how long a gang may hold fewer members than it needs before it is stale; 0: for ever.
func (ssn *Session) GangGrace() time.Duration { return ssn.profile.grace }

// DegradedGangs returns the gangs that have held fewer members than they need for longer than the grace,
// and have not been completed in this session, in job order. Since when is known to this process alone:
// after a restart the grace begins anew.
func (ssn *Session) DegradedGangs() []*api.JobInfo {
	var list []*api.JobInfo
	for id, since := range ssn.memory.degradedSince {
		j := ssn.cluster.Jobs()[id]
		if j != nil && j.Degraded() && !ssn.JobPipelined(j) && ssn.profile.grace > 0 && !ssn.Now.Before(since.Add(ssn.profile.grace)) {
			list = append(list, j)
		}
	}
	slices.SortFunc(list, ssn.CompareJobs)
	return list
}

// ExplainDegraded records that a gang is stale and stays.
func (ssn *Session) ExplainDegraded(j *api.JobInfo) { ssn.outcome(j).Degraded = true }
