// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package predicates

import (
	"strings"
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

// given is a cluster; the scheduler under test is responsible for all pods without a node.
type given struct {
	nodes      []*v1.Node
	pods       []*v1.Pod
	namespaces map[string]map[string]string // name to labels
	devices    map[string]int64             // devices that provide nvidia.com/gpu, by node
	arguments  conf.Arguments
	handle     framework.Handle
}

const schedulerName = "batch-scheduler"

// open opens a session over the cluster with this plugin alone.
func (g given) open(t testing.TB) (*framework.Session, *model.Cluster) {
	t.Helper()
	return g.openWith(t, g.profile(t))
}

func (g given) openWith(t testing.TB, profile *framework.Profile) (*framework.Session, *model.Cluster) {
	t.Helper()
	cluster := model.NewCluster(model.Options{SchedulerNames: []string{schedulerName}, DefaultQueue: "default"})
	for name, labels := range g.namespaces {
		cluster.Events().SetNamespace(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})
	}
	for _, n := range g.nodes {
		cluster.Events().SetNode(n)
	}
	if g.devices != nil {
		cluster.Events().SetDeviceResources([]v1.ResourceName{gpuResource})
	}
	for name, count := range g.devices {
		cluster.Events().SetDevices(name, v1.ResourceList{gpuResource: *resource.NewQuantity(count, resource.DecimalSI)})
	}
	for _, p := range g.pods {
		cluster.Events().SetPod(p)
	}
	cluster.Events().Recompute()
	ssn := profile.Open(cluster, nil, logr.Discard())
	t.Cleanup(ssn.Close)
	return ssn, cluster
}

func (g given) profile(t testing.TB) *framework.Profile {
	t.Helper()
	return g.profileOf(t, Spec())
}

func (g given) profileOf(t testing.TB, spec framework.PluginSpec) *framework.Profile {
	t.Helper()
	registry := framework.NewRegistry()
	if err := registry.AddPlugin(Name, spec); err != nil {
		t.Fatal(err)
	}
	profile, err := registry.NewProfile(&conf.Configuration{
		Tiers: []conf.Tier{{Plugins: []conf.Plugin{{Name: Name, Arguments: g.arguments}}}},
	}, g.handle)
	if err != nil {
		t.Fatal(err)
	}
	return profile
}

// fits is the verdict for a node that is not rejected.
const fits = ""

// verdicts returns the results of the filters and then of the predicates for a pod, by node.
func verdicts(ssn *framework.Session, pod string, when api.When) map[string]string {
	task := taskNamed(ssn.Cluster(), pod)
	got := map[string]string{}
	for _, n := range ssn.Cluster().Nodes() {
		if n == nil {
			continue
		}
		got[n.Name] = fits
		unfit := ssn.Filter(task.Signature, n)
		if unfit == nil {
			unfit = ssn.Predicate(task, n, when)
		}
		if unfit != nil {
			got[n.Name] = unfit.Message()
		}
	}
	return got
}

func taskNamed(cluster api.ClusterView, name string) *api.TaskInfo {
	t := cluster.Tasks()[api.TaskID(uid(name))]
	if t == nil {
		panic("no pod is named " + name)
	}
	return t
}

func expect(t *testing.T, want, got map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("verdicts by node (-want +got):\n%s", diff)
	}
}

func uid(name string) types.UID {
	if !strings.Contains(name, "/") {
		name = "default/" + name
	}
	return types.UID(name)
}

type change[T any] func(*T)

func node(name string, changes ...change[v1.Node]) *v1.Node {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelHostname: name}}}
	n.Status.Allocatable = v1.ResourceList{
		v1.ResourceCPU: resource.MustParse("8"), v1.ResourceMemory: resource.MustParse("32Gi"), v1.ResourcePods: resource.MustParse("110"),
	}
	for _, c := range changes {
		c(n)
	}
	return n
}

func zone(name string) change[v1.Node] {
	return func(n *v1.Node) { n.Labels[v1.LabelTopologyZone] = name }
}

