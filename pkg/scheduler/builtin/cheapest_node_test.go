// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// TestCheapestNode asserts where pods go with the sample policy cheapest-node.yaml.
func TestCheapestNode(t *testing.T) {
	text, err := os.ReadFile("../../../config/samples/policies/cheapest-node.yaml")
	if err != nil {
		t.Fatal(err)
	}
	weight := func(text string) NodeOption { return Label(v1alpha1.LabelNodeWeight, text) }
	for name, tc := range map[string]struct {
		given []Row
		want  string
	}{
		"the node with the lowest weight that fits": {
			given: Given(Node("a", "8cpu", weight("50")), Node("b", "8cpu", weight("20")), Node("c", "1cpu"), Queue("q", 1), Group("q/job", 1, Pending(1, "2cpu"))),
			want:  "bind q/job-0 b",
		},
		"a gang takes cheap nodes first, then the others": {
			given: Given(Node("a", "8cpu", weight("50")), Node("b", "2cpu"), Node("c", "3cpu", weight("20")), Queue("q", 1), Group("q/job", 6, Pending(6, "1cpu"))),
			want:  "bind q/job-0 b\nbind q/job-1 b\nbind q/job-2 c\nbind q/job-3 c\nbind q/job-4 c\nbind q/job-5 a",
		},
		"a difference of 20 outweighs packing and preferred affinity": {
			given: Given(Node("a", "8cpu 8gpu", weight("20"), Label("kind", "fast")), Node("b", "8cpu 8gpu"), Queue("q", 1),
				Group("q/old", 1, Running(1, "1cpu 7gpu", "a")), Group("q/job", 1, Pending(1, "1cpu 1gpu", PreferNodes(100, "kind", "fast")))),
			want: "bind q/job-0 b",
		},
		"a difference of 3 does not": {
			given: Given(Node("a", "8cpu 8gpu", weight("3"), Label("kind", "fast")), Node("b", "8cpu 8gpu"), Queue("q", 1),
				Group("q/old", 1, Running(1, "1cpu 7gpu", "a")), Group("q/job", 1, Pending(1, "1cpu 1gpu", PreferNodes(100, "kind", "fast")))),
			want: "bind q/job-0 a",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, New(t, BuiltIn(t), tc.given, WithConfig(string(text))).Cycle()); diff != "" {
				t.Errorf("transcript (-want +got):\n%s", diff)
			}
		})
	}
}
