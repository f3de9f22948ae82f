// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package checker_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/test/soak/internal/checker"
)

// start is the time at which every sequence starts.
var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

const (
	second = time.Second
	minute = time.Minute
)

// TestViolations violates each guarantee, and barely keeps it.
func TestViolations(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		given []event
		want  string
	}{
		"a node is exactly full": {given: []event{at(0, node("n", "2"), pod("a", on("n")), pod("b", on("n")))}},
		"a node is overcommitted": {
			given: []event{at(0, node("n", "2"), pod("a", on("n")), pod("b", on("n")), pod("c", on("n")))},
			want:  "no node overcommitted: node n is overcommitted with pod ns/c: 3 cpu of 2",
		},
		"a terminating pod holds its resources until it is deleted": {
			given: []event{at(0, node("n", "1"), pod("a", on("n")), pod("a", on("n"), terminating)), at(second, pod("b", on("n")))},
			want:  "no node overcommitted: node n is overcommitted with pod ns/b: 2 cpu of 1",
		},
		"a deleted pod holds no resources": {
			given: []event{at(0, node("n", "1"), pod("a", on("n")), gone("a", on("n"), terminating)), at(second, pod("b", on("n")))},
		},
		"a terminated pod holds no resources": {
			given: []event{at(0, node("n", "1"), pod("a", on("n")), pod("a", on("n"), phase(corev1.PodSucceeded, ""))), at(second, pod("b", on("n")))},
		},
		"another client bound a pod at the same time": {
			given: []event{at(0, node("n", "1"), pod("f", foreign, put("n"))), at(second, pod("b", on("n")))},
		},
		"another client bound a pod long before": {
			given: []event{at(0, node("n", "1"), pod("f", foreign, put("n"))), at(6*second, pod("b", on("n")))},
			want:  "no node overcommitted: node n is overcommitted with pod ns/b: 2 cpu of 1",
		},
		"a kubelet rejects a pod": {
			given: []event{at(0, node("n", "1")), at(minute, pod("a", on("n")), pod("a", on("n"), phase(corev1.PodFailed, "OutOfcpu")))},
			want:  "no pod rejected by its kubelet: node n rejected pod ns/a: OutOfcpu ",
		},
		"a node has just been cordoned": {given: []event{at(0, node("n", "1"), node("n", "1", cordoned)), at(4*second, pod("a", on("n")))}},
		"a node has been cordoned": {
			given: []event{at(0, node("n", "1"), node("n", "1", cordoned)), at(6*second, pod("a", on("n")))},
			want:  "no pod bound to a node that is lost or cordoned: pod ns/a was bound to node n, which has been unschedulable for 6s",
		},
		"a cordoned node returns, and a pod that is bound to it is shown first": {
			given: []event{at(0, node("n", "1"), node("n", "1", cordoned)), at(6*second, pod("a", on("n"))), at(7*second, node("n", "1"))},
		},
		"a cordoned node returns after a pod was bound to it": {
			given: []event{at(0, node("n", "1"), node("n", "1", cordoned)), at(6*second, pod("a", on("n"))), at(8*second, node("n", "1"))},
			want:  "no pod bound to a node that is lost or cordoned: pod ns/a was bound to node n, which has been unschedulable for 6s",
		},
		"a node is not ready": {
			given: []event{at(0, node("n", "1"), node("n", "1", notReady)), at(6*second, pod("a", on("n")))},
			want:  "no pod bound to a node that is lost or cordoned: pod ns/a was bound to node n, which has been unschedulable for 6s",
		},
		"a node has never existed": {
			given: []event{at(0, pod("a", on("n")))},
			want:  "no pod bound to a node that is lost or cordoned: pod ns/a was bound to node n, which has never existed",
		},
		"a node selector is violated": {
			given: []event{at(0, node("n", "1"), pod("a", zone("z"), on("n")))},
			want:  "no pod bound to a node that is lost or cordoned: pod ns/a requires nodes with zone=z and was bound to node n",
		},
		"a pod moves": {
			given: []event{at(0, node("n", "1"), node("m", "1"), pod("a", on("n")), pod("a", on("m")))},
			want:  "no pod bound twice or by another scheduler: pod ns/a moved from node n to \"m\"",
		},
		"a pod is bound by another client": {
			given: []event{at(0, node("n", "1"), pod("a", put("n")))},
			want:  "no pod bound twice or by another scheduler: pod ns/a was bound by another client, or has no queue and group annotations",
		},
		"a pod of another scheduler is bound": {
			given: []event{at(0, node("n", "1"), pod("a", foreign, on("n")))},
			want:  "no pod bound twice or by another scheduler: pod ns/a of another scheduler was bound by this one",
		},
		"two events report a bind": {
			given: []event{at(0, node("n", "1"), pod("a", on("n")), says("a", "Scheduled"), says("a", "Scheduled"))},
			want:  "no pod bound twice or by another scheduler: two events report that pod ns/a was bound",
		},
		"a queue is exactly at its capability": {given: []event{at(0, node("n", "9"), queue("q", "2"), pod("a", on("n")), pod("b", on("n")))}},
		"a queue exceeds its capability": {
			given: []event{at(0, node("n", "9"), queue("q", "1")), at(minute, pod("a", on("n")), pod("b", on("n")))},
			want:  "no queue bound over its capability: queue q exceeds its capability with pod ns/b: 2 cpu of 1",
		},
		"a queue exceeds its capability of a resource that the pod does not request": {
			given: []event{at(0, node("n", "9"), queue("q", "2"), pod("x", on("n")), pod("y", on("n")), queue("q", "1")), at(minute, pod("a", asks("gpu"), on("n")))},
		},
		"a capability has just been reduced": {
			given: []event{at(0, node("n", "9"), queue("q", "2")), at(minute, queue("q", "1")), at(minute+4*second, pod("a", on("n")), pod("b", on("n")))},
		},
		"a capability has been reduced": {
			given: []event{at(0, node("n", "9"), queue("q", "2")), at(minute, queue("q", "1")), at(minute+6*second, pod("a", on("n")), pod("b", on("n")))},
			want:  "no queue bound over its capability: queue q exceeds its capability with pod ns/b: 2 cpu of 1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, test.given, test.want)
		})
	}
}

