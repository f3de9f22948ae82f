// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package nodeorder

import (
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

const schedulerName = "batch-scheduler"

// given is a cluster and the weights of the scorers; the weight of a missing scorer is zero.
type given struct {
	weights map[string]string
	nodes   []*v1.Node
	pods    []*v1.Pod
}

func (g given) open(t testing.TB) (*framework.Session, *model.Cluster) {
	t.Helper()
	cluster := newCluster(g.nodes, g.pods)
	ssn := profile(t, g.weights).Open(cluster, nil, logr.Discard())
	t.Cleanup(ssn.Close)
	return ssn, cluster
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

func profile(t testing.TB, weights map[string]string) *framework.Profile {
	t.Helper()
	arguments := conf.Arguments{}
	for _, w := range new(Arguments).weights() {
		arguments[w.key] = "0"
	}
	for name, weight := range weights {
		arguments[name+".weight"] = weight
	}
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

// scores returns the scores of all nodes for a pod, in thousandths to keep tables readable.
func scores(ssn *framework.Session, pod string) map[string]int {
	task := taskNamed(ssn.Cluster(), pod)
	got := map[string]int{}
	for _, n := range ssn.Cluster().Nodes() {
		if n != nil {
			got[n.Name] = int(ssn.NodeScore(task, n) / (api.OneScore / 1000))
		}
	}
	return got
}

func expect(t *testing.T, want, got map[string]int) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("scores by node in thousandths (-want +got):\n%s", diff)
	}
}

func taskNamed(cluster api.ClusterView, name string) *api.TaskInfo {
	t := cluster.Tasks()[api.TaskID(name)]
	if t == nil {
		panic("no pod is named " + name)
	}
	return t
}

type change[T any] func(*T)

// resourceAmounts is a list of resources: the capacity of a node or the requests of a pod.
type resourceAmounts map[v1.ResourceName]string

func (a resourceAmounts) list() v1.ResourceList {
	list := v1.ResourceList{}
	for name, amount := range a {
		list[name] = resource.MustParse(amount)
	}
	return list
}

func node(name string, has resourceAmounts, changes ...change[v1.Node]) *v1.Node {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelHostname: name}}}
	n.Status.Allocatable = has.list()
	for _, c := range changes {
		c(n)
	}
	return n
}

func label(key, value string) change[v1.Node] {
	return func(n *v1.Node) { n.Labels[key] = value }
}

func softTaint(key string) change[v1.Node] {
	return func(n *v1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, v1.Taint{Key: key, Effect: v1.TaintEffectPreferNoSchedule})
	}
}

func hasImage(size int64, names ...string) change[v1.Node] {
	return func(n *v1.Node) {
		n.Status.Images = append(n.Status.Images, v1.ContainerImage{Names: names, SizeBytes: size})
	}
}

// pod is pending unless a change sets its node.
func pod(name string, requests resourceAmounts, changes ...change[v1.Pod]) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}}
	p.Spec.SchedulerName = schedulerName
	p.Spec.Containers = []v1.Container{{Name: "main", Image: "app", Resources: v1.ResourceRequirements{Requests: requests.list()}}}
	for _, c := range changes {
		c(p)
	}
	return p
}

func on(name string) change[v1.Pod] {
	return func(p *v1.Pod) {
		p.Spec.NodeName, p.Spec.SchedulerName, p.Status.Phase = name, "default-scheduler", v1.PodRunning
	}
}

func deleted(p *v1.Pod) { p.DeletionTimestamp = new(metav1.Now()) }

func app(value string) change[v1.Pod] {
	return func(p *v1.Pod) { p.Labels = map[string]string{"app": value} }
}

func apps(value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": value}}
}

func tolerates(key string) change[v1.Pod] {
	return func(p *v1.Pod) {
		p.Spec.Tolerations = append(p.Spec.Tolerations, v1.Toleration{Key: key, Operator: v1.TolerationOpExists})
	}
}

func affinity(p *v1.Pod) *v1.Affinity {
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &v1.Affinity{}
	}
	return p.Spec.Affinity
}

func prefers(weight int32, key, value string) change[v1.Pod] {
	return func(p *v1.Pod) {
		a := affinity(p)
		if a.NodeAffinity == nil {
			a.NodeAffinity = &v1.NodeAffinity{}
		}
		a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = append(a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution,
			v1.PreferredSchedulingTerm{Weight: weight, Preference: v1.NodeSelectorTerm{
				MatchExpressions: []v1.NodeSelectorRequirement{{Key: key, Operator: v1.NodeSelectorOpIn, Values: []string{value}}},
			}})
	}
}

func weighted(weight int32, selector *metav1.LabelSelector, topology string) v1.WeightedPodAffinityTerm {
	return v1.WeightedPodAffinityTerm{Weight: weight, PodAffinityTerm: v1.PodAffinityTerm{LabelSelector: selector, TopologyKey: topology}}
}

// preferredAffinity and preferredAntiAffinity are preferred terms of pod affinity and anti-affinity.
func preferredAffinity(terms ...v1.WeightedPodAffinityTerm) change[v1.Pod] {
	return func(p *v1.Pod) {
		affinity(p).PodAffinity = &v1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: terms}
	}
}

func preferredAntiAffinity(terms ...v1.WeightedPodAffinityTerm) change[v1.Pod] {
	return func(p *v1.Pod) {
		affinity(p).PodAntiAffinity = &v1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: terms}
	}
}

func spreads(constraint v1.TopologySpreadConstraint) change[v1.Pod] {
	return func(p *v1.Pod) {
		constraint.WhenUnsatisfiable = v1.ScheduleAnyway
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, constraint)
	}
}
