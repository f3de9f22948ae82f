// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package reservation

import (
	"time"

	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

// OverdueName is the name of the component that finds overdue terminations.
const OverdueName = "overdue"

// terminationSlack is how long after the end of its grace period a pod becomes overdue.
const terminationSlack = 30 * time.Second

// Overdue registers the policy that the resources of a pod which should have ended long ago do not count as resources
// that are being released: a gang that waits for them would keep its other nodes from other jobs.
func Overdue() framework.ComponentSpec {
	return framework.ComponentSpec{Name: OverdueName, New: func(framework.Environment) (framework.Plugin, framework.Action) {
		return &overdue{terminations: map[api.TaskID]termination{}}, nil
	}}
}

// overdue knows the pods that are being deleted. How long a pod may take counts from when a session has first seen its
// deletion, because clocks differ and are set; after a restart it counts from the beginning.
type overdue struct {
	terminations map[api.TaskID]termination
	excluded     []*api.TaskInfo // in the session that is open
}

// termination is a deletion that a session has seen.
type termination struct {
	observed time.Time // when it should end, by the clock of the API server
	deadline time.Time // when the pod is overdue, by our clock
}

func (*overdue) Name() string { return OverdueName }

// OnSessionOpen excludes overdue pods before anything is computed from the model.
func (o *overdue) OnSessionOpen(ssn *framework.Session) {
	before := o.terminations
	o.terminations = map[api.TaskID]termination{}
	ssn.Cluster().EachReleasing(func(t *api.TaskInfo) {
		shown := t.Pod.DeletionTimestamp
		if shown == nil { // the API server has not shown the deletion yet
			return
		}
		e, known := before[t.ID]
		if !known || !e.observed.Equal(shown.Time) {
			grace := time.Duration(ptr.Deref(t.Pod.DeletionGracePeriodSeconds, 0)) * time.Second
			e = termination{shown.Time, ssn.Now.Add(grace + terminationSlack)}
		}
		o.terminations[t.ID] = e
		if ssn.Now.Before(e.deadline) {
			ssn.WakeAt(e.deadline)
		} else {
			o.excluded = append(o.excluded, t)
		}
	})
	for _, t := range o.excluded {
		ssn.SetOverdue(t, true)
	}
}

func (o *overdue) OnSessionClose(ssn *framework.Session) {
	for _, t := range o.excluded {
		ssn.SetOverdue(t, false)
	}
	o.excluded = nil
}
