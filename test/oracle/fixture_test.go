// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// fixture is a random cluster. It has few distinct values, so that they often match.
type fixture struct {
	namespaces []*v1.Namespace
	nodes      []*v1.Node
	running    []*v1.Pod // on nodes, some of them ended or terminating
	waiting    []*v1.Pod // of our scheduler; pods that the test places get a node name
}

const (
	rack  = "example.com/rack"
	level = "level"
	gpu   = v1.ResourceName("nvidia.com/gpu")
	huge  = v1.ResourceName("hugepages-2Mi")
)

func drawFixture(t *rapid.T) *fixture {
	w := &fixture{}
	for _, name := range []string{"one", "two"} {
		w.namespaces = append(w.namespaces, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"team": name}}})
	}
	for i := range rapid.IntRange(2, 8).Draw(t, "nodes") {
		w.nodes = append(w.nodes, drawNode(t, fmt.Sprintf("n%d", i)))
	}
	for i := range rapid.IntRange(2, 12).Draw(t, "running pods") {
		pod := drawPod(t, fmt.Sprintf("r%d", i))
		pod.Spec.NodeName = rapid.SampledFrom(w.nodes).Draw(t, "node").Name
		pod.Spec.SchedulerName = rapid.SampledFrom([]string{"default-scheduler", schedulerName}).Draw(t, "scheduler")
		pod.Status.Phase = rapid.SampledFrom([]v1.PodPhase{
			v1.PodRunning, v1.PodRunning, v1.PodRunning, v1.PodPending, v1.PodUnknown, v1.PodSucceeded, v1.PodFailed,
		}).Draw(t, "phase")
		if seldom(t, "deleted") {
			pod.DeletionTimestamp = new(metav1.Now())
		}
		w.running = append(w.running, pod)
	}
	for i := range rapid.IntRange(2, 6).Draw(t, "waiting pods") {
		pod := drawPod(t, fmt.Sprintf("w%d", i))
		pod.Spec.SchedulerName = schedulerName
		w.waiting = append(w.waiting, pod)
	}
	return w
}

// podsOnNodes returns the pods that kube-scheduler sees on nodes: those that have not ended and, in the future, are not
// terminating.
func (w *fixture) podsOnNodes(when api.When) []*v1.Pod {
	var pods []*v1.Pod
	for _, p := range slices.Concat(w.running, w.waiting) {
		ended := p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed
		if p.Spec.NodeName != "" && !ended && (when == api.Now || p.DeletionTimestamp == nil) {
			pods = append(pods, p)
		}
	}
	return pods
}

// often is true in three of four cases, seldom in one of eight. Both are made of booleans, because rapid prefers
// small numbers.
func often(t *rapid.T, what string) bool {
	return rapid.Bool().Draw(t, what) || rapid.Bool().Draw(t, what) //nolint:staticcheck // two draws
}

func seldom(t *rapid.T, what string) bool { return !often(t, what) && rapid.Bool().Draw(t, what) }

func one[T any](t *rapid.T, what string, of ...T) T { return rapid.SampledFrom(of).Draw(t, what) }

func drawNode(t *rapid.T, name string) *v1.Node {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelHostname: name}}}
	if often(t, "has zone") {
		n.Labels[v1.LabelTopologyZone] = one(t, "zone", "a", "b")
	}
	if often(t, "has rack") {
		n.Labels[rack] = one(t, "rack", "1", "2", "3")
	}
	if often(t, "has level") {
		n.Labels[level] = one(t, "level", "1", "5", "many")
	}
	n.Status.Allocatable = v1.ResourceList{v1.ResourcePods: resource.MustParse(one(t, "pods", "110", "5", "2"))}
	add(t, n.Status.Allocatable, v1.ResourceCPU, "64", "4", "1500m", "0")
	add(t, n.Status.Allocatable, v1.ResourceMemory, "512Gi", "8Gi", "1Gi")
	if often(t, "has storage") {
		add(t, n.Status.Allocatable, v1.ResourceEphemeralStorage, "1Gi", "100Gi")
	}
	if often(t, "has devices") {
		add(t, n.Status.Allocatable, gpu, "0", "1", "8")
	}
	if seldom(t, "has huge pages") {
		add(t, n.Status.Allocatable, huge, "0", "1Gi")
	}
	drawTaints(t, n)
	return n
}

func add(t *rapid.T, list v1.ResourceList, name v1.ResourceName, amounts ...string) {
	list[name] = resource.MustParse(one(t, string(name), amounts...))
}

