// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/batch-scheduler/batch-scheduler/test/perf/figures"
)

func silent(string, ...any) {}

// TestSmall runs all benchmarks on a few nodes and checks their decisions.
func TestSmall(t *testing.T) {
	for _, b := range small() {
		t.Run(b.name, func(t *testing.T) {
			list, problems, err := b.measure(t.Context(), 1, silent)
			if err != nil {
				t.Fatal(err)
			}
			if len(problems) > 0 {
				t.Error(strings.Join(problems, "\n"))
			}
			for _, f := range list {
				if f.Value <= 0 {
					t.Errorf("%s took no time", f.Name)
				}
			}
		})
	}
}

func small() []benchmark {
	return slices.Concat(gangs(50), converged(20, 50), neighbours(20), growing(20, 40), []benchmark{starting(10), pending(10, 200), simulating(gangs(50)[0])}, reportedPending(10, 100), claims(10, 16), bursts(10), reclaims(12), backlogs(10), []benchmark{groupSources(20, 40), independentJobs(20, 20)}, subGroups(20, 10), plannedStarts(10, 20), topologies(40, 20, 60, 40, 10), replays(8, 200, "")[:2])
}

// TestSizes checks the sizes of the fixtures.
func TestSizes(t *testing.T) {
	type sizes struct{ Nodes, Running, Waiting int }
	want := map[string]sizes{
		"preempt-burst/singles":    {10, 80, 10},
		"preempt-burst/surplus":    {10, 80, 10},
		"preempt-burst/gangs":      {10, 80, 10},
		"reclaim-big":              {12, 96, 3},
		"reclaim-no/shares":        {12, 96, 4},
		"reclaim-no/nodes":         {12, 96, 3},
		"backlog/balanced":         {10, 80, 80},
		"backlog/unbalanced":       {10, 80, 80},
		"backlog/priority":         {10, 80, 80},
		"D1/gangs":                 {50, 0, 500},
		"D1/fragmentation":         {50, 0, 500},
		"D2/own-classes":           {50, 0, 500},
		"D3/running":               {20, 200, 0},
		"D4/infeasible":            {50, 400, 10_000},
		"D4/own-classes":           {50, 400, 10_000},
		"D5/anti-affinity":         {20, 0, 20},
		"D5/spread":                {20, 0, 20},
		"D6/00020-nodes":           {20, 0, 200},
		"D8/start":                 {10, 200, 1},
		"D9/backlog":               {10, 200, 800},
		"D9/reported":              {10, 200, 400},
		"D9/starving":              {10, 200, 400},
		"D9/arriving":              {2, 0, 200},
		"claims/full/resource":     {10, 80, 0},
		"claims/full/claims":       {10, 80, 0},
		"claims/full/selector":     {10, 40, 0},
		"claims/full/alternatives": {10, 40, 0},
		"claims/free/resource":     {16, 0, 0},
		"claims/free/claims":       {16, 0, 0},
		"claims/free/selector":     {16, 0, 0},
		"simulate":                 {50, 0, 500},
		"IG8":                      {20, 0, 200},
		"IS1/sources":              {20, 0, 200},
		"IS1/subgroups/needed":     {20, 0, 100},
		"IS1/subgroups/surplus":    {20, 0, 100},
		"D6/00040-nodes":           {40, 0, 400},
		"planned/gang":             {10, 200, 10},
		"planned/block":            {10, 200, 10},
		"planned/rack":             {10, 200, 10},
		"planned/segments":         {10, 200, 10},
		"planned/backfill":         {10, 200, 30},
		"planned/D1":               {10, 0, 100},
		"TP1/racks":                {40, 0, 128},
		"TP2/block":                {40, 0, 20},
		"TP3/infeasible":           {40, 80, 3200},
		"TP3/segments":             {40, 80, 6400},
		"TP4/plan":                 {60, 60, 16},
		"replay/month-1":           {},
		"replay/month-14":          {},
		"TP5/segments":             {40, 0, 100},
	}
	got := map[string]sizes{}
	for _, b := range small() {
		w := b.build()
		got[b.name] = sizes{len(w.nodes), w.running, len(w.pods) - w.running}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestWanted checks the expected outcomes of the full sizes.
func TestWanted(t *testing.T) {
	want := map[string]string{
		"preempt-burst/singles":     "1000 evicted, 0 bound, 1000 pipelined",
		"preempt-burst/surplus":     "1000 evicted, 0 bound, 1000 pipelined",
		"preempt-burst/gangs":       "1000 evicted, 0 bound, 1000 pipelined",
		"reclaim-big":               "2000 evicted, 0 bound, 250 pipelined",
		"reclaim-no/shares/first":   "0 evicted, 0 bound, 0 pipelined",
		"reclaim-no/shares/again":   "0 evicted, 0 bound, 0 pipelined",
		"reclaim-no/shares/changed": "0 evicted, 1 bound, 0 pipelined",
		"reclaim-no/nodes/first":    "0 evicted, 0 bound, 0 pipelined",
		"reclaim-no/nodes/again":    "0 evicted, 0 bound, 0 pipelined",
		"reclaim-no/nodes/changed":  "0 evicted, 1 bound, 0 pipelined",
		"backlog/balanced":          "0 evicted, 0 bound, 0 pipelined",
		"backlog/unbalanced":        "2000 evicted, 0 bound, 2000 pipelined",
		"backlog/priority":          "500 evicted, 0 bound, 500 pipelined",
		"D1/gangs":                  "0 evicted, 50000 bound, 0 pipelined",
		"D1/fragmentation":          "0 evicted, 50000 bound, 0 pipelined",
		"D2/own-classes":            "0 evicted, 50000 bound, 0 pipelined",
		"D3/running/first":          "0 evicted, 0 bound, 0 pipelined",
		"D3/running/changed":        "0 evicted, 0 bound, 0 pipelined",
		"D4/infeasible/first":       "0 evicted, 0 bound, 0 pipelined",
		"D4/infeasible/again":       "0 evicted, 0 bound, 0 pipelined",
		"D4/infeasible/freed":       "0 evicted, 0 bound, 0 pipelined",
		"D4/own-classes/first":      "0 evicted, 0 bound, 0 pipelined",
		"D4/own-classes/again":      "0 evicted, 0 bound, 0 pipelined",
		"D4/own-classes/freed":      "0 evicted, 0 bound, 0 pipelined",
		"D5/anti-affinity":          "0 evicted, 1000 bound, 0 pipelined",
		"D5/spread":                 "0 evicted, 1000 bound, 0 pipelined",
		"D6/01000-nodes":            "0 evicted, 10000 bound, 0 pipelined",
		"D6/02000-nodes":            "0 evicted, 20000 bound, 0 pipelined",
		"D6/04000-nodes":            "0 evicted, 40000 bound, 0 pipelined",
		"D6/08000-nodes":            "0 evicted, 80000 bound, 0 pipelined",
		"D6/16000-nodes":            "0 evicted, 160000 bound, 0 pipelined",
		"D8/start":                  "0 evicted, 0 bound, 0 pipelined", // it waits for one pod to be bound
		"D9/backlog/first":          "0 evicted, 0 bound, 0 pipelined",
		"D9/backlog/freed":          "0 evicted, 0 bound, 0 pipelined",
		"D9/backlog/again":          "0 evicted, 0 bound, 0 pipelined",
		"D9/reported":               "0 evicted, 0 bound, 0 pipelined",
		"D9/starving":               "0 evicted, 0 bound, 0 pipelined",
		"D9/arriving":               "0 evicted, 0 bound, 0 pipelined", // cycles of the whole scheduler
		"D7/openb":                  "0 evicted, 0 bound, 0 pipelined", // the number of feasible pods varies
		"D7/openb-half":             "0 evicted, 0 bound, 0 pipelined", // whole nodes are checked instead
		"IG8":                       "0 evicted, 0 bound, 0 pipelined", // each policy binds all pods
		"IS1/sources":               "0 evicted, 0 bound, 0 pipelined", // each source binds all pods
		"IS1/subgroups/needed":      "0 evicted, 1000 bound, 0 pipelined",
		"IS1/subgroups/surplus":     "0 evicted, 1000 bound, 0 pipelined",
		"planned/block/first":       "0 evicted, 0 bound, 0 pipelined",
		"planned/block/ended":       "0 evicted, 0 bound, 0 pipelined",
		"planned/block/again":       "0 evicted, 0 bound, 0 pipelined",
		"planned/rack/first":        "0 evicted, 0 bound, 0 pipelined",
		"planned/rack/ended":        "0 evicted, 0 bound, 0 pipelined",
		"planned/rack/again":        "0 evicted, 0 bound, 0 pipelined",
		"planned/segments/first":    "0 evicted, 0 bound, 0 pipelined",
		"planned/segments/ended":    "0 evicted, 0 bound, 0 pipelined",
		"planned/segments/again":    "0 evicted, 0 bound, 0 pipelined",
		"planned/gang/first":        "0 evicted, 0 bound, 0 pipelined",
		"planned/gang/ended":        "0 evicted, 0 bound, 0 pipelined",
		"planned/gang/again":        "0 evicted, 0 bound, 0 pipelined",
		"planned/backfill/first":    "0 evicted, 0 bound, 0 pipelined",
		"planned/backfill/ended":    "0 evicted, 0 bound, 0 pipelined",
		"planned/backfill/again":    "0 evicted, 0 bound, 0 pipelined",
		"planned/D1":                "0 evicted, 50000 bound, 0 pipelined",
		"TP1/racks":                 "0 evicted, 16000 bound, 0 pipelined",
		"TP2/block":                 "0 evicted, 512 bound, 0 pipelined",
		"TP3/infeasible/first":      "0 evicted, 0 bound, 0 pipelined",
		"TP3/infeasible/freed":      "0 evicted, 0 bound, 0 pipelined",
		"TP3/infeasible/again":      "0 evicted, 0 bound, 0 pipelined",
		"TP3/segments/first":        "0 evicted, 0 bound, 0 pipelined",
		"TP3/segments/freed":        "0 evicted, 0 bound, 0 pipelined",
		"TP3/segments/again":        "0 evicted, 0 bound, 0 pipelined",
		"TP5/segments":              "0 evicted, 1000 bound, 0 pipelined",
		"TP4/plan":                  "16 evicted, 0 bound, 16 pipelined",
		"claims/full/resource":      "0 evicted, 0 bound, 0 pipelined", // cycles of the whole scheduler
		"claims/full/claims":        "0 evicted, 0 bound, 0 pipelined",
		"claims/full/selector":      "0 evicted, 0 bound, 0 pipelined",
		"claims/full/alternatives":  "0 evicted, 0 bound, 0 pipelined",
		"claims/free/resource":      "0 evicted, 0 bound, 0 pipelined", // each gang is bound
		"claims/free/claims":        "0 evicted, 0 bound, 0 pipelined",
		"claims/free/selector":      "0 evicted, 0 bound, 0 pipelined",
		"simulate":                  "0 evicted, 0 bound, 0 pipelined", // the page is checked instead
		"replay/month-1":            "0 evicted, 0 bound, 0 pipelined", // all jobs complete
		"replay/month-14":           "0 evicted, 0 bound, 0 pipelined",
		"replay/lublin":             "0 evicted, 0 bound, 0 pipelined",
	}
	got := map[string]string{}
	all, err := benchmarks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range all {
		for _, c := range b.cycles {
			var sum counts
			for _, n := range c.want {
				sum = sum.plus(n)
			}
			got[strings.TrimSuffix(b.figure(c, ""), "/")] = sum.String()
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestFaults checks models that no session should leave.
func TestFaults(t *testing.T) {
	for name, test := range map[string]struct {
		given []job
		want  []string
	}{
		"a full node":       {[]job{{name: "a", queue: "q", class: low, min: 8, size: 8, gpus: 1, runs: true}}, nil},
		"a gang that waits": {[]job{{name: "a", queue: "q", class: low, min: 2, size: 2, gpus: 1}}, nil},
		"an overfull node": {
			[]job{{name: "a", queue: "q", class: low, min: 9, size: 9, gpus: 1, runs: true}},
			[]string{"node-0000 is overcommitted of nvidia.com/gpu"},
		},
		"a gang in part": {
			[]job{{name: "a", queue: "q", class: low, min: 2, size: 1, gpus: 1, runs: true}},
			[]string{"default/a has 1 of the 2 members that it needs"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(1)
			w.addQueue("q", 1)
			for _, j := range test.given {
				w.add(j)
			}
			if diff := cmp.Diff(test.want, faults(w.model(), nil, outcome{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestWrongOutcome expects other outcomes than the actual ones.
func TestWrongOutcome(t *testing.T) {
	b := backlogs(10)[0]
	b.cycles[0].want = outcome{"q0 low": {victims: 1}}
	list, problems, err := b.measure(t.Context(), 3, silent)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"pods of q0 low: 0 evicted, 0 bound, 0 pipelined, and should be 1 evicted, 0 bound, 0 pipelined"}, problems); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, f := range list {
		if f.OK {
			t.Errorf("%s is ok", f.Name)
		}
	}
}

func TestLimitCheck(t *testing.T) {
	bound := 20.0
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	var runs []cost
	for _, n := range []int{30, 10, 20} {
		runs = append(runs, cost{
			times:       map[string]time.Duration{"reclaim": ms(n), "open": ms(1)},
			allocations: map[string]uint64{"reclaim": uint64(100 * n), "open": 7},
		})
	}
	for name, test := range map[string]struct {
		given limit
		want  figures.Figure
	}{
		"one step":                          {limit{steps: []string{"reclaim"}, most: 20}, figures.Figure{Value: 20, Unit: "ms", Bound: &bound, OK: true}},
		"the whole cycle, too slow":         {limit{most: 20}, figures.Figure{Value: 21, Unit: "ms", Bound: &bound}},
		"a time without a bound":            {limit{}, figures.Figure{Value: 21, Unit: "ms", OK: true}},
		"microseconds for each of ten pods": {limit{unit: microseconds, per: 10}, figures.Figure{Value: 2100, Unit: "µs/pod", OK: true}},
		"allocations":                       {limit{unit: allocations, most: 20}, figures.Figure{Value: 2007, Unit: "allocations", Bound: &bound}},
		"a step that was not run":           {limit{steps: []string{"preempt"}, most: 20}, figures.Figure{Unit: "ms", Bound: &bound, OK: true}},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := test.given.check(runs)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestTooSlow runs the program with a bound that is always exceeded.
func TestTooSlow(t *testing.T) {
	b := bursts(10)[0]
	b.cycles[0].limits[0].most = 1e-6
	dir := t.TempDir()
	o := options{repeat: 1, json: filepath.Join(dir, "figures.json"), cpuProfile: filepath.Join(dir, "cpu"), memProfile: filepath.Join(dir, "mem")}
	var stdout bytes.Buffer
	problems, err := decide(t.Context(), []benchmark{b}, o, &stdout, silent)
	if err != nil {
		t.Fatal(err)
	}
	if len(problems) != 1 || !strings.Contains(problems[0], "more than 1e-06") {
		t.Errorf("problems: %q", problems)
	}
	if !strings.Contains(stdout.String(), "preempt-burst/singles/cycle") {
		t.Errorf("table:\n%s", stdout.String())
	}
	data, err := os.ReadFile(o.json)
	if err != nil {
		t.Fatal(err)
	}
	var list []figures.Figure
	if err := json.Unmarshal(data, &list); err != nil || len(list) != 1 || list[0].OK {
		t.Errorf("%s: %v", data, err)
	}
	for _, file := range []string{o.cpuProfile, o.memProfile} {
		if info, err := os.Stat(file); err != nil || info.Size() == 0 {
			t.Errorf("%s is empty: %v", file, err)
		}
	}
}

func TestList(t *testing.T) {
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), strings.Fields("-list -run backlog/b"), &stdout, &stderr)
	want := "backlog/balanced         every queue has what it deserves, so nothing is to be done\n"
	if code != 0 || stdout.String() != want || stderr.Len() > 0 {
		t.Errorf("code %d, output %q, errors %q", code, stdout.String(), stderr.String())
	}
}

func TestWrongFlags(t *testing.T) {
	for name, test := range map[string]struct{ given, want string }{
		"no repetition":       {"-repeat 0", "-repeat must be at least 1"},
		"an argument":         {"backlog", `unexpected argument "backlog"`},
		"a broken expression": {"-run (", "-run: error parsing regexp"},
		"nothing to run":      {"-run nothing", `no benchmark matches "nothing"`},
		"a typing slip":       {"-lists", "flag provided but not defined: -lists"},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			code := run(t.Context(), strings.Fields(test.given), &stdout, &stderr)
			if code != 1 || stdout.Len() > 0 || !strings.Contains(stderr.String(), test.want) {
				t.Errorf("code %d, output %q, errors %q; want code 1 and %q", code, stdout.String(), stderr.String(), test.want)
			}
		})
	}
}
