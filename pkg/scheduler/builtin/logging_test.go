// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
	"github.com/batch-scheduler/batch-scheduler/test/golden"
)

// fewPlugins is a policy whose votes fit on a page.
const fewPlugins = `
actions: "allocate, preempt"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: nodeorder}]
`

// TestVerbosities compares the log of two cycles with the table of verbosities in CONTRIBUTING.md: a gang is evicted for
// another one, which starts in the second cycle, while a third job does not fit on the node.
func TestVerbosities(t *testing.T) {
	for verbosity := range 6 {
		t.Run(fmt.Sprintf("V(%d)", verbosity), func(t *testing.T) {
			log := recorder{verbosity: verbosity}
			c := New(t, BuiltIn(t), Given(Node("n1", "2cpu"), Queue("q", 1),
				Group("q/low", 2, Running(2, "1cpu", "n1", Priority(1))),
				Group("q/high", 2, Pending(2, "1cpu", Priority(9))),
				Group("q/wide", 1, Pending(1, "3cpu", Priority(1)))), WithConfig(fewPlugins), WithLog(log.logger()))
			c.Cycle()
			c.FinishEvictions()
			c.Cycle()
			golden.Check(t, fmt.Sprintf("testdata/logs/v%d.txt", verbosity), log.text())
		})
	}
}

// TestGangDecisions compares the lines at V(0) and V(1), each with its verbosity.
func TestGangDecisions(t *testing.T) {
	surplus := Given(Node("n1", "8cpu"), Queue("q", 1),
		Group("q/low", 1, Running(4, "2cpu", "n1", Priority(1))), Group("q/high", 1, Pending(1, "2cpu", Priority(9))))
	starving := Given(Node("n1", "4cpu"), Node("n2", "4cpu"), Queue("q", 1),
		Group("q/small", 1, Running(1, "3cpu", "n1"), Running(1, "3cpu", "n2")), Group("q/gang", 2, Pending(2, "4cpu")))
	degraded := Given(Node("n1", "3cpu"), Node("n2", "1cpu"), Queue("q", 1),
		Group("q/a", 4, Running(3, "1cpu", "n1"), Running(1, "1cpu", "n2")), Group("q/c", 3, Pending(3, "1cpu")))
	for name, test := range map[string]struct {
		given   []Row
		config  string
		happens func(*Scenario)
		want    string
	}{
		"evictions fail": {
			given: surplus, config: AllActions, happens: func(c *Scenario) { c.FailEvictions() },
			want: `V(1) "Plan made" action="preempt" job=high cause="preempted" victims=1 placements=1
			V(1) "Nomination ended" action="nominated" job=high reason="EvictionFailed" backoff="0s"
			V(1) "Plan made" action="preempt" job=high cause="preempted" victims=1 placements=1
`,
		},
		"another scheduler takes the resources": {
			given: surplus, config: AllActions,
			happens: func(c *Scenario) { c.FinishEvictions(); c.Add(Foreign("foreign", Running(1, "2cpu", "n1"))) },
			want: `V(1) "Plan made" action="preempt" job=high cause="preempted" victims=1 placements=1
			V(1) "Nomination ended" action="nominated" job=high reason="NoResources" backoff="1s"
`,
		},
		"the preemptor is deleted": {
			given: surplus, config: AllActions, happens: func(c *Scenario) { c.DeleteGroup("q/high"); c.Delete("q/high-0") },
			want: `V(1) "Plan made" action="preempt" job=high cause="preempted" victims=1 placements=1
			V(1) "Nomination ended" action="nominated" job=high reason="JobNotPending"
`,
		},
		"a reservation is released because its gang starts": {
			given: starving, config: conf.DefaultYAML() + "starvationAfter: 1ns\n",
			happens: func(c *Scenario) { c.Cycle(); c.Delete("q/small-0", "q/small-1"); c.Cycle(); c.ConfirmBinds() },
			want: `V(0) "Reservation created" action="reservation" job=gang queue=q pods=2 nodes=2
			V(1) "Gang started" action="allocate" job=gang queue=q pods=2 minMember=2 waited="3s"
			V(0) "Reservation released" job=gang started=true
`,
		},
		"a gang starts after more than a minute": {
			given: starving, config: conf.DefaultYAML() + "starvationAfter: 0s\n",
			happens: func(c *Scenario) {
				c.Wait(time.Minute)
				c.Delete("q/small-0", "q/small-1")
			},
			want: `V(0) "Gang started" action="allocate" job=gang queue=q pods=2 minMember=2 waited="1m2s"
`,
		},
		"a degraded gang is evicted": {
			given: degraded, config: AllActions,
			happens: func(c *Scenario) { c.Delete("q/a-3"); c.DeleteNode("n2"); c.Cycle(); c.Wait(2 * time.Minute) },
			want: `V(1) "Plan made" action="degraded" job=c cause="gang-degraded" victims=3 placements=3
			V(1) "Gang selected as victim" action="degraded" job=a preemptor=c cause="gang-degraded" pods=3
`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			log := recorder{verbosity: 1, lower: true}
			c := New(t, BuiltIn(t), test.given, WithConfig(test.config), WithLog(log.logger()))
			c.Cycle()
			test.happens(c)
			c.Cycle()
			if diff := cmp.Diff(strings.ReplaceAll(test.want, "\t", ""), log.text()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// recorder keeps the lines of one verbosity of a log.
type recorder struct {
	verbosity int
	lower     bool // keep those of lower ones too, each with its verbosity
	lines     []string
}

// text omits lines that repeat the line before: how often actions ask plugins is not of interest.
func (r *recorder) text() string { return strings.Join(slices.Compact(r.lines), "") }

var (
	sessionID = regexp.MustCompile(`"session"="[^"]*" `)
	key       = regexp.MustCompile(`"(\w+)"=`)
	object    = regexp.MustCompile(`\{"name"="([^"]*)"(?: "namespace"="ns")?\}`)
)

func (r *recorder) logger() logr.Logger {
	return funcr.New(func(_, args string) {
		for v := range r.verbosity + 1 {
			line, ok := strings.CutPrefix(args, fmt.Sprintf(`"level"=%d "msg"=`, v))
			if !ok || v < r.verbosity && !r.lower {
				continue
			}
			line = object.ReplaceAllString(sessionID.ReplaceAllString(line, ""), "$1")
			line = key.ReplaceAllString(line, "$1=") + "\n"
			if r.lower {
				line = fmt.Sprintf("V(%d) ", v) + line
			}
			r.lines = append(r.lines, line)
		}
	}, funcr.Options{Verbosity: r.verbosity})
}