// drawTaints also draws what accompanies taints: a node that is not ready has the taint of the node lifecycle
// controller. Without it the schedulers differ on purpose.
func drawTaints(t *rapid.T, n *v1.Node) {
	taint := func(key, value string, effect v1.TaintEffect) {
		n.Spec.Taints = append(n.Spec.Taints, v1.Taint{Key: key, Value: value, Effect: effect})
	}
	if seldom(t, "cordoned") {
		n.Spec.Unschedulable = true
		if often(t, "tainted as cordoned") {
			taint(v1.TaintNodeUnschedulable, "", v1.TaintEffectNoSchedule)
		}
	}
	ready := v1.ConditionTrue
	if seldom(t, "not known as ready") {
		ready = one(t, "ready", "", v1.ConditionFalse, v1.ConditionUnknown)
	}
	if ready != "" {
		n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: ready}}
	}
	switch ready {
	case v1.ConditionFalse:
		taint(v1.TaintNodeNotReady, "", v1.TaintEffectNoSchedule)
	case v1.ConditionUnknown:
		taint(v1.TaintNodeUnreachable, "", v1.TaintEffectNoSchedule)
	}
	for _, key := range []string{"dedicated", "speed"} {
		if !often(t, "tainted "+key) {
			taint(key, one(t, "value", "", "x", "5"), one(t, "effect", v1.TaintEffectNoSchedule, v1.TaintEffectNoExecute, v1.TaintEffectPreferNoSchedule))
		}
	}
}

func drawPod(t *rapid.T, name string) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID(name), Namespace: one(t, "namespace", "one", "one", "two"), Labels: map[string]string{"index": name},
	}}
	if often(t, "has app") {
		p.Labels["app"] = one(t, "app", "x", "y")
	}
	if often(t, "has tier") {
		p.Labels["tier"] = one(t, "tier", "front", "back")
	}
	p.Spec.Containers = []v1.Container{drawContainer(t, "main")}
	if seldom(t, "second container") {
		p.Spec.Containers = append(p.Spec.Containers, drawContainer(t, "second"))
	}
	if seldom(t, "init container") {
		c := drawContainer(t, "init")
		if often(t, "sidecar") {
			always := v1.ContainerRestartPolicyAlways
			c.RestartPolicy = &always
		}
		p.Spec.InitContainers = []v1.Container{c}
	}
	if seldom(t, "overhead") {
		p.Spec.Overhead = v1.ResourceList{v1.ResourceCPU: resource.MustParse("250m")}
	}
	for range one(t, "tolerations", 0, 0, 1, 2) {
		p.Spec.Tolerations = append(p.Spec.Tolerations, drawToleration(t))
	}
	if seldom(t, "node selector") {
		p.Spec.NodeSelector = map[string]string{v1.LabelTopologyZone: one(t, "zone", "a", "b")}
	}
	drawAffinity(t, p)
	for i := range one(t, "spread constraints", 0, 0, 0, 1, 2) {
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, drawSpread(t, i))
	}
	return p
}

func drawContainer(t *rapid.T, name string) v1.Container {
	c := v1.Container{Name: name, Image: "image"}
	c.Resources.Requests = v1.ResourceList{}
	if often(t, "asks for cpu") {
		add(t, c.Resources.Requests, v1.ResourceCPU, "0", "1m", "100m", "1", "3")
	}
	if often(t, "asks for memory") {
		add(t, c.Resources.Requests, v1.ResourceMemory, "1", "100M", "1Gi", "3Gi")
	}
	if seldom(t, "asks for storage") {
		add(t, c.Resources.Requests, v1.ResourceEphemeralStorage, "0", "500m", "1Gi")
	}
	if seldom(t, "asks for devices") {
		add(t, c.Resources.Requests, gpu, "0", "1", "2")
	}
	if seldom(t, "asks for huge pages") {
		add(t, c.Resources.Requests, huge, "0", "4Mi")
	}
	if rapid.Bool().Draw(t, "host port") {
		c.Ports = []v1.ContainerPort{{
			HostPort: one[int32](t, "port", 80, 443), Protocol: one(t, "protocol", "", v1.ProtocolTCP, v1.ProtocolUDP),
			HostIP: one(t, "address", "", "127.0.0.1", "10.0.0.1", "0.0.0.0"),
		}}
	}
	return c
}

func drawToleration(t *rapid.T) v1.Toleration {
	return v1.Toleration{
		Key:      one(t, "key", "", "dedicated", "speed", v1.TaintNodeUnschedulable, v1.TaintNodeNotReady, v1.TaintNodeUnreachable),
		Operator: one(t, "operator", v1.TolerationOpExists, v1.TolerationOpExists, v1.TolerationOpEqual, "", v1.TolerationOpGt, v1.TolerationOpLt),
		Value:    one(t, "value", "", "x", "5", "3"),
		Effect:   one(t, "effect", "", v1.TaintEffectNoSchedule, v1.TaintEffectNoExecute, v1.TaintEffectPreferNoSchedule),
	}
}
