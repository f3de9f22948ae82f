// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package nodeorder

import (
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
)

func only(scorer string) map[string]string { return map[string]string{scorer: "1"} }

func TestScores(t *testing.T) {
	const (
		gpu     = v1.ResourceName("nvidia.com/gpu")
		nic     = v1.ResourceName("example.com/nic")
		zoneKey = v1.LabelTopologyZone
		mib     = 1 << 20
	)
	four, eight := resourceAmounts{"cpu": "4", "memory": "8Gi", gpu: "4"}, resourceAmounts{"cpu": "8", "memory": "8Gi", gpu: "8", nic: "8"}
	nothing := resourceAmounts{}
	zones := []*v1.Node{
		node("a1", four, label(zoneKey, "a")), node("a2", four, label(zoneKey, "a")),
		node("b1", four, label(zoneKey, "b")), node("nowhere", four),
	}
	spread := v1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: zoneKey, LabelSelector: apps("x")}
	tests := map[string]struct {
		weights map[string]string
		nodes   []*v1.Node
		pods    []*v1.Pod
		want    map[string]int
	}{
		"least requested is the mean of the free fractions": {
			weights: only("leastrequested"),
			nodes:   []*v1.Node{node("empty", four), node("used", four)},
			pods:    []*v1.Pod{pod("p", resourceAmounts{"cpu": "1", "memory": "2Gi"}), pod("r", resourceAmounts{"cpu": "2", "memory": "2Gi"}, on("used"))},
			want:    map[string]int{"empty": 750, "used": 375}, // (3/4 + 6/8)/2, (1/4 + 4/8)/2
		},
		"most requested is the mean of the used fractions": {
			weights: only("mostrequested"),
			nodes:   []*v1.Node{node("empty", four), node("used", four)},
			pods:    []*v1.Pod{pod("p", resourceAmounts{"cpu": "1", "memory": "2Gi"}), pod("r", resourceAmounts{"cpu": "2", "memory": "2Gi"}, on("used"))},
			want:    map[string]int{"empty": 250, "used": 625},
		},
		"extended resources count for pods that request them": {
			weights: only("leastrequested"),
			nodes:   []*v1.Node{node("empty", four), node("used", four)},
			pods:    []*v1.Pod{pod("p", resourceAmounts{gpu: "1"}), pod("r", resourceAmounts{gpu: "3"}, on("used"))},
			want:    map[string]int{"empty": 916, "used": 666}, // (1 + 1 + 3/4)/3, (1 + 1 + 0)/3
		},
		"extended resources do not count for other pods": {
			weights: only("leastrequested"),
			nodes:   []*v1.Node{node("empty", four), node("used", four)},
			pods:    []*v1.Pod{pod("p", nothing), pod("r", resourceAmounts{gpu: "3"}, on("used"))},
			want:    map[string]int{"empty": 1000, "used": 1000},
		},
		"pods without requests use no resources": {
			weights: only("leastrequested"),
			nodes:   []*v1.Node{node("n", four)},
			pods:    []*v1.Pod{pod("p", resourceAmounts{"cpu": "2", "memory": "4Gi"}), pod("r", nothing, on("n"))},
			want:    map[string]int{"n": 500},
		},
		"an overcommitted node has no free resources": {
			weights: only("leastrequested"),
			nodes:   []*v1.Node{node("n", four)},
			pods:    []*v1.Pod{pod("p", resourceAmounts{"cpu": "1"}), pod("r", resourceAmounts{"cpu": "9", "memory": "9Gi"}, on("n"))},
			want:    map[string]int{"n": 0},
		},
		"a dimension that the node does not have is ignored": {
			weights: map[string]string{"leastrequested": "1", "mostrequested": "1", "balancedresource": "1"},
			nodes:   []*v1.Node{node("bare", nothing), node("cpus", resourceAmounts{"cpu": "4"})},
			pods:    []*v1.Pod{pod("p", resourceAmounts{"cpu": "1"})},
			want:    map[string]int{"bare": 1000, "cpus": 2000}, // bare is balanced only
		},
		"balance includes the requests of the pod": {
			weights: only("balancedresource"),
			nodes:   []*v1.Node{node("empty", four), node("cpus", four), node("memory", four)},
			pods: []*v1.Pod{
				pod("p", resourceAmounts{"cpu": "1"}), pod("r", resourceAmounts{"cpu": "1"}, on("cpus")), pod("s", resourceAmounts{"memory": "2Gi"}, on("memory")),
			},
			want: map[string]int{"empty": 750, "cpus": 500, "memory": 1000},
		},
		"balance is the difference between the extremes": {
			weights: only("balancedresource"),
			nodes:   []*v1.Node{node("n", four)},
			pods:    []*v1.Pod{pod("p", resourceAmounts{"cpu": "1", "memory": "6Gi", gpu: "2"})},
			want:    map[string]int{"n": 500}, // used are 1/4, 3/4 and 1/2
		},
		"balance does not apply to pods without requests": {
			weights: only("balancedresource"),
			nodes:   []*v1.Node{node("empty", four), node("cpus", four)},
			pods:    []*v1.Pod{pod("p", nothing), pod("r", resourceAmounts{"cpu": "1"}, on("cpus"))},
			want:    map[string]int{"empty": 0, "cpus": 0},
		},
		"packing is the mean of the used fractions of the extended resources": {
			weights: only("extendedpacking"),
			nodes: []*v1.Node{
				node("empty", eight), node("used", eight), node("small", resourceAmounts{"cpu": "4", "memory": "8Gi", gpu: "2", nic: "2"}),
				node("none", resourceAmounts{"cpu": "4", "memory": "8Gi"}),
			},
			pods: []*v1.Pod{pod("p", resourceAmounts{"cpu": "4", gpu: "1", nic: "1"}), pod("r", resourceAmounts{"cpu": "3", gpu: "3"}, on("used"))},
			want: map[string]int{"empty": 125, "used": 312, "small": 500, "none": 0}, // (1/8 + 1/8)/2, (4/8 + 1/8)/2, (1/2 + 1/2)/2
		},
		"packing does not apply to pods without extended resources": {
			weights: only("extendedpacking"),
			nodes:   []*v1.Node{node("empty", eight), node("used", eight)},
			pods:    []*v1.Pod{pod("p", resourceAmounts{"cpu": "1"}), pod("r", resourceAmounts{gpu: "3"}, on("used"))},
			want:    map[string]int{"empty": 0, "used": 0},
		},
		"node weights: lower is better, and none is 0": {
			weights: only("nodeweight"),
			nodes: []*v1.Node{
				node("none", four), node("zero", four, label(v1alpha1.LabelNodeWeight, "0")), node("cheap", four, label(v1alpha1.LabelNodeWeight, "20")),
				node("dear", four, label(v1alpha1.LabelNodeWeight, "100")),
			},
			pods: []*v1.Pod{pod("p", resourceAmounts{gpu: "1"})},
			want: map[string]int{"none": 1000, "zero": 1000, "cheap": 800, "dear": 0},
		},
		"node weights: what is no weight is 0": {
			weights: only("nodeweight"),
			nodes: []*v1.Node{
				node("above", four, label(v1alpha1.LabelNodeWeight, "101")), node("below", four, label(v1alpha1.LabelNodeWeight, "-1")),
				node("word", four, label(v1alpha1.LabelNodeWeight, "high")), node("empty", four, label(v1alpha1.LabelNodeWeight, "")),
				node("fraction", four, label(v1alpha1.LabelNodeWeight, "0.5")),
			},
			pods: []*v1.Pod{pod("p", nothing)},
			want: map[string]int{"above": 1000, "below": 1000, "word": 1000, "empty": 1000, "fraction": 1000},
		},
		"pods without extended resources avoid the nodes that have them": {
			weights: only("extendedavoidance"),
			nodes: []*v1.Node{
				node("none", resourceAmounts{"cpu": "4", "hugepages-2Mi": "1Gi", "ephemeral-storage": "1Gi"}), node("broken", resourceAmounts{"cpu": "4", gpu: "0"}),
				node("one", four), node("two", eight),
			},
			pods: []*v1.Pod{pod("p", resourceAmounts{"cpu": "1", "hugepages-2Mi": "2Mi"})},
			want: map[string]int{"none": 1000, "broken": 1000, "one": 500, "two": 333},
		},
		"pods with extended resources avoid no nodes": {
			weights: only("extendedavoidance"),
			nodes:   []*v1.Node{node("none", resourceAmounts{"cpu": "4"}), node("two", eight)},
			pods:    []*v1.Pod{pod("p", resourceAmounts{nic: "1"})},
			want:    map[string]int{"none": 0, "two": 0},
		},
		"pods with resource claims avoid no nodes": {
			weights: only("extendedavoidance"),
			nodes:   []*v1.Node{node("none", resourceAmounts{"cpu": "4"}), node("two", eight)},
			pods: []*v1.Pod{pod("p", nothing, func(p *v1.Pod) {
				p.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: "c", ResourceClaimName: new("c")}}
			})},
			want: map[string]int{"none": 0, "two": 0},
		},
		"preferred node affinity is a fraction of the pod's own weights": {
			weights: only("nodeaffinity"),
			nodes:   []*v1.Node{node("both", four, label("disk", "ssd"), label("net", "fast")), node("one", four, label("disk", "ssd")), node("none", four)},
			pods:    []*v1.Pod{pod("p", nothing, prefers(30, "disk", "ssd"), prefers(10, "net", "fast"))},
			want:    map[string]int{"both": 1000, "one": 750, "none": 0},
		},
		"each soft taint that is not tolerated counts": {
			weights: only("tainttoleration"),
			nodes:   []*v1.Node{node("none", four), node("one", four, softTaint("a"), softTaint("b")), node("two", four, softTaint("b"), softTaint("c"))},
			pods:    []*v1.Pod{pod("p", nothing, tolerates("a"))},
			want:    map[string]int{"none": 1000, "one": 500, "two": 333},
		},
		"taints of effect NoSchedule do not count": {
			weights: only("tainttoleration"),
			nodes: []*v1.Node{node("n", four, func(n *v1.Node) {
				n.Spec.Taints = []v1.Taint{{Key: "a", Effect: v1.TaintEffectNoSchedule}}
			})},
			pods: []*v1.Pod{pod("p", nothing)},
			want: map[string]int{"n": 1000},
		},
		"preferred pod affinity is satisfied in the whole domain": {
			weights: only("podaffinity"),
			nodes:   zones,
			pods:    []*v1.Pod{pod("p", nothing, preferredAffinity(weighted(1, apps("x"), zoneKey))), pod("r", nothing, app("x"), on("a1"))},
			want:    map[string]int{"a1": 1000, "a2": 1000, "b1": 0, "nowhere": 0},
		},
		"preferred pod anti-affinity is satisfied in a domain without matching pods": {
			weights: only("podaffinity"),
			nodes:   zones,
			pods:    []*v1.Pod{pod("p", nothing, preferredAntiAffinity(weighted(1, apps("x"), zoneKey))), pod("r", nothing, app("x"), on("a1"))},
			want:    map[string]int{"a1": 0, "a2": 0, "b1": 1000, "nowhere": 1000},
		},
		"preferred pod terms are a fraction of the pod's own weights": {
			weights: only("podaffinity"),
			nodes:   zones,
			pods: []*v1.Pod{
				pod("p", nothing, preferredAffinity(weighted(60, apps("x"), zoneKey), weighted(20, apps("y"), zoneKey)), preferredAntiAffinity(weighted(20, apps("z"), v1.LabelHostname))),
				pod("r", nothing, app("x"), on("a1")), pod("s", nothing, app("y"), on("b1")), pod("t", nothing, app("z"), on("a1")),
			},
			want: map[string]int{"a1": 600, "a2": 800, "b1": 400, "nowhere": 200},
		},
		"pending pods do not satisfy preferred affinity": {
			weights: only("podaffinity"),
			nodes:   []*v1.Node{node("n", four)},
			pods:    []*v1.Pod{pod("p", nothing, app("x"), preferredAffinity(weighted(1, apps("x"), v1.LabelHostname)))},
			want:    map[string]int{"n": 0},
		},
		"the domain with the fewest pods has the best score": {
			weights: only("podtopologyspread"),
			nodes:   append(zones, node("c1", four, label(zoneKey, "c"))),
			pods: []*v1.Pod{
				pod("p", nothing, app("x"), spreads(spread)), pod("b", nothing, app("x"), on("b1")), pod("c", nothing, app("x"), on("c1")),
				pod("r", nothing, app("x"), on("a1")), pod("s", nothing, app("x"), on("a2")), pod("t", nothing, app("other"), on("b1")),
			},
			want: map[string]int{"a1": 500, "a2": 500, "b1": 1000, "c1": 1000, "nowhere": 0},
		},
		"terminating pods do not count for spread": {
			weights: only("podtopologyspread"),
			nodes:   zones,
			pods:    []*v1.Pod{pod("p", nothing, app("x"), spreads(spread)), pod("r", nothing, app("x"), on("a1"), deleted)},
			want:    map[string]int{"a1": 1000, "a2": 1000, "b1": 1000, "nowhere": 0},
		},
		"nodes with taints that the pod does not tolerate count unless its policy honors taints": {
			weights: only("podtopologyspread"),
			nodes:   []*v1.Node{node("a1", four, label(zoneKey, "a")), node("b1", four, label(zoneKey, "b"), func(n *v1.Node) { n.Spec.Taints = []v1.Taint{{Key: "t", Effect: v1.TaintEffectNoSchedule}} })},
			pods: []*v1.Pod{
				pod("p", nothing, app("x"), spreads(spread), spreads(v1.TopologySpreadConstraint{
					MaxSkew: 1, TopologyKey: zoneKey, LabelSelector: apps("x"), NodeTaintsPolicy: ptr.To(v1.NodeInclusionPolicyHonor),
				})),
				pod("r", nothing, app("x"), on("a1")),
			},
			want: map[string]int{"a1": 750, "b1": 1000}, // 1/2 where the empty zone b counts, 1 where it does not
		},
		"images count between small and large": {
			weights: only("imagelocality"),
			nodes: []*v1.Node{
				node("large", four, hasImage(2000*mib, "app:latest", "app@sha256:1")), node("half", four, hasImage(23*mib+977*mib/2, "app:latest")),
				node("small", four, hasImage(20*mib, "app:latest")), node("other", four, hasImage(2000*mib, "app:1")),
			},
			pods: []*v1.Pod{pod("p", nothing)},
			want: map[string]int{"large": 1000, "half": 500, "small": 0, "other": 0},
		},
		"weights multiply and add up": {
			weights: map[string]string{"leastrequested": "3", "tainttoleration": "10"},
			nodes:   []*v1.Node{node("n", four, softTaint("a"))},
			pods:    []*v1.Pod{pod("p", resourceAmounts{"cpu": "2", "memory": "4Gi"})},
			want:    map[string]int{"n": 6500},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			ssn, _ := given{weights: tt.weights, nodes: tt.nodes, pods: tt.pods}.open(t)
			expect(t, tt.want, scores(ssn, "p"))
		})
	}
}

