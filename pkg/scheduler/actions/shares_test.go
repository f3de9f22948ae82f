package actions_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// How many pods of each group one cycle binds, where shares decide.
func TestShares(t *testing.T) {
	for name, tc := range map[string]struct {
		given []Row
		want  string
	}{
		"drf: two jobs end at equal dominant shares": { // Ghodsi et al., section 4.1
			given: Given(
				Node("n1", "9cpu 18Gi"), Queue("q", 1),
				Group("q/a", 1, Pending(9, "1cpu 4Gi")),
				Group("q/b", 1, Pending(9, "3cpu 1Gi")),
			),
			want: "a 3, b 2",
		},
		"drf: three jobs, one of them with devices": {
			given: Given(
				Node("n1", "96cpu 384Gi 8gpu"), Queue("q", 1),
				Group("q/a", 1, Pending(20, "4cpu 16Gi 1gpu")),
				Group("q/b", 1, Pending(20, "8cpu 16Gi")),
				Group("q/c", 1, Pending(20, "2cpu 48Gi")),
			),
			want: "a 5, b 7, c 4",
		},
		"proportion: by weight": {
			given: Given(
				Nodes(2, "n", "6cpu"), Queue("one", 1), Queue("three", 3),
				Group("one/a", 1, Pending(12, "1cpu")),
				Group("three/b", 1, Pending(12, "1cpu")),
			),
			want: "a 3, b 9",
		},
		"proportion: what one does not ask for is lent": {
			given: Given(
				Node("n1", "12cpu"), Queue("q1", 1), Queue("q2", 1),
				Group("q1/a", 1, Pending(2, "1cpu")),
				Group("q2/b", 1, Pending(12, "1cpu")),
			),
			want: "a 2, b 10",
		},
		"proportion: a gang that can never fit keeps no share from others": {
			given: Given(
				Node("n1", "10cpu"), Queue("q1", 1), Queue("q2", 1), Queue("q3", 1),
				Group("q1/a", 1, Pending(10, "1cpu")),
				Group("q2/b", 1, Pending(10, "1cpu")),
				Group("q3/never", 20, Pending(20, "1cpu")),
			),
			want: "a 5, b 5",
		},
		"proportion: gated pods ask for nothing": {
			given: Given(
				Node("n1", "10cpu"), Queue("q1", 1), Queue("q2", 1), Queue("q3", 1),
				Group("q1/a", 1, Pending(10, "1cpu")),
				Group("q2/b", 1, Pending(10, "1cpu")),
				Group("q3/gated", 1, Gated(10, "1cpu")),
			),
			want: "a 5, b 5",
		},
		"proportion: a node that nobody tolerates is not shared out": {
			given: Given(
				Nodes(3, "n", "10cpu"), Node("tainted", "10cpu", Taint("dedicated=infra:NoSchedule")),
				Queue("q1", 1), Queue("q2", 1),
				Group("q1/a", 1, Pending(40, "1cpu")),
				Group("q2/b", 1, Pending(40, "1cpu")),
			),
			want: "a 15, b 15",
		},
		"proportion: a guarantee comes before weights": {
			given: Given(
				Node("n1", "12cpu"), Queue("q1", 5), Queue("q2", 1, Guarantee("6cpu")),
				Group("q1/a", 1, Pending(12, "1cpu")),
				Group("q2/b", 1, Pending(12, "1cpu")),
			),
			want: "a 5, b 7",
		},
		"proportion: a capability is never exceeded": {
			given: Given(
				Node("n1", "12cpu"), Queue("q", 1, Capability("5cpu")),
				Group("q/a", 1, Pending(12, "1cpu")),
			),
			want: "a 5",
		},
		"proportion: what is being deleted still counts against a capability": {
			given: Given(
				Node("n1", "12cpu"), Queue("q", 1, Capability("5cpu")),
				Group("q/a", 1, Releasing(2, "1cpu", "n1"), Pending(12, "1cpu")),
			),
			want: "a 3",
		},
		"proportion: a queue that gives nothing back does not borrow": {
			given: Given(
				Node("n1", "12cpu"), Queue("q1", 1), Queue("q2", 1, NotReclaimable()),
				Group("q1/a", 4, Pending(4, "1cpu", NodeSelector("no", "node"))),
				Group("q2/b", 1, Pending(12, "1cpu")),
			),
			want: "b 12",
		},
		"proportion: the short dimension decides who stands back": {
			// Both queues deserve 2 of 4 gpus. Holder has all the cpus it deserves, but no gpu;
			// cpus are plenty, so it may take gpus before anybody borrows.
			given: Given(
				Node("cpus", "40cpu"), Node("gpus", "8cpu 4gpu"),
				Queue("holder", 1), Queue("other", 1),
				Group("holder/cpus", 1, Running(20, "1cpu", "cpus")),
				Group("holder/a", 1, Pending(4, "1cpu 1gpu")),
				Group("other/b", 1, Pending(4, "1cpu 1gpu")),
			),
			want: "a 2, b 2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, countBinds(Run(t, builtIn(t), tc.given))); diff != "" {
				t.Errorf("bound pods of each group (-want +got):\n%s", diff)
			}
		})
	}
}

// countBinds sums a transcript up by group.
func countBinds(transcript string) string {
	counts := map[string]int{}
	for line := range strings.Lines(transcript) {
		words := strings.Fields(line)
		if len(words) == 3 && words[0] == "bind" {
			_, name, _ := strings.Cut(words[1], "/")
			group := name[:strings.LastIndex(name, "-")]
			counts[group]++
		}
	}
	var parts []string
	for group, n := range counts {
		parts = append(parts, fmt.Sprintf("%s %d", group, n))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}
