package actions_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	. "github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// What one cycle takes back for a queue from others.
func TestReclaim(t *testing.T) {
	cases := map[string]struct {
		given []Row
		want  string
	}{
		"a guarantee that is held in part is filled up, and no more": {
			// What t deserves beyond its guarantee is less than a pod.
			given: Given(Node("n1", "10cpu"), Queue("g", 99), Queue("t", 1, Guarantee("4cpu")),
				Group("g/a", 1, Running(8, "1cpu", "n1")),
				Group("t/b", 1, Running(2, "1cpu", "n1"), Pending(8, "1cpu"))),
			want: `evict g/a-6 for t/b
			       evict g/a-7 for t/b
			       pipeline t/b-2 n1
			       pipeline t/b-3 n1`,
		},
		"guarantees that exceed the cluster are scaled down, for givers too": {
			given: Given(Node("n1", "4cpu"), Queue("g", 1, Guarantee("4cpu")), Queue("t", 1, Guarantee("4cpu")),
				Group("g/a", 1, Running(4, "1cpu", "n1")),
				Plain("b", OfQueue("t"), Pending(4, "1cpu"))),
			want: `evict g/a-2 for b-1
			       evict g/a-3 for b-0
			       pipeline b-0 n1
			       pipeline b-1 n1`,
		},
		"a gang stays without which its queue would fall below its guarantee": {
			given: Given(Node("n1", "8cpu"), Queue("g", 1, Guarantee("4cpu")), Queue("t", 9),
				Group("g/gang", 6, Running(6, "1cpu", "n1")),
				Group("t/b", 1, Running(2, "1cpu", "n1"), Pending(8, "1cpu"))),
			want: ``,
		},
		"a gang takes units of two queues": {
			given: Given(Node("n1", "12cpu"), Queue("q1", 1), Queue("q2", 1), Queue("t", 1),
				Group("q1/a", 1, Running(6, "1cpu", "n1")),
				Group("q2/b", 1, Running(6, "1cpu", "n1")),
				Group("t/gang", 4, Pending(4, "1cpu"))),
			want: `evict q1/a-4 for t/gang
			       evict q1/a-5 for t/gang
			       evict q2/b-4 for t/gang
			       evict q2/b-5 for t/gang
			       pipeline t/gang-0 n1
			       pipeline t/gang-1 n1
			       pipeline t/gang-2 n1
			       pipeline t/gang-3 n1`,
		},
		"single pods take units of two queues in one cycle": {
			given: Given(Node("n1", "12cpu"), Queue("q1", 1), Queue("q2", 1), Queue("t", 1),
				Group("q1/a", 1, Running(6, "1cpu", "n1")),
				Group("q2/b", 1, Running(6, "1cpu", "n1")),
				Plain("single", OfQueue("t"), Pending(9, "1cpu"))),
			want: `evict q1/a-4 for single-2
			       evict q1/a-5 for single-0
			       evict q2/b-4 for single-3
			       evict q2/b-5 for single-1
			       pipeline single-0 n1
			       pipeline single-1 n1
			       pipeline single-2 n1
			       pipeline single-3 n1`,
		},
		"a large pod takes what two queues have on one node": {
			given: Given(Node("n1", "4cpu"), Node("n2", "8cpu"), Queue("q1", 1), Queue("q2", 1), Queue("t", 1),
				Group("q1/a", 1, Running(2, "1cpu", "n1"), Running(4, "1cpu", "n2")),
				Group("q2/b", 1, Running(2, "1cpu", "n1"), Running(4, "1cpu", "n2")),
				Group("t/big", 1, Pending(1, "4cpu", NodeSelector(hostname, "n1")))),
			want: `evict q1/a-0 for t/big
			       evict q1/a-1 for t/big
			       evict q2/b-0 for t/big
			       evict q2/b-1 for t/big
			       pipeline t/big-0 n1`,
		},
		"who is not reclaimable gives what the guarantee of another needs": {
			given: Given(Node("n1", "8cpu"), Queue("g", 1, NotReclaimable()), Queue("t", 1, Guarantee("2cpu")),
				Group("g/a", 1, Running(8, "1cpu", "n1")),
				Plain("b", OfQueue("t"), Pending(8, "1cpu"))),
			want: `evict g/a-6 for b-1
			       evict g/a-7 for b-0
			       pipeline b-0 n1
			       pipeline b-1 n1`,
		},
		"and no more once the other holds its guarantee": {
			given: Given(Node("n1", "8cpu"), Queue("g", 1, NotReclaimable()), Queue("t", 1, Guarantee("2cpu")),
				Group("g/a", 1, Running(6, "1cpu", "n1")),
				Group("t/b", 1, Running(2, "1cpu", "n1"), Pending(8, "1cpu"))),
			want: ``,
		},
		"nor where others have borrowed, but elsewhere": {
			given: Given(Nodes(2, "n", "5cpu"), Queue("never", 1, NotReclaimable()), Queue("g", 1), Queue("t", 1, Guarantee("1cpu")),
				Group("never/a", 1, Running(4, "1cpu", "n1")),
				Group("g/b", 1, Running(5, "1cpu", "n2")),
				Group("t/c", 1, Running(1, "1cpu", "n1"), Pending(9, "1cpu", NodeSelector(hostname, "n1")))),
			want: ``,
		},
		"nor for a gang of which the guarantee needs only a part": {
			given: Given(Node("n1", "8cpu"), Queue("g", 1, NotReclaimable()), Queue("t", 1, Guarantee("2cpu")),
				Group("g/a", 1, Running(8, "1cpu", "n1")),
				Group("t/gang", 3, Pending(3, "1cpu"))),
			want: ``,
		},
		"nor for a guarantee of something else": {
			given: Given(Node("n1", "8cpu 8Gi"), Queue("g", 1, NotReclaimable()), Queue("t", 1, Guarantee("4Gi")),
				Group("g/a", 1, Running(8, "1cpu", "n1")),
				Group("t/b", 1, Pending(2, "1cpu 1Gi"))),
			want: ``,
		},
		"who is reclaimable gives first": {
			given: Given(Node("n1", "9cpu"), Queue("never", 1, NotReclaimable()), Queue("g", 1), Queue("t", 1, Guarantee("2cpu")),
				Group("never/a", 1, Running(6, "1cpu", "n1")),
				Group("g/b", 1, Running(3, "1cpu", "n1")),
				Plain("c", OfQueue("t"), Pending(9, "1cpu"))),
			want: `evict g/b-2 for c-0
			       evict never/a-5 for c-1
			       pipeline c-0 n1
			       pipeline c-1 n1`,
		},
		"the cluster's own pods stay, by namespace": {
			given: Given(Node("n1", "2cpu"), Queue("g", 1), Queue("t", 1),
				Group("g/dns", 1, In("kube-system"), Running(2, "1cpu", "n1")),
				Group("t/b", 1, Pending(1, "1cpu"))),
			want: ``,
		},
		"the cluster's own pods stay, by class, and with them the gang that they are in": {
			given: Given(Node("n1", "4cpu"), Queue("g", 1), Queue("t", 1),
				Group("g/gang", 4, Running(3, "1cpu", "n1"), Running(1, "1cpu", "n1", ofSystemClass)),
				Group("t/b", 1, Pending(1, "1cpu"))),
			want: ``,
		},
		"pods that belong to their node stay": {
			given: Given(Node("n1", "4cpu"), Queue("default", 1), Queue("t", 1),
				Plain("web", Running(2, "1cpu", "n1")),
				Plain("static", Running(1, "1cpu", "n1", mirror)),
				Plain("agent", Running(1, "1cpu", "n1", ofDaemonSet)),
				Group("t/b", 1, Pending(2, "2cpu"))),
			want: `evict web-0 for t/b
			       evict web-1 for t/b
			       pipeline t/b-0 n1`,
		},
		"pods that belong to their node stay, and nothing goes in vain": {
			given: Given(Node("n1", "3cpu"), Queue("default", 1), Queue("t", 3),
				Plain("agent", Running(2, "1cpu", "n1", ofDaemonSet)),
				Plain("web", Running(1, "1cpu", "n1")),
				Group("t/b", 1, Pending(1, "2cpu"))),
			want: ``,
		},
		"victims on a node that is not ready make no room": {
			given: Given(Node("n1", "2cpu", NotReady()), Node("n2", "2cpu"), Queue("g", 1), Queue("t", 1),
				Group("g/a", 1, Running(2, "1cpu", "n1"), Running(2, "1cpu", "n2")),
				Group("t/b", 1, Pending(1, "1cpu"))),
			want: `evict g/a-3 for t/b
			       pipeline t/b-0 n2`,
		},
		"nor do they if all are there": {
			given: Given(Node("n1", "2cpu", NotReady()), Node("n2", "1cpu"), Queue("g", 1), Queue("t", 1),
				Group("g/a", 1, Running(2, "1cpu", "n1")),
				Group("t/b", 1, Running(1, "1cpu", "n2"), Pending(1, "1cpu"))),
			want: ``,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			same(t, tc.want, Run(t, builtIn(t), tc.given, WithConfig(allFour)))
		})
	}
}

