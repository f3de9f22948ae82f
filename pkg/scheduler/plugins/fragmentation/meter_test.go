// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package fragmentation

import (
	"fmt"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/metrics"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

// measureIn returns what is measured after a session.
func measureIn(profile *framework.Profile, cluster *model.Cluster) []*metrics.Devices {
	ssn := profile.Open(cluster, nil, logr.Discard())
	ssn.Close()
	return framework.MeasureDevices(ssn)
}

func cordon(n *v1.Node) *v1.Node {
	n.Spec.Unschedulable = true
	return n
}

func TestMeasureDevices(t *testing.T) {
	fitting := func(pods ...int64) (list []metrics.FittingPods) {
		for i, size := range []int64{1, 2, 4, 8} {
			list = append(list, metrics.FittingPods{Size: size, Pods: pods[i]})
		}
		return list
	}
	nodes, pods := fiveNodes()
	for name, tc := range map[string]struct {
		nodes     []*v1.Node
		pods      []*v1.Pod
		arguments conf.Arguments
		want      []*metrics.Devices
	}{
		"the nodes of the examples, 8 + 7 + 3 + 4 + 1 free, with F 0 + 1.4 + 1.5 + 0.8 + 0.5": {
			nodes: nodes, pods: pods, arguments: conf.Arguments{"fragmentation.types": vectors},
			want: []*metrics.Devices{{Resource: "nvidia.com/gpu", Total: 40, Free: 23, Fitting: fitting(23, 10, 4, 1), Typed: true, Fragmented: 4200}},
		},
		"a node without cpu is stranded": {
			nodes: []*v1.Node{node("a", 8, 96), node("b", 8, 96)}, pods: []*v1.Pod{pod("cpus", "a", 2, 95), pod("one", "", 1, 8)},
			want: []*metrics.Devices{{Resource: "nvidia.com/gpu", Total: 16, Free: 14, Fitting: fitting(14, 7, 3, 1), Typed: true, Stranded: 6, Fragmented: 6000}},
		},
		"a cordoned node has nothing free": {
			nodes: []*v1.Node{cordon(node("a", 8, 96)), node("b", 4, 96)}, pods: []*v1.Pod{pod("one", "", 1, 8)},
			want: []*metrics.Devices{{Resource: "nvidia.com/gpu", Total: 12, Free: 4, Fitting: fitting(4, 2, 1, 0), Typed: true}},
		},
		"no pod requests devices": {
			nodes: []*v1.Node{node("a", 8, 96)},
			want:  []*metrics.Devices{{Resource: "nvidia.com/gpu", Total: 8, Free: 8, Fitting: fitting(8, 4, 2, 1)}},
		},
		"a resource that no node has": {
			nodes: []*v1.Node{node("a", 8, 96)}, arguments: conf.Arguments{"fragmentation.resource": "amd.com/gpu"},
			want: []*metrics.Devices{{Resource: "amd.com/gpu", Fitting: fitting(0, 0, 0, 0)}},
		},
		"without a weight nothing is measured": {
			nodes: nodes, pods: pods, arguments: conf.Arguments{"fragmentation.weight": "0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := measureIn(newProfile(t, tc.arguments), newCluster(tc.nodes, tc.pods))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestMeterFollowsTheModel changes nodes and pods at random, with a session now and then, and compares a plugin that has followed
// all of it with a new one.
func TestMeterFollowsTheModel(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		cluster, profile := newCluster(nil, nil), newProfile(t, nil)
		amount := rapid.Int64Range(0, 8)
		for range rapid.IntRange(1, 30).Draw(r, "changes") {
			name := fmt.Sprint("n", rapid.IntRange(0, 4).Draw(r, "node"))
			id := fmt.Sprint("p", rapid.IntRange(0, 9).Draw(r, "pod"))
			switch rapid.IntRange(0, 5).Draw(r, "change") {
			case 0:
				cluster.Events().SetNode(node(name, amount.Draw(r, "GPUs"), 8+amount.Draw(r, "cpus")))
			case 1:
				cluster.Events().SetNode(cordon(node(name, amount.Draw(r, "GPUs"), 8+amount.Draw(r, "cpus"))))
			case 2:
				cluster.Events().DeleteNode(name)
			case 3:
				cluster.Events().SetPod(pod(id, rapid.SampledFrom([]string{"", name}).Draw(r, "on"), amount.Draw(r, "GPUs"), amount.Draw(r, "cpus")))
			case 4:
				cluster.Events().DeletePod(types.UID(id))
			case 5:
				cluster.Events().Recompute()
				if diff := cmp.Diff(measureIn(newProfile(t, nil), cluster), measureIn(profile, cluster)); diff != "" {
					r.Fatalf("(-new plugin +old):\n%s", diff)
				}
			}
		}
	})
}

// TestDevicesOfDrivers has GPUs of a DRA driver, which the node does not list. They count as those of a device plugin do.
func TestDevicesOfDrivers(t *testing.T) {
	pods := []*v1.Pod{pod("here", "a", 1, 8), pod("one", "", 1, 8), pod("eight", "", 8, 64)}
	plugin, driver := newCluster([]*v1.Node{node("a", 8, 96)}, pods), newCluster([]*v1.Node{node("a", 0, 96)}, pods)
	driver.Events().SetDevices("a", v1.ResourceList{"nvidia.com/gpu": amounts(8, 0)["nvidia.com/gpu"]})
	driver.Events().Recompute()
	want, got := measureIn(newProfile(t, nil), plugin), measureIn(newProfile(t, nil), driver)
	if diff := cmp.Diff(want, got); diff != "" || got[0].Free != 7 {
		t.Errorf("measured (-device plugin +driver):\n%s", diff)
	}
	scores := scoresOf(t, newProfile(t, nil), driver, "one")
	if diff := cmp.Diff(scoresOf(t, newProfile(t, nil), plugin, "one"), scores); diff != "" || scores["a"] == 10*api.OneScore/2 {
		t.Errorf("scores %v (-device plugin +driver):\n%s", scores, diff)
	}
}

func TestMeasuringAllocatesLittle(t *testing.T) {
	nodes, pods := fiveNodes()
	cluster, profile := newCluster(nodes, pods), newProfile(t, nil)
	ssn := profile.Open(cluster, nil, logr.Discard())
	ssn.Close()
	const most = 4 // what is returned, whatever the number of nodes
	if got := testing.AllocsPerRun(100, func() { framework.MeasureDevices(ssn) }); got > most {
		t.Errorf("%v allocations, want at most %d", got, most)
	}
}

// manyNodes returns a workload of three types, and so many nodes of 8 GPUs on which pods run.
func manyNodes(b *testing.B) (*workload, *model.Cluster) {
	b.Helper()
	var nodes []*v1.Node
	var pods []*v1.Pod
	for i := range 5000 {
		name := fmt.Sprint("n", i)
		nodes = append(nodes, node(name, 8, 96))
		pods = append(pods, pod("one-"+name, name, 1+int64(i%3), 8))
	}
	cluster := newCluster(nodes, pods)
	ssn := newProfile(b, nil).Open(cluster, nil, logr.Discard())
	defer ssn.Close()
	arguments := decode(conf.Arguments(nil).Decoder(nil))
	w := newWorkload(&arguments, cluster)
	w.update(ssn.Nodes())
	return w, cluster
}

// BenchmarkMeasure has 64 of 5,000 nodes change between two measurements.
func BenchmarkMeasure(b *testing.B) {
	w, cluster := manyNodes(b)
	b.ReportAllocs()
	w.measure("nvidia.com/gpu")
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		for k := range 64 {
			name := fmt.Sprint("n", (i*64+k)%5000)
			cluster.Events().SetPod(pod("more", name, 1, 8))
		}
		b.StartTimer()
		w.measure("nvidia.com/gpu")
	}
}

// BenchmarkMeasureAgain measures all of 5,000 nodes with other types than before.
func BenchmarkMeasureAgain(b *testing.B) {
	w, _ := manyNodes(b)
	b.ReportAllocs()
	for b.Loop() {
		clear(w.meter.nodes)
		w.meter.sum, w.meter.fitting = measured{}, [4]int64{}
		for i := range w.nodes {
			w.nodes[i].generation = 0
		}
		w.version++
		w.measure("nvidia.com/gpu")
	}
}

// BenchmarkMeasureNothing has no node change between two measurements.
func BenchmarkMeasureNothing(b *testing.B) {
	w, _ := manyNodes(b)
	b.ReportAllocs()
	for b.Loop() {
		w.measure("nvidia.com/gpu")
	}
}