func TestGangs(t *testing.T) {
	t.Parallel()
	begun := at(0, scheduler(true), node("n", "9"), group("g", 3), member("g", "a"), member("g", "b"), member("g", "c"), member("g", "a", on("n")), member("g", "b", on("n")))
	const partial = "no gang started in part: gang ns/g has held nodes for 2 pods of 3 since 03:04:05"
	for name, test := range map[string]struct {
		given []event
		want  string
	}{
		"becomes complete in time":             {given: []event{begun, at(5*second, tick, member("g", "c", on("n"))), at(minute, tick)}},
		"stays partial":                        {given: []event{begun, at(minute, tick)}, want: partial},
		"loses a member":                       {given: []event{begun, at(second, gone("a", func(p *corev1.Pod) { p.Labels = map[string]string{"scheduling.batch-scheduler.dev/pod-group": "g"} }, on("n"))), at(minute, tick)}},
		"loses a node":                         {given: []event{begun, at(second, node("n", "9", notReady)), at(minute, tick)}},
		"loses another node":                   {given: []event{begun, at(second, node("m", "9"), node("m", "9", notReady)), at(minute, tick)}, want: partial},
		"needs more":                           {given: []event{begun, at(second, group("g", 4)), at(minute, tick)}},
		"no scheduler runs":                    {given: []event{begun, at(second, scheduler(false)), at(minute, tick)}},
		"a new scheduler completes it":         {given: []event{begun, at(second, scheduler(false)), at(minute, scheduler(true)), at(minute+14*second, tick)}},
		"a new scheduler does not complete it": {given: []event{begun, at(second, scheduler(false)), at(minute, scheduler(true)), at(minute+16*second, tick)}, want: partial},
		"lost its resources meanwhile": {given: []event{begun, at(second, scheduler(false)), at(minute, scheduler(true)), at(minute+second, pod("f", foreign, put("n"))),
			at(minute+16*second, tick)}},
		"was complete before": {given: []event{begun, at(second, member("g", "c", on("n"))), at(2*second, member("g", "c", on("n"), terminating)), at(minute, tick)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, test.given, test.want)
		})
	}
}

