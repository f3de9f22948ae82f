// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package fragmentation

import (
	"fmt"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

const schedulerName = "batch-scheduler"

// vectors are the types of the examples: half of the pods have 1 GPU, 3/10 have 4, and 1/5 have 8.
const vectors = "nvidia.com/gpu=1,cpu=8,weight=5; nvidia.com/gpu=4,cpu=32,weight=3; nvidia.com/gpu=8,cpu=96,weight=2"

func amounts(gpus, cpus int64) v1.ResourceList {
	list := v1.ResourceList{v1.ResourceCPU: *resource.NewQuantity(cpus, resource.DecimalSI), v1.ResourcePods: *resource.NewQuantity(110, resource.DecimalSI)}
	if gpus > 0 {
		list["nvidia.com/gpu"] = *resource.NewQuantity(gpus, resource.DecimalSI)
	}
	return list
}

func node(name string, gpus, cpus int64) *v1.Node {
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1.NodeStatus{Allocatable: amounts(gpus, cpus)}}
}

// pod waits if on is empty.
func pod(name, on string, gpus, cpus int64, changes ...func(*v1.Pod)) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}}
	requests := amounts(gpus, cpus)
	delete(requests, v1.ResourcePods)
	p.Spec.SchedulerName, p.Spec.NodeName = schedulerName, on
	p.Spec.Containers = []v1.Container{{Name: "main", Resources: v1.ResourceRequirements{Requests: requests}}}
	if on != "" {
		p.Status.Phase = v1.PodRunning
	}
	for _, change := range changes {
		change(p)
	}
	return p
}

// fiveNodes have left what their pods do not hold: 8 GPUs and 96 cpu, 7 and 88, 3 and 40, 4 and 96, 1 and 8. The pods of
// the scheduler default-scheduler are no members.
func fiveNodes() ([]*v1.Node, []*v1.Pod) {
	foreign := func(p *v1.Pod) { p.Spec.SchedulerName = "default-scheduler" }
	return []*v1.Node{node("a", 8, 96), node("b", 8, 96), node("c", 8, 96), node("d", 8, 96), node("e", 8, 96), node("plain", 0, 96)},
		[]*v1.Pod{pod("on-b", "b", 1, 8, foreign), pod("on-c", "c", 5, 56, foreign), pod("on-d", "d", 4, 0, foreign), pod("on-e", "e", 7, 88, foreign)}
}

func newCluster(nodes []*v1.Node, pods []*v1.Pod) *model.Cluster {
	cluster := model.NewCluster(model.Options{SchedulerNames: []string{schedulerName}, DefaultQueue: "default"})
	for _, n := range nodes {
		cluster.Events().SetNode(n)
	}
	for _, p := range pods {
		cluster.Events().SetPod(p)
	}
	cluster.Events().Recompute()
	return cluster
}

func newProfile(t testing.TB, arguments conf.Arguments) *framework.Profile {
	t.Helper()
	registry := framework.NewRegistry()
	if err := registry.AddPlugin(Name, Spec()); err != nil {
		t.Fatal(err)
	}
	profile, err := registry.NewProfile(&conf.Configuration{
		Tiers: []conf.Tier{{Plugins: []conf.Plugin{{Name: Name, Arguments: arguments}}}},
	}, framework.Handle{})
	if err != nil {
		t.Fatal(err)
	}
	return profile
}

// scoresOf returns the scores of all nodes for a pod in a session of its own.
func scoresOf(t testing.TB, profile *framework.Profile, cluster *model.Cluster, name string) map[string]api.Score {
	t.Helper()
	ssn := profile.Open(cluster, nil, logr.Discard())
	defer ssn.Close()
	task, got := cluster.Tasks()[api.TaskID(name)], map[string]api.Score{}
	for _, n := range cluster.Nodes() {
		if n != nil {
			got[n.Name] = ssn.NodeScore(task, n)
		}
	}
	return got
}

