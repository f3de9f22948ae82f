// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// policyForGPUs is the sample policy gpu.yaml.
func policyForGPUs(t *testing.T) Option {
	t.Helper()
	text, err := os.ReadFile("../../../config/samples/policies/gpu.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return WithConfig(string(text))
}

// TestPolicyForGPUs asserts where single pods go with the sample policy for GPUs.
func TestPolicyForGPUs(t *testing.T) {
	running := Rows(Queue("q", 1),
		// The frequent types: pods of 1, 4 and 8 GPUs.
		Plain("ones", OfQueue("q"), Running(1, "8cpu 1gpu", "b"), Running(5, "8cpu 1gpu", "c")),
		Plain("fours", OfQueue("q"), Running(1, "32cpu 4gpu", "d")),
		Plain("eights", OfQueue("q"), Running(1, "64cpu 8gpu", "full1"), Running(1, "64cpu 8gpu", "full2")),
	)
	nodes := Rows(
		Node("a", "64cpu 8gpu"), Node("b", "64cpu 8gpu"), Node("c", "64cpu 8gpu"), Node("d", "64cpu 8gpu"),
		Node("full1", "64cpu 8gpu"), Node("full2", "64cpu 8gpu"),
	)
	for name, tc := range map[string]struct {
		given []Row
		want  map[string]int
	}{
		"a pod of 1 GPU goes where no pod of 4 fits any more": {
			given: Given(nodes, running, Group("q/new", 1, Pending(1, "8cpu 1gpu"))),
			want:  map[string]int{"bind q/new c": 1},
		},
		"a pod of 4 GPUs goes where exactly 4 are left": {
			given: Given(nodes, running, Group("q/new", 1, Pending(1, "32cpu 4gpu"))),
			want:  map[string]int{"bind q/new d": 1},
		},
		"a pod of 8 GPUs has the empty node": {
			given: Given(nodes, running, Group("q/new", 1, Pending(1, "64cpu 8gpu"))),
			want:  map[string]int{"bind q/new a": 1},
		},
		"FR4: a gang without GPUs goes to the nodes without GPUs": {
			given: Given(Nodes(10, "gpu", "64cpu 512Gi 8gpu"), Nodes(2, "plain", "64cpu 512Gi"), Queue("q", 1),
				Group("q/train", 1, Running(1, "8cpu 64Gi 1gpu", "gpu1")),
				Group("q/new", 16, Pending(16, "8cpu 32Gi"))),
			want: map[string]int{"bind q/new plain1": 8, "bind q/new plain2": 8},
		},
	} {
		t.Run(name, func(t *testing.T) {
			transcript := New(t, BuiltIn(t), tc.given, policyForGPUs(t)).Cycle()
			if diff := cmp.Diff(tc.want, CountDecisions(transcript, true)); diff != "" {
				t.Errorf("(-want +got):\n%s\n%s", diff, transcript)
			}
		})
	}
}

// TestVictimsLeaveFewFragments has two nodes where one pod each would be evicted for a pod of 1 GPU: one of 4 GPUs, whose other
// three would be of no use to most pods, or one of 1 GPU.
func TestVictimsLeaveFewFragments(t *testing.T) {
	text, err := os.ReadFile("../../../config/samples/policies/gpu.yaml")
	if err != nil {
		t.Fatal(err)
	}
	given := Given(Node("a", "64cpu 8gpu"), Node("b", "64cpu 8gpu"), Queue("q", 1), PriorityClass("high", 1),
		Group("q/fours", 1, Running(1, "8cpu 4gpu", "a"), Class("high")),
		Group("q/sevens", 1, Running(1, "8cpu 7gpu", "b"), Class("high")),
		Group("q/one", 1, Running(1, "8cpu 1gpu", "b")),
		Group("q/four", 1, Running(1, "8cpu 4gpu", "a")), // younger, which counts without the plugin
		Group("q/new", 1, Pending(1, "8cpu 1gpu"), Class("high")))
	for name, tc := range map[string]struct{ weight, want string }{
		"with the plugin":    {"fragmentation.weight: 100", "evict q/one"},
		"without the plugin": {"fragmentation.weight: 0", "evict q/four"},
	} {
		t.Run(name, func(t *testing.T) {
			policy := strings.NewReplacer("allocate, backfill", "allocate, backfill, preempt", "fragmentation.weight: 100", tc.weight).Replace(string(text))
			transcript := New(t, BuiltIn(t), given, WithConfig(policy)).Cycle()
			if CountDecisions(transcript, false)[tc.want] != 1 {
				t.Errorf("want %s:\n%s", tc.want, transcript)
			}
		})
	}
}