func TestEvictions(t *testing.T) {
	t.Parallel()
	runs := at(0, scheduler(true), node("n", "9"), group("g", 1), group("t", 1), member("g", "a"), member("g", "a", on("n")), member("t", "b"))
	again := func(after time.Duration, name string) event {
		return at(after, member("g", name, on("n")), member("g", name, on("n"), evicted("ns/t")), says(name, "Preempted"))
	}
	const ineffective = "no repeated evictions without effect: 2 consecutive plans evicted pods for ns/t without binding a pod of it"
	for name, test := range map[string]struct {
		given []event
		want  string
	}{
		"with a reason":         {given: []event{runs, at(minute, member("g", "a", on("n"), evicted("ns/t")), says("a", "Preempted")), at(4*minute, tick)}},
		"event before eviction": {given: []event{runs, at(minute, says("a", "Preempted"), member("g", "a", on("n"), evicted("ns/t"))), at(4*minute, tick)}},
		"without a preemptor":   {given: []event{runs, at(minute, member("g", "a", on("n"), evicted("")))}, want: "no eviction without a reason: pod ns/a was evicted without the name of its preemptor"},
		"for an unknown preemptor": {given: []event{runs, at(minute, member("g", "a", on("n"), evicted("ns/x")), says("a", "Preempted"))},
			want: "no eviction without a reason: pod ns/a was evicted for ns/x, which has no pending pod"},
		"for a preemptor that is not pending": {given: []event{runs, at(0, member("t", "b", on("n"))), at(minute, member("g", "a", on("n"), evicted("ns/t")), says("a", "Preempted"))},
			want: "no eviction without a reason: pod ns/a was evicted for ns/t, which has no pending pod"},
		"for a preemptor that was just bound": {given: []event{runs, at(minute, member("t", "b", on("n"))), at(minute+9*second, member("g", "a", on("n"), evicted("ns/t")), says("a", "Preempted"))}},
		"for itself": {given: []event{runs, at(minute, member("g", "w"), member("g", "a", on("n"), evicted("ns/g")), says("a", "Preempted"))},
			want: "no eviction without a reason: pod ns/a was evicted for its own job"},
		"for a pod of higher priority of its own job": {given: []event{runs, at(minute, member("g", "w", important), member("g", "a", on("n"), evicted("ns/g")), says("a", "Preempted"))}},
		"of a pod of another scheduler": {given: []event{runs, at(minute, pod("f", foreign, put("n")), pod("f", foreign, put("n"), evicted("ns/t")))},
			want: "no eviction without a reason: pod ns/f of another scheduler was evicted"},
		"without an event": {given: []event{runs, at(minute, member("g", "a", on("n"), evicted("ns/t"))), at(4*minute, tick)},
			want: "no eviction without a reason: pod ns/a was evicted for ns/t without an event"},
		"before a restart": {given: []event{runs, at(minute, member("g", "a", on("n"), evicted("ns/t"))), at(minute+second, scheduler(false)),
			at(minute+2*second, scheduler(true)), at(4*minute, tick)}},
		"again":                       {given: []event{runs, again(minute, "c"), again(2*minute, "d")}},
		"repeatedly":                  {given: []event{runs, again(minute, "c"), again(2*minute, "d"), again(3*minute, "e")}, want: ineffective},
		"several at the same time":    {given: []event{runs, again(minute, "c"), again(minute+second, "d"), again(minute+2*second, "e")}},
		"repeatedly with success":     {given: []event{runs, again(minute, "c"), again(2*minute, "d"), at(2*minute+second, member("t", "x", on("n"))), again(3*minute, "e")}},
		"repeatedly with a lost node": {given: []event{runs, again(minute, "c"), again(2*minute, "d"), at(150*second, node("m", "1")), again(3*minute, "e")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, test.given, test.want)
		})
	}
}

