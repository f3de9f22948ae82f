// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"fmt"
	"slices"
	"strings"

	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// preemptors are the PodGroups for which pods are being evicted, by name.
type preemptors map[string]*preemptor

type preemptor struct {
	victims    []string // not deleted yet
	placements int      // of its members in its plans
	bound      int      // members since the first plan
	since      int      // cycle after which the last victim was deleted
}

// maxDelay is the number of cycles until a preemptor must be bound after its last victim is deleted.
const maxDelay = 1

// decided records the decisions of a cycle.
func (ts preemptors) decided(transcript string, plans []Plan) {
	for line := range strings.Lines(transcript) {
		if words := strings.Fields(line); words[0] == "bind" && ts[groupOf(words[1])] != nil {
			ts[groupOf(words[1])].bound++
		}
	}
	for _, plan := range plans {
		if ts[plan.For] == nil {
			ts[plan.For] = &preemptor{}
		}
		ts[plan.For].victims = append(ts[plan.For].victims, plan.Victims...)
		ts[plan.For].placements += plan.Places
	}
}

// groupOf returns the group of a pod by its name.
func groupOf(pod string) string { return pod[:strings.LastIndex(pod, "-")] }

// deleted records that a victim is deleted.
func (ts preemptors) deleted(pod string, cycle int) {
	for _, t := range ts {
		if i := slices.Index(t.victims, pod); i >= 0 {
			t.victims = slices.Delete(t.victims, i, i+1)
			t.since = cycle
		}
	}
}

// notEvicted records that the eviction of a pod fails, which invalidates the plans of its preemptor. If the pod belongs
// to a preemptor that was to be evicted itself, its plans are invalid as well.
func (ts preemptors) notEvicted(pod string) {
	for name, t := range ts {
		if slices.Contains(t.victims, pod) || name == groupOf(pod) {
			delete(ts, name)
		}
	}
}

// check returns an error if a preemptor is not bound although its victims are deleted.
func (ts preemptors) check(cycle int) error {
	for name, t := range ts {
		switch {
		case t.bound >= t.placements:
			delete(ts, name)
		case len(t.victims) == 0 && cycle > t.since+maxDelay:
			return fmt.Errorf("%s has %d of %d members bound, %d cycles after its last victim was deleted", name, t.bound, t.placements, maxDelay)
		}
	}
	return nil
}