func TestCountsAreUpdatedIncrementally(t *testing.T) {
	four := resourceAmounts{"cpu": "4", "memory": "8Gi"}
	zone := func(name string) change[v1.Node] { return label(v1.LabelTopologyZone, name) }
	cluster := newCluster(
		[]*v1.Node{node("a1", four, zone("a")), node("b1", four, zone("b"))},
		[]*v1.Pod{
			pod("p", resourceAmounts{}, app("x"), preferredAffinity(weighted(1, apps("x"), v1.LabelTopologyZone)),
				spreads(v1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: v1.LabelTopologyZone, LabelSelector: apps("x")})),
			pod("q", resourceAmounts{}, app("x")),
		})
	profile := profile(t, map[string]string{"podaffinity": "2", "podtopologyspread": "1"})
	ssn := profile.Open(cluster, nil, logr.Discard())
	expect(t, map[string]int{"a1": 1000, "b1": 1000}, scores(ssn, "p"))

	statement := ssn.Statement()
	statement.Allocate(taskNamed(cluster, "q"), cluster.Node("a1"))
	expect(t, map[string]int{"a1": 2500, "b1": 1000}, scores(ssn, "p"))
	statement.Discard()
	expect(t, map[string]int{"a1": 1000, "b1": 1000}, scores(ssn, "p"))
	ssn.Close()

	cluster.Events().SetPod(pod("q", resourceAmounts{}, app("x"), on("b1")))
	cluster.Events().SetNode(node("a1", four, zone("b"))) // moves to the other zone
	cluster.Events().SetNode(node("c1", four, zone("c")))
	ssn = profile.Open(cluster, nil, logr.Discard())
	expect(t, map[string]int{"a1": 2500, "b1": 2500, "c1": 1000}, scores(ssn, "p"))
	ssn.Close()

	cluster.Events().DeleteNode("c1")
	ssn = profile.Open(cluster, nil, logr.Discard())
	expect(t, map[string]int{"a1": 3000, "b1": 3000}, scores(ssn, "p"))
	ssn.Close()

	// The model is rebuilt after a failed cycle.
	former := taskNamed(cluster, "p").Pod
	cluster = newCluster([]*v1.Node{node("d1", four, zone("d")), node("e1", four, zone("e"))}, []*v1.Pod{former, pod("r", resourceAmounts{}, app("x"), on("e1"))})
	ssn = profile.Open(cluster, nil, logr.Discard())
	expect(t, map[string]int{"d1": 1000, "e1": 2500}, scores(ssn, "p"))
	ssn.Close()
}