// TestScores is case FR1, with a weight of 1.
func TestScores(t *testing.T) {
	nodes, pods := fiveNodes()
	cluster := newCluster(nodes, append(pods, pod("one", "", 1, 8), pod("four", "", 4, 32), pod("cpu", "", 0, 8)))
	profile := newProfile(t, conf.Arguments{"fragmentation.weight": "1", "fragmentation.types": vectors})
	for name, want := range map[string]map[string]api.Score{
		"one":  {"a": 456_250, "b": 506_250, "c": 515_625, "d": 478_125, "e": 515_625, "plain": 500_000},
		"four": {"a": 475_000, "b": 496_875, "c": 546_875, "d": 525_000, "e": 515_625, "plain": 500_000}, // it does not fit c and e
		"cpu":  {"a": 450_000, "b": 500_000, "c": 500_000, "d": 500_000, "e": 484_375, "plain": 500_000},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(want, scoresOf(t, profile, cluster, name)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestScoresFollowTheModel compares a plugin that has seen all changes with a new one.
func TestScoresFollowTheModel(t *testing.T) {
	nodes, pods := fiveNodes()
	cluster := newCluster(nodes, append(pods, pod("one", "", 1, 8), pod("eight", "", 8, 96)))
	profile := newProfile(t, nil)
	var last map[string]api.Score
	for i, change := range []func(){
		func() {},
		func() { cluster.Events().SetPod(pod("more", "a", 2, 16)) },
		func() { cluster.Events().SetNode(node("new", 8, 96)) },
		func() { cluster.Events().SetPod(pod("four", "", 4, 32)) },
		func() { cluster.Events().DeletePod("more") },
		func() { cluster.Events().SetNode(node("b", 8, 16)) },
		func() { cluster.Events().DeleteNode("a") },
	} {
		change()
		cluster.Events().Recompute()
		want := scoresOf(t, newProfile(t, nil), cluster, "one")
		got := scoresOf(t, profile, cluster, "one")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("change %d (-new plugin +old):\n%s", i, diff)
		}
		if i > 0 && cmp.Equal(last, got) {
			t.Errorf("change %d changes no score", i)
		}
		last = got
	}
}

// TestNewNode is case FR5: one more node changes no score of another.
func TestNewNode(t *testing.T) {
	nodes, pods := fiveNodes()
	cluster := newCluster(nodes, append(pods, pod("one", "", 1, 8), pod("eight", "", 8, 96)))
	profile := newProfile(t, nil)
	before := scoresOf(t, profile, cluster, "one")
	cluster.Events().SetNode(node("new", 8, 96))
	cluster.Events().Recompute()
	after := scoresOf(t, profile, cluster, "one")
	if _, there := after["new"]; !there {
		t.Error("the new node has no score")
	}
	delete(after, "new")
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}

// TestTypes asserts which types the members of queues are.
func TestTypes(t *testing.T) {
	selects := func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{"model": "h100"} }
	elsewhere := func(p *v1.Pod) { p.Namespace = "other" }
	foreign := func(p *v1.Pod) { p.Spec.SchedulerName = "default-scheduler" }
	ended := func(p *v1.Pod) { p.Status.Phase = v1.PodSucceeded }
	for name, tc := range map[string]struct {
		given     []*v1.Pod
		arguments conf.Arguments
		want      []string // weight, GPUs and cpu
	}{
		"pods that run and pods that wait": {
			given: []*v1.Pod{pod("a", "a", 1, 8), pod("b", "", 1, 8), pod("c", "", 1, 8), pod("d", "", 8, 96)},
			want:  []string{"24 × 1 GPUs 8000m", "8 × 8 GPUs 96000m"},
		},
		"pods of two namespaces are one type": {
			given: []*v1.Pod{pod("a", "a", 1, 8), pod("b", "", 1, 8, elsewhere)},
			want:  []string{"32 × 1 GPUs 8000m"},
		},
		"pods for other nodes are another": {
			given: []*v1.Pod{pod("a", "a", 1, 8), pod("b", "", 1, 8, selects)},
			want:  []string{"16 × 1 GPUs 8000m", "16 × 1 GPUs 8000m"},
		},
		"neither pods that have ended nor those of other schedulers count": {
			given: []*v1.Pod{pod("a", "a", 1, 8, ended), pod("b", "a", 2, 8, foreign), pod("c", "", 4, 8)},
			want:  []string{"32 × 4 GPUs 8000m"},
		},
		"pods without GPUs do not count": {
			given: []*v1.Pod{pod("a", "a", 0, 8), pod("b", "", 1, 8)},
			want:  []string{"32 × 1 GPUs 8000m"},
		},
		"unless they shall": {
			given:     []*v1.Pod{pod("a", "a", 0, 8), pod("b", "", 1, 8)},
			arguments: conf.Arguments{"fragmentation.withCPU": "true"},
			want:      []string{"16 × 1 GPUs 8000m", "16 × 0 GPUs 8000m"},
		},
		"those of the policy instead": {
			given:     []*v1.Pod{pod("a", "a", 1, 8)},
			arguments: conf.Arguments{"fragmentation.types": "nvidia.com/gpu=2"},
			want:      []string{"1 × 2 GPUs 0m"},
		},
		"another resource": {
			given:     []*v1.Pod{pod("a", "a", 1, 8)},
			arguments: conf.Arguments{"fragmentation.resource": "amd.com/gpu"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := newCluster([]*v1.Node{node("a", 8, 96)}, tc.given)
			ssn := newProfile(t, tc.arguments).Open(cluster, nil, logr.Discard())
			defer ssn.Close()
			arguments := decode(tc.arguments.Decoder(nil))
			w := newWorkload(&arguments, cluster)
			w.update(ssn.Nodes())
			var got []string
			for _, typ := range w.types {
				got = append(got, fmt.Sprintf("%d × %d GPUs %dm", typ.Weight, typ.Request.At(w.device), typ.Request.At(api.CPU)))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWrongTypes(t *testing.T) {
	for given, want := range map[string]string{
		"eight":                       `"eight" is not KEY=VALUE, as in nvidia.com/gpu=8,cpu=96,weight=1`,
		"nvidia.com/gpu=8,weight=0":   `weight: "0" is not a whole number from 1 to 1000`,
		"nvidia.com/gpu=8;cpu=-1":     `cpu: "-1" is not an amount, such as 8 or 512Gi`,
		"nvidia.com/gpu=8;":           `"" is not KEY=VALUE, as in nvidia.com/gpu=8,cpu=96,weight=1`,
		"nvidia.com/gpu=8,memory=8GB": `memory: "8GB" is not an amount, such as 8 or 512Gi`,
	} {
		t.Run(given, func(t *testing.T) {
			d := conf.Arguments{"fragmentation.types": given}.Decoder(field.NewPath("arguments"))
			decode(d)
			errs := d.Done()
			wanted := fmt.Sprintf("arguments[fragmentation.types]: Invalid value: %q: %s", given, want)
			if len(errs) != 1 || errs[0].Error() != wanted {
				t.Errorf("errors %v, want %s", errs, wanted)
			}
		})
	}
}

// TestWeightZero asserts that the plugin then registers nothing and computes nothing.
func TestWeightZero(t *testing.T) {
	nodes, pods := fiveNodes()
	cluster := newCluster(nodes, append(pods, pod("one", "", 1, 8)))
	p := &plugin{arguments: Arguments{}}
	ssn := newProfile(t, conf.Arguments{"fragmentation.weight": "0"}).Open(cluster, nil, logr.Discard())
	defer ssn.Close()
	p.OnSessionOpen(ssn)
	if p.workload != nil || ssn.NodeScore(cluster.Tasks()["one"], cluster.Node("a")) != 0 {
		t.Error("weight 0 scores")
	}
}

func TestScoringDoesNotAllocate(t *testing.T) {
	nodes, pods := fiveNodes()
	cluster := newCluster(nodes, append(pods, pod("one", "", 1, 8)))
	ssn := newProfile(t, nil).Open(cluster, nil, logr.Discard())
	defer ssn.Close()
	task, n := cluster.Tasks()["one"], cluster.Node("a")
	if allocations := testing.AllocsPerRun(100, func() { ssn.NodeScore(task, n) }); allocations != 0 {
		t.Errorf("%v allocations", allocations)
	}
}
