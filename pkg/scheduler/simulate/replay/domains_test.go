// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/trace"
)

// replayRacks replays a trace on four nodes of one CPU in two racks of a block.
func replayRacks(t *testing.T, lines string) (*Result, error) {
	t.Helper()
	const nodes = "count=4,cpu=1,domain:block=4,domain:rack=2"
	tr, err := trace.Read("jsonl", "the trace of the test", strings.NewReader(lines), trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	in, err := newInput(tr, nodes)
	if err != nil {
		t.Fatal(err)
	}
	topology, err := trace.Topology([]string{nodes})
	if err != nil {
		t.Fatal(err)
	}
	in.Topologies = []*v1alpha1.Topology{topology}
	return Run(t.Context(), in, Options{DefaultQueue: "default", EvictionGrace: 30 * time.Second, Record: true})
}

func TestTopologyOfATrace(t *testing.T) {
	t.Parallel()
	const (
		small  = `{"t": 0, "submit": {"name": "small", "request": {"cpu": "1"}, "duration": 100}}` + "\n"
		gang   = `{"t": 10, "submit": {"name": "gang", "min": 3, "request": {"cpu": "1"}, "duration": 50}}` + "\n"
		inRack = `{"t": 10, "submit": {"name": "gang", "min": 2, "request": {"cpu": "1"}, "duration": 50, "topology": {"required": "rack"}}}` + "\n"
		beside = `{"t": 5, "submit": {"name": "beside", "request": {"cpu": "1"}, "selector": {"rack": ["rack-001"]}, "duration": 20}}` + "\n"
	)
	for name, test := range map[string]struct {
		given string
		want  string // start, domains of blocks and racks; then the whole free ones on average, and gangs in one domain
	}{
		"without a constraint":      {small + gang, "small 0s [1 1], gang 10s [1 2]; block 0/1, 1 of 1; rack 0.5/2, 0 of 1"},
		"a rack":                    {small + inRack, "small 0s [1 1], gang 10s [1 1]; block 0/1, 1 of 1; rack 0.5/2, 1 of 1"},
		"no rack until a job ends":  {small + beside + inRack, "small 0s [1 1], beside 5s [1 1], gang 25s [1 1]; block 0/1, 1 of 1; rack 0.3/2, 1 of 1"},
		"another part of the trace": {small + inRack + `{"t": 200, "node": {"name": "node-00000", "state": "down"}}`, "small 0s [1 1], gang 10s [1 1]; block 0/1, 1 of 1; rack 0.5/2, 1 of 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := replayRacks(t, test.given)
			if err != nil {
				t.Fatal(err)
			}
			var jobs, levels []string
			for _, j := range r.Jobs {
				jobs = append(jobs, fmt.Sprint(j.ID, " ", j.Start, " ", j.Domains))
			}
			for _, l := range r.Summary.Levels {
				levels = append(levels, fmt.Sprintf("%s %v/%d, %d of %d", l.Level, l.MeanFree, l.Domains, l.InOneDomain, l.Gangs))
			}
			if diff := cmp.Diff(test.want, strings.Join(append([]string{strings.Join(jobs, ", ")}, levels...), "; ")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	for given, want := range map[string]string{
		strings.Replace(inRack, "rack", "rak", 1):                         `job "gang" has a topology constraint: no level "rak" in topology default: block, rack; did you mean "rack"?`,
		strings.Replace(inRack, `"required`, `"name": "x", "required`, 1): `job "gang" has a topology constraint: no topology "x": default`,
	} {
		if _, err := replayRacks(t, given); err == nil || err.Error() != want {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
}

// TestDomainsTwin compares the counts with those from scratch, after random changes of nodes and pods.
func TestDomainsTwin(t *testing.T) {
	t.Parallel()
	levels := []*api.TopologyLevel{{Topology: "t", Name: "block", Labels: []string{"block"}}, {Topology: "t", Name: "rack", Labels: []string{"block", "rack"}}}
	rapid.Check(t, func(t *rapid.T) {
		d := newDomains([]api.Topology{{Name: "t", Levels: levels}})
		nodes, pods := map[string]map[string]string{}, map[string]int{}
		for range rapid.IntRange(1, 30).Draw(t, "changes") {
			name := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "node")
			switch rapid.SampledFrom([]string{"set", "remove", "start", "end"}).Draw(t, "change") {
			case "set":
				value := rapid.SampledFrom([]string{"", "1", "2"})
				nodes[name] = map[string]string{"block": value.Draw(t, "block"), "rack": value.Draw(t, "rack")}
				d.setNode(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: nodes[name]}})
			case "remove":
				delete(nodes, name)
				delete(pods, name)
				d.removeNode(name)
			case "start":
				if d.use(name, 1); nodes[name] != nil {
					pods[name]++
				}
			case "end":
				if pods[name] > 0 {
					pods[name]--
					d.use(name, -1)
				}
			}
			want := make([]int, len(levels))
			for i, l := range levels {
				inUse := map[string]bool{}
				for node, labels := range nodes {
					if path, ok := l.Path(labels); ok {
						inUse[path] = inUse[path] || pods[node] > 0
					}
				}
				for _, used := range inUse {
					if !used {
						want[i]++
					}
				}
			}
			if diff := cmp.Diff(want, d.freeNow()); diff != "" {
				t.Fatalf("whole free domains (-want +got):\n%s", diff)
			}
		}
	})
}
