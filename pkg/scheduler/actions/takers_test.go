package actions_test

import (
	"fmt"
	"slices"
	"strings"

	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// takers are the groups that pods are being evicted for, by name.
type takers map[string]*taker

type taker struct {
	victims []string // that are not gone yet
	places  int      // that its plans have for it
	bound   int      // of its members since then
	since   int      // the cycle after which the last victim was gone
	waits   bool     // the last cycle has placed members of it on room to come
}

// A taker must be bound in the next cycle after its last victim is gone. It may take a few more where somebody took
// some of its room and has others evicted for that, whose room on the same node is what the taker waits for then.
const (
	soon = 1
	late = 5
)

// decided takes down what a cycle has decided.
func (ts takers) decided(transcript string, plans []Plan) {
	for _, t := range ts {
		t.waits = false
	}
	for line := range strings.Lines(transcript) {
		words := strings.Fields(line)
		if words[0] != "bind" && words[0] != "pipeline" {
			continue
		}
		if t := ts[groupOf(words[1])]; t != nil && words[0] == "bind" {
			t.bound++
		} else if t != nil {
			t.waits = true
		}
	}
	for _, plan := range plans {
		if ts[plan.For] == nil {
			ts[plan.For] = &taker{}
		}
		ts[plan.For].victims = append(ts[plan.For].victims, plan.Victims...)
		ts[plan.For].places += plan.Places
	}
}

// groupOf returns the group of a pod by its name.
func groupOf(pod string) string { return pod[:strings.LastIndex(pod, "-")] }

// gone: a victim has made room.
func (ts takers) gone(pod string, cycle int) {
	for _, t := range ts {
		if i := slices.Index(t.victims, pod); i >= 0 {
			t.victims = slices.Delete(t.victims, i, i+1)
			t.since = cycle
		}
	}
}

// spared: a pod is not evicted, so that its taker's plan is void. So is that of a taker that is evicted itself.
func (ts takers) spared(pod string) {
	for name, t := range ts {
		if slices.Contains(t.victims, pod) || name == groupOf(pod) {
			delete(ts, name)
		}
	}
}

// check returns an error if pods were evicted for somebody who does not get the room.
func (ts takers) check(cycle int) error {
	for name, t := range ts {
		limit := soon
		if t.waits {
			limit = late
		}
		switch {
		case t.bound >= t.places:
			delete(ts, name)
		case len(t.victims) == 0 && cycle > t.since+limit:
			return fmt.Errorf("%s has %d of %d members bound, %d cycles after the last pod that was evicted for it is gone", name, t.bound, t.places, limit)
		}
	}
	return nil
}