func TestScoresUseTheSignatureOfTheTask(t *testing.T) {
	four := resourceAmounts{"cpu": "4", "memory": "8Gi"}
	ssn, _ := given{
		weights: only("nodeaffinity"),
		nodes:   []*v1.Node{node("n1", four, label("disk", "ssd")), node("n2", four)},
		pods:    []*v1.Pod{pod("p", resourceAmounts{}, prefers(1, "disk", "ssd")), pod("q", resourceAmounts{})},
	}.open(t)
	expect(t, map[string]int{"n1": 1000, "n2": 0}, scores(ssn, "p"))
	expect(t, map[string]int{"n1": 0, "n2": 0}, scores(ssn, "q"))
	expect(t, map[string]int{"n1": 1000, "n2": 0}, scores(ssn, "p"))
}

func TestScoreAllocations(t *testing.T) {
	all := map[string]string{}
	for _, w := range new(Arguments).weights() {
		all[w.key[:len(w.key)-len(".weight")]] = "1"
	}
	ssn, cluster := given{
		weights: all,
		nodes:   []*v1.Node{node("n", resourceAmounts{"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "8"}, softTaint("a"), hasImage(1, "b"))},
		pods: []*v1.Pod{
			pod("p", resourceAmounts{"cpu": "1", "nvidia.com/gpu": "1"}, tolerates("b")), pod("q", resourceAmounts{"memory": "1Gi"}, app("x")),
			pod("r", resourceAmounts{}, on("n")),
		},
	}.open(t)
	p, q, n := taskNamed(cluster, "p"), taskNamed(cluster, "q"), cluster.Node("n")
	score := func() {
		ssn.NodeScore(p, n)
		ssn.NodeScore(q, n)
	}
	if allocated := testing.AllocsPerRun(100, score); allocated > 0 {
		t.Errorf("%v allocations per score, want none", allocated)
	}
}

func TestArguments(t *testing.T) {
	tests := map[string]struct {
		given conf.Arguments
		want  Arguments
		error string
	}{
		"defaults": {
			want: Arguments{LeastRequested: 1, BalancedResource: 1, ExtendedPacking: 5, ExtendedAvoidance: 5, NodeAffinity: 1, PodAffinity: 1, TaintToleration: 1, PodTopologySpread: 1},
		},
		"all of them": {
			given: conf.Arguments{
				"leastrequested.weight": "0", "mostrequested.weight": "1", "balancedresource.weight": "2", "nodeaffinity.weight": "3",
				"podaffinity.weight": "4", "tainttoleration.weight": "5", "podtopologyspread.weight": "6", "imagelocality.weight": "100",
				"extendedpacking.weight": "7", "extendedavoidance.weight": "8", "topologypacking.weight": "9", "topologypacking.topology": "default",
				"nodeweight.weight": "10",
			},
			want: Arguments{
				MostRequested: 1, BalancedResource: 2, NodeAffinity: 3, PodAffinity: 4, TaintToleration: 5, PodTopologySpread: 6, ImageLocality: 100,
				ExtendedPacking: 7, ExtendedAvoidance: 8, TopologyPacking: 9, Topology: "default", NodeWeight: 10,
			},
		},
		"a negative weight": {
			given: conf.Arguments{"nodeaffinity.weight": "-1"},
			error: `arguments[nodeaffinity.weight]: Invalid value: "-1": must be a whole number from 0 to 100`,
		},
		"a weight that is too large": {
			given: conf.Arguments{"nodeaffinity.weight": "101"},
			error: `arguments[nodeaffinity.weight]: Invalid value: "101": must be a whole number from 0 to 100`,
		},
		"an unknown argument": {
			given: conf.Arguments{"nodeafinity.weight": "1"},
			error: `arguments[nodeafinity.weight]: Forbidden: no such argument; did you mean "nodeaffinity.weight"?`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			d := tt.given.Decoder(field.NewPath("arguments"))
			got, text := decode(d), ""
			if err := d.Done().ToAggregate(); err != nil {
				text = err.Error()
			} else if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("arguments (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.error, text); diff != "" {
				t.Errorf("complaint (-want +got):\n%s", diff)
			}
		})
	}
}