func TestFinalChecks(t *testing.T) {
	t.Parallel()
	waits := at(0, scheduler(true), node("n", "2"), queue("q", ""), group("g", 2), member("g", "a"), member("g", "b"))
	const fits = "what fits runs at the end: ns/g needs 2 more pods and is pending although they fit: "
	for name, test := range map[string]struct {
		given []event
		want  string
	}{
		"a pending gang fits":                       {given: []event{waits, at(minute, converged)}, want: fits},
		"a pending gang does not fit":               {given: []event{waits, at(0, pod("x", on("n"))), at(minute, converged)}},
		"a gang has too few pods":                   {given: []event{waits, at(0, group("g", 3)), at(minute, converged)}},
		"its node is cordoned":                      {given: []event{waits, at(0, node("n", "2", cordoned)), at(minute, converged)}},
		"its queue has reached its capability":      {given: []event{waits, at(0, queue("q", "1")), at(minute, converged)}},
		"its queue is over its share":               {given: []event{waits, at(0, group("g", 2, overShare)), at(minute, converged)}},
		"its job was reclaimed from":                {given: []event{waits, at(0, node("m", "1"), pod("t")), at(second, member("g", "y"), member("g", "y", on("m"))), at(2*second, member("g", "y", on("m"), evicted("ns/t")), says("y", "Reclaimed")), at(minute, converged)}},
		"a pod is pending although everything fits": {given: []event{at(0, pod("a")), at(minute, allRun)}, want: "what fits runs at the end: everything fits, and 1 pods of ns/a are pending: "},
		"a pod does not start":                      {given: []event{at(0, node("n", "1"), pod("a", on("n"))), at(minute, allRun)}, want: "what fits runs at the end: pod ns/a has node n and does not run"},
		"a gang stays partial": {
			given: []event{at(0, node("n", "2"), group("g", 2), member("g", "a", on("n"), phase(corev1.PodRunning, ""))), at(minute, allRun)},
			want:  "no gang started in part: gang ns/g stays partial with 1 pods of 2",
		},
		"everything runs": {given: []event{at(0, node("n", "1"), group("g", 1), member("g", "a", on("n"), phase(corev1.PodRunning, ""))), at(minute, allRun)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, test.given, test.want)
		})
	}
}

// check compares the violations that a checker finds with the expected ones.
func check(t *testing.T, given []event, want string) {
	t.Helper()
	c := checker.New("batch", "default")
	for _, h := range given {
		h.observe(c, start.Add(h.after))
	}
	var got []string
	for _, v := range c.Violations() {
		got = append(got, fmt.Sprintf("%s: %s", v.Check, v.Text))
	}
	if diff := cmp.Diff(want, strings.TrimRight(strings.Join(got, "\n"), "\n")); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
}

func TestTranscript(t *testing.T) {
	t.Parallel()
	c := checker.New("batch", "default")
	for i, show := range []func(*checker.Checker, time.Time){
		node("n", "1"), node("other", "1"), pod("a"), pod("b"), pod("a", on("n")), pod("x", on("other")), pod("b", on("n")),
	} {
		show(c, start.Add(time.Duration(i)*time.Second))
	}
	want := []string{
		"03:04:05.000 node n: exists true, schedulable true",
		"03:04:08.000 pod ns/b is created",
		"03:04:09.000 pod ns/a is bound to node n",
		"03:04:11.000 pod ns/b is bound to node n",
	}
	if len(c.Violations()) != 1 {
		t.Fatalf("got %d violations, want 1", len(c.Violations()))
	}
	if diff := cmp.Diff(want, c.Violations()[0].Transcript); diff != "" {
		t.Errorf("transcript (-want +got):\n%s", diff)
	}
	for _, row := range []string{"pods bound                                                  3", "no node overcommitted                                       3          1"} {
		if !strings.Contains(c.Table(), row) {
			t.Errorf("the table does not contain %q:\n%s", row, c.Table())
		}
	}
}
