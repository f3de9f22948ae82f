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
}

// soon is how many cycles a taker may need to be bound once its last victim is gone: the next one must do.
const soon = 1

// decided takes down what a cycle has decided.
func (ts takers) decided(transcript string, plans []Plan) {
	for line := range strings.Lines(transcript) {
		if words := strings.Fields(line); words[0] == "bind" && ts[groupOf(words[1])] != nil {
			ts[groupOf(words[1])].bound++
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
		switch {
		case t.bound >= t.places:
			delete(ts, name)
		case len(t.victims) == 0 && cycle > t.since+soon:
			return fmt.Errorf("%s has %d of %d members bound, %d cycles after the last pod that was evicted for it is gone", name, t.bound, t.places, soon)
		}
	}
	return nil
}