func cordoned(n *v1.Node) { n.Spec.Unschedulable = true }

func condition(kind v1.NodeConditionType, status v1.ConditionStatus) change[v1.Node] {
	return func(n *v1.Node) {
		n.Status.Conditions = append(n.Status.Conditions, v1.NodeCondition{Type: kind, Status: status})
	}
}

func taint(key, value string, effect v1.TaintEffect) change[v1.Node] {
	return func(n *v1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, v1.Taint{Key: key, Value: value, Effect: effect})
	}
}

// pod is pending unless a change sets its node. The name may have a namespace as prefix.
func pod(name string, changes ...change[v1.Pod]) *v1.Pod {
	namespace, base, found := strings.Cut(name, "/")
	if !found {
		namespace, base = "default", name
	}
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: base, UID: uid(name)}}
	p.Spec.SchedulerName = schedulerName
	p.Spec.Containers = []v1.Container{{Name: "main", Image: "image"}}
	for _, c := range changes {
		c(p)
	}
	return p
}

// on makes a pod run on a node, started by another scheduler.
func on(name string) change[v1.Pod] {
	return func(p *v1.Pod) {
		p.Spec.NodeName, p.Spec.SchedulerName, p.Status.Phase = name, "default-scheduler", v1.PodRunning
	}
}

func deleted(p *v1.Pod) { p.DeletionTimestamp = new(metav1.Now()) }

func phase(phase v1.PodPhase) change[v1.Pod] {
	return func(p *v1.Pod) { p.Status.Phase = phase }
}

func app(value string) change[v1.Pod] {
	return func(p *v1.Pod) { p.Labels = map[string]string{"app": value} }
}

func apps(value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": value}}
}

func tolerates(key, value string, operator v1.TolerationOperator, effect v1.TaintEffect) change[v1.Pod] {
	return func(p *v1.Pod) {
		p.Spec.Tolerations = append(p.Spec.Tolerations, v1.Toleration{Key: key, Value: value, Operator: operator, Effect: effect})
	}
}

func affinity(p *v1.Pod) *v1.Affinity {
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &v1.Affinity{}
	}
	return p.Spec.Affinity
}

// avoids and joins are required terms of pod anti-affinity and affinity over a topology key.
func avoids(selector *metav1.LabelSelector, topology string, namespaces ...string) change[v1.Pod] {
	return func(p *v1.Pod) {
		affinity(p).PodAntiAffinity = &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{
			{LabelSelector: selector, TopologyKey: topology, Namespaces: namespaces},
		}}
	}
}

func joins(selector *metav1.LabelSelector, topology string) change[v1.Pod] {
	return func(p *v1.Pod) {
		affinity(p).PodAffinity = &v1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{
			{LabelSelector: selector, TopologyKey: topology},
		}}
	}
}

func requires(terms ...v1.NodeSelectorTerm) change[v1.Pod] {
	return func(p *v1.Pod) {
		affinity(p).NodeAffinity = &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: terms}}
	}
}

func labelTerm(key string, operator v1.NodeSelectorOperator, values ...string) v1.NodeSelectorTerm {
	return v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{{Key: key, Operator: operator, Values: values}}}
}

func nameTerm(operator v1.NodeSelectorOperator, names ...string) v1.NodeSelectorTerm {
	return v1.NodeSelectorTerm{MatchFields: []v1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: operator, Values: names}}}
}

func port(number int32, protocol v1.Protocol, ip string) change[v1.Pod] {
	return func(p *v1.Pod) {
		c := &p.Spec.Containers[0]
		c.Ports = append(c.Ports, v1.ContainerPort{HostPort: number, ContainerPort: number, Protocol: protocol, HostIP: ip})
	}
}

func spreads(constraint v1.TopologySpreadConstraint) change[v1.Pod] {
	return func(p *v1.Pod) {
		constraint.WhenUnsatisfiable = v1.DoNotSchedule
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, constraint)
	}
}
