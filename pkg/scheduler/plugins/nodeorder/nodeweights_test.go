// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package nodeorder

import (
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

func weighs(text string) change[v1.Node] { return label(v1alpha1.LabelNodeWeight, text) }

// TestNodeWeightsFollowNodes adds, changes and deletes nodes at random, and compares the scores of each session with the labels.
func TestNodeWeightsFollowNodes(t *testing.T) {
	t.Parallel()
	profile := profile(t, only("nodeweight"))
	rapid.Check(t, func(t *rapid.T) {
		cluster := newCluster(nil, []*v1.Pod{pod("p", resourceAmounts{})})
		for range rapid.IntRange(1, 20).Draw(t, "sessions") {
			for range rapid.IntRange(0, 3).Draw(t, "changes") {
				name := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "node")
				switch text := rapid.SampledFrom([]string{"deleted", "none", "0", "1", "99", "100", "101", "x"}).Draw(t, "weight"); text {
				case "deleted":
					cluster.Events().DeleteNode(name)
				case "none":
					cluster.Events().SetNode(node(name, resourceAmounts{}))
				default:
					cluster.Events().SetNode(node(name, resourceAmounts{}, weighs(text)))
				}
			}
			cluster.Events().Recompute()
			ssn := profile.Open(cluster, nil, logr.Discard())
			for _, n := range cluster.Nodes() {
				if n == nil {
					continue
				}
				weight, _ := weightOf(n.Node)
				want := api.OneScore / 100 * api.Score(100-weight)
				if got := ssn.NodeScore(taskNamed(cluster, "p"), n); got != want {
					t.Fatalf("score of node %s with %v: got %d, want %d", n.Name, n.Node.Labels, got, want)
				}
			}
			ssn.Close()
		}
	})
}

// TestInvalidNodeWeightIsLoggedOnce: each value of a node is logged in the session that sees it first.
func TestInvalidNodeWeightIsLoggedOnce(t *testing.T) {
	t.Parallel()
	var lines []string
	log := funcr.New(func(_, args string) {
		if _, keys, is := strings.Cut(args, `"node"=`); is && strings.Contains(args, `"level"=0 "msg"="Node weight is invalid, 0 is used"`) {
			lines = append(lines, keys)
		}
	}, funcr.Options{})
	invalid := func(node, value string) string {
		return `{"name"="` + node + `"} "label"="scheduling.batch-scheduler.dev/weight" "value"="` + value + `" "maximum"=100`
	}
	profile, cluster := profile(t, only("nodeweight")), newCluster(nil, nil)
	for _, step := range []struct {
		sentence string
		nodes    []*v1.Node
		deleted  string
		want     []string
	}{
		{sentence: "an invalid weight", nodes: []*v1.Node{node("a", nil, weighs("high")), node("b", nil, weighs("7"))}, want: []string{invalid("a", "high")}},
		{sentence: "nothing changes"},
		{sentence: "another label changes", nodes: []*v1.Node{node("a", nil, weighs("high"), label("x", "y"))}},
		{sentence: "another invalid weight", nodes: []*v1.Node{node("a", nil, weighs("101"))}, want: []string{invalid("a", "101")}},
		{sentence: "a valid weight", nodes: []*v1.Node{node("a", nil, weighs("1"))}},
		{sentence: "the invalid weight again", nodes: []*v1.Node{node("a", nil, weighs("101"))}, want: []string{invalid("a", "101")}},
		{sentence: "the node is deleted", deleted: "a"},
		{sentence: "a node like it in its place", nodes: []*v1.Node{node("c", nil, weighs("101"))}, want: []string{invalid("c", "101")}},
	} {
		lines = nil
		for _, n := range step.nodes {
			cluster.Events().SetNode(n)
		}
		if step.deleted != "" {
			cluster.Events().DeleteNode(step.deleted)
		}
		cluster.Events().Recompute()
		for range 2 {
			profile.Open(cluster, nil, log).Close()
		}
		if diff := cmp.Diff(step.want, lines); diff != "" {
			t.Errorf("%s: log (-want +got):\n%s", step.sentence, diff)
		}
	}
}