// What queues end with when one asks for what another has borrowed. After each cycle all binds are
// shown, and victims are gone and come back as new pods. A cycle is told by the numbers of its decisions
// and what queues hold after it.
func TestReclaimEndsAtWhatQueuesDeserve(t *testing.T) {
	cases := map[string]struct {
		given []Row
		want  []string // cycle by cycle
	}{
		"S21: a node that nobody tolerates is not shared out": {
			given: Given(Nodes(3, "n", "10cpu"), Node("tainted", "10cpu", Taint("dedicated=infra:NoSchedule")),
				Queue("g", 1), Queue("t", 1),
				Group("g/a", 1, Running(10, "1cpu", "n1"), Running(10, "1cpu", "n2"), Running(10, "1cpu", "n3")),
				Group("t/b", 1, Pending(30, "1cpu"))),
			want: []string{
				"evict g/a 1, pipeline t/b 1; g 29 cpu, t no resources", // first the gang of one
				"bind t/b 1, evict g/a 14, pipeline t/b 14; g 15 cpu, t 1 cpu",
				"bind t/b 14; g 15 cpu, t 15 cpu",
				"; g 15 cpu, t 15 cpu",
				"; g 15 cpu, t 15 cpu",
			},
		},
		"S22: a gang that can never fit keeps nothing from the others": {
			given: Given(Node("n1", "10cpu"), Queue("g", 1), Queue("t", 1), Queue("u", 1),
				Group("g/a", 1, Running(10, "1cpu", "n1")),
				Group("t/b", 1, Pending(10, "1cpu")),
				Group("u/never", 20, Pending(20, "1cpu"))),
			want: []string{
				"evict g/a 1, pipeline t/b 1; g 9 cpu, t no resources, u no resources",
				"bind t/b 1, evict g/a 4, pipeline t/b 4; g 5 cpu, t 1 cpu, u no resources",
				"bind t/b 4; g 5 cpu, t 5 cpu, u no resources",
				"; g 5 cpu, t 5 cpu, u no resources",
				"; g 5 cpu, t 5 cpu, u no resources",
			},
		},
		"who is not reclaimable ends at what the guarantee of the other leaves": {
			given: Given(Node("n1", "10cpu"), Queue("g", 1, NotReclaimable()), Queue("t", 1, Guarantee("3cpu")),
				Group("g/a", 1, Running(10, "1cpu", "n1")),
				Group("t/b", 1, Pending(10, "1cpu"))),
			want: []string{
				"evict g/a 1, pipeline t/b 1; g 9 cpu, t no resources",
				"bind t/b 1, evict g/a 2, pipeline t/b 2; g 7 cpu, t 1 cpu",
				"bind t/b 2; g 7 cpu, t 3 cpu",
				"; g 7 cpu, t 3 cpu",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := New(t, builtIn(t), tc.given, WithConfig(allFour))
			got := make([]string, 0, len(tc.want))
			for range tc.want {
				decided := inNumbers(c.Cycle())
				got = append(got, decided+"; "+holdings(c))
				c.ConfirmBinds()
				c.Start()
				leave(c, true)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("cycles (-want +got):\n%s", diff)
			}
		})
	}
}

// inNumbers says how many decisions of a transcript are about each group: "bind q/a 2, evict q/b 1".
func inNumbers(transcript string) string {
	counts := summary(transcript, false)
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprint(what, " ", counts[what]))
	}
	return strings.Join(parts, ", ")
}

func holdings(c *Cluster) string {
	var parts []string
	for _, queue := range c.Queues() {
		parts = append(parts, queue+" "+c.Held(queue))
	}
	return strings.Join(parts, ", ")
}

var ofSystemClass = Mutate(func(p *v1.Pod) { p.Spec.PriorityClassName = "system-cluster-critical" })

var mirror = Annotation(v1.MirrorPodAnnotationKey, "by the kubelet")

var ofDaemonSet = Mutate(func(p *v1.Pod) {
	yes := true
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", UID: "agent", Controller: &yes}}
})
