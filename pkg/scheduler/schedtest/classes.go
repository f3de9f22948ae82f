// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package schedtest

import (
	"fmt"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

// maxComparisons is up to how many pairs of a waiting task and a node checkClasses compares answers; it skips larger
// scenarios.
const maxComparisons = 200

// checkClasses checks after a session has opened that plugins answer equally, on each node, for all waiting tasks of an
// equivalence class: the scheduler asks for one of them. A plugin that reads more of a pod than its signature breaks
// this rule.
func checkClasses(r *cycle, ssn *framework.Session) {
	waiting := waitingTasks(r.model)
	if len(waiting)*len(r.model.Nodes()) > maxComparisons {
		return
	}
	first := map[*api.EquivalenceClass]*api.TaskInfo{}
	for _, t := range waiting {
		class := r.model.ClassOf(t)
		if first[class] == nil {
			first[class] = t
			continue
		}
		for _, n := range r.model.Nodes() {
			if n == nil || ssn.Filter(t.Signature, n) != nil {
				continue
			}
			if one, other := answers(ssn, first[class], n), answers(ssn, t, n); one != other {
				r.fault("%s and %s are of one equivalence class, and plugins answer differently for them on %s: %s, and %s. "+
					"A Predicate or NodeOrder function must read nothing of a pod that its signature does not contain "+
					"(annotations, most labels, the name): add what it reads to api.SignatureKey",
					r.cluster.podName(first[class]), r.cluster.podName(t), n.Name, one, other)
				return
			}
		}
	}
}

// waitingTasks returns the tasks that wait.
func waitingTasks(c *model.Cluster) []*api.TaskInfo {
	var tasks []*api.TaskInfo
	for _, j := range c.WaitingJobs() {
		for _, t := range j.Tasks {
			if t.Waiting() {
				tasks = append(tasks, t)
			}
		}
	}
	return tasks
}

// answers returns what plugins answer about a task on a node, as text.
func answers(ssn *framework.Session, t *api.TaskInfo, n *api.NodeInfo) string {
	if unfit := ssn.Predicate(t, n, api.Now); unfit != nil {
		return fmt.Sprintf("infeasible (%v)", unfit)
	}
	return fmt.Sprintf("score %d", ssn.NodeScore(t, n))
}
