// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package trace_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/trace"
)

func TestDomainsOfNodes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		given string
		want  []string
	}{
		"by position":           {"count=5,cpu=1,domain:block=4,domain:rack=2", []string{"block-000/rack-000", "block-000/rack-000", "block-000/rack-001", "block-000/rack-001", "block-001/rack-002"}},
		"with names":            {"count=2,cpu=1,name=big,domain:block=2,domain:rack=1", []string{"big-block-000/big-rack-000", "big-block-000/big-rack-001"}},
		"of a label and others": {"count=2,cpu=1,label:block=b,domain:rack=1", []string{"b/rack-000", "b/rack-001"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nodes, err := trace.Nodes(test.given)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, n := range nodes {
				got = append(got, n.Labels["block"]+"/"+n.Labels["rack"])
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("domains (-want +got):\n%s", diff)
			}
		})
	}
	nodes, err := trace.Nodes("count=2,cpu=1,domain:example.com/rack=1")
	if err != nil || nodes[1].Labels["example.com/rack"] != "rack-001" {
		t.Errorf("nodes are %v, error %v", nodes, err)
	}
	for given, want := range map[string]string{
		"count=8,domain:rack=none":                  `domain:rack: "none" is not a number of nodes`,
		"count=8,domain:rack=0":                     `domain:rack: "0" is not a number of nodes`,
		"count=80,domain:block=40,domain:rack=16":   "domain:rack: 40 nodes of domain:block are not a multiple of 16",
		"count=80,cpu=1,domain:rack=1,domain:row=4": "domain:row: 1 nodes of domain:rack are not a multiple of 4",
	} {
		if _, err := trace.Nodes(given); err == nil || err.Error() != want {
			t.Errorf("%s: the error is %v, want %s", given, err, want)
		}
	}
}

func TestTopologyOfNodes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		given []string
		want  string
	}{
		"none":                 {[]string{"256", "nodes.csv"}, "[] <nil>"},
		"levels":               {[]string{"256", "cpu=1,domain:block=8,domain:rack=4", "name=b,domain:block=4,domain:rack=2"}, "[block rack] <nil>"},
		"levels that disagree": {[]string{"domain:rack=4", "name=b,domain:block=4"}, "[] the nodes have different domains: rack, and block"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			topology, err := trace.Topology(test.given)
			levels := []string{}
			if topology != nil {
				for _, l := range topology.Spec.Levels {
					levels = append(levels, l.NodeLabel)
				}
			}
			if got := fmt.Sprint(levels, err); topology != nil && err != nil || got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestConstrain(t *testing.T) {
	t.Parallel()
	var rules []trace.Rule
	for _, text := range []string{"required=rack,from=8", "preferred=rack", "required=block,preferred=rack,name=power,from=16"} {
		rule, err := trace.ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, rule)
	}
	own := &trace.Constraint{Required: "host"}
	tr := &trace.Trace{Jobs: []trace.Job{
		{Min: 1}, {Min: 2}, {Min: 7}, {Min: 6, Roles: []trace.Role{{Pods: 2}}}, {Min: 15, Replicas: 20}, {Min: 16}, {Min: 16, Topology: own},
	}}
	trace.Constrain(tr, rules)
	var got []trace.Constraint
	for _, j := range tr.Jobs {
		if j.Topology == nil {
			j.Topology = &trace.Constraint{}
		}
		got = append(got, *j.Topology)
	}
	rack, block := trace.Constraint{Required: "rack"}, trace.Constraint{Topology: "power", Required: "block", Preferred: "rack"}
	preferred := trace.Constraint{Preferred: "rack"}
	if diff := cmp.Diff([]trace.Constraint{{}, preferred, preferred, rack, rack, block, *own}, got); diff != "" {
		t.Errorf("constraints (-want +got):\n%s", diff)
	}
	for given, want := range map[string]string{
		"from=8":              "needs a level: required, preferred, or both",
		"required=rack,from=": `from: "" is not a number of pods`,
		"require=rack":        `"require=rack" is none of required=LEVEL, preferred=LEVEL, name=TOPOLOGY and from=PODS`,
	} {
		if _, err := trace.ParseRule(given); err == nil || err.Error() != want {
			t.Errorf("%s: the error is %v, want %s", given, err, want)
		}
	}
	if slices.Contains([]int{rules[0].From, rules[1].From}, 16) {
		t.Error("Constrain has sorted the rules of its caller")
	}
}
