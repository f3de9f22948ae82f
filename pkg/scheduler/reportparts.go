// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"maps"
	"slices"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// partReports returns the status of the other groups of the tree of a job, given that of the root; nil if the job has no
// tree. A part shows why the root waits until all of the root starts. Then it is scheduled if it has what it needs itself;
// a part that the root does not need shows nothing before.
func partReports(j *api.JobInfo, root *api.PodGroupReport) []api.PodGroupReport {
	parts := j.Group.Parts()
	if len(parts) == 0 {
		return nil
	}
	reports := make([]api.PodGroupReport, 0, len(parts))
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		part, r := parts[name], *root
		r.Source, r.Namespace, r.Name, r.UID, r.Generation, r.Part = part.Source, part.Namespace, part.Name, part.UID, part.Generation, true
		if s := subGroup(j, name); root.Scheduled && (s == nil || !s.Runs()) {
			r.Scheduled, r.Reason, r.Message = false, "", ""
		} else if root.Scheduled && s.MinMember > 0 {
			r.Message = scheduledMessage(s.MinMember)
		}
		reports = append(reports, r)
	}
	return reports
}

func subGroup(j *api.JobInfo, name string) *api.SubGroup {
	if j.SubGroups == nil {
		return nil
	}
	return j.SubGroups.Named(name)
}
