// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/trace"
)

// planted is in every field of the objects of tests that a record must not have.
const planted = "planted-secret"

// began is the time 0 of the records of tests.
var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// step is a change of the cluster at a time in seconds.
type step struct {
	at    int
	apply func(*Builder, time.Duration)
}

func amountsOf(words ...string) v1.ResourceList {
	list := v1.ResourceList{}
	for i := 0; i < len(words); i += 2 {
		list[v1.ResourceName(words[i])] = resource.MustParse(words[i+1])
	}
	return list
}

func aNode(name, cpu string, edits ...func(*v1.Node)) func(*Builder, time.Duration) {
	n := &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelHostname: name}, Annotations: map[string]string{"a": planted}},
		Status: v1.NodeStatus{
			Allocatable: amountsOf("cpu", cpu), Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue, Message: planted}},
			NodeInfo: v1.NodeSystemInfo{MachineID: planted}, Addresses: []v1.NodeAddress{{Address: planted}},
		},
	}
	for _, edit := range edits {
		edit(n)
	}
	return func(r *Builder, at time.Duration) { r.SetNode(strip(n), at) }
}

// strip passes an object through the transform of the informers.
func strip[T any](object T) T {
	stripped, _ := Strip(object)
	return stripped.(T)
}

func aGroup(name string, least int32, edits ...func(*v1alpha1.PodGroup)) func(*Builder, time.Duration) {
	g := &v1alpha1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("group-" + name), CreationTimestamp: metav1.NewTime(began.Add(-time.Hour))},
		Spec:       v1alpha1.PodGroupSpec{MinMember: least, Queue: "q"},
	}
	for _, edit := range edits {
		edit(g)
	}
	return func(r *Builder, at time.Duration) { r.SetGroup(api.OwnGroup(g), at) }
}

func deletedGroup(name string) func(*Builder, time.Duration) {
	return func(r *Builder, at time.Duration) {
		r.DeleteGroup(api.OwnGroup(&v1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("group-" + name)}}), at)
	}
}

// aPod returns a pod with secrets in all of its fields. Its name is "group-number", or "number" of a pod without a group.
func aPod(name string, edits ...func(*v1.Pod)) *v1.Pod {
	p := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, UID: types.UID(name), Labels: map[string]string{"x": planted}, Annotations: map[string]string{"a": planted},
			CreationTimestamp: metav1.NewTime(began.Add(-30 * time.Minute)),
		},
		Spec: v1.PodSpec{
			SchedulerName: "batch-scheduler", ServiceAccountName: planted, ImagePullSecrets: []v1.LocalObjectReference{{Name: planted}},
			Volumes: []v1.Volume{{Name: planted, VolumeSource: v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: planted}}}},
			Containers: []v1.Container{{
				Name: planted, Image: planted, Command: []string{planted}, Args: []string{planted}, Env: []v1.EnvVar{{Name: planted, Value: planted}},
				Resources: v1.ResourceRequirements{Requests: amountsOf("cpu", "1")},
			}},
		},
		Status: v1.PodStatus{Phase: v1.PodPending, Message: planted},
	}
	if group, _, member := strings.Cut(name, "-"); member {
		p.Labels[v1alpha1.LabelPodGroup] = group
	}
	for _, edit := range edits {
		edit(p)
	}
	return p
}

func setPod(p *v1.Pod) func(*Builder, time.Duration) {
	return func(r *Builder, at time.Duration) { r.SetPod(strip(p), at) }
}

// podsOf applies the same change to several pods.
func podsOf(names string, edits ...func(*v1.Pod)) func(*Builder, time.Duration) {
	return func(r *Builder, at time.Duration) {
		for name := range strings.FieldsSeq(names) {
			setPod(aPod(name, edits...))(r, at)
		}
	}
}

func deletedPods(names string, edits ...func(*v1.Pod)) func(*Builder, time.Duration) {
	return func(r *Builder, at time.Duration) {
		for name := range strings.FieldsSeq(names) {
			r.DeletePod(strip(aPod(name, edits...)), at)
		}
	}
}

func on(node string) func(*v1.Pod) {
	return func(p *v1.Pod) { p.Spec.NodeName, p.Status.Phase = node, v1.PodRunning }
}

func phase(phase v1.PodPhase) func(*v1.Pod) { return func(p *v1.Pod) { p.Status.Phase = phase } }

func evicted(p *v1.Pod) {
	p.DeletionTimestamp = ptr.To(metav1.NewTime(began))
	p.Status.Conditions = []v1.PodCondition{{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Message: planted}}
}

func controlledBy(uid string) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs", UID: types.UID(uid), Controller: ptr.To(true)}}
	}
}

func requests(words ...string) func(*v1.Pod) {
	return func(p *v1.Pod) { p.Spec.Containers[0].Resources.Requests = amountsOf(words...) }
}

// declares sets the limit and the expected run time of a group, in seconds; 0 for none.
func declares(limit, expected int32) func(*v1alpha1.PodGroup) {
	return func(g *v1alpha1.PodGroup) {
		g.Spec.MaximumExecutionTimeSeconds = &limit
		if expected > 0 {
			g.Spec.ExpectedExecutionTimeSeconds = &expected
		}
	}
}

// startedBefore sets how long before the record a kubelet has started a pod.
func startedBefore(d time.Duration) func(*v1.Pod) {
	return func(p *v1.Pod) { p.Status.StartTime = ptr.To(metav1.NewTime(began.Add(-d))) }
}

// scheduledBefore sets how long before the record a pod got its node.
func scheduledBefore(d time.Duration) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.Status.Conditions = []v1.PodCondition{
			{Type: v1.PodScheduled, Status: v1.ConditionTrue, LastTransitionTime: metav1.NewTime(began.Add(-d)), Message: planted},
		}
	}
}

// TestRecord compares the lines of records that end at 100 seconds, without the last one.
func TestRecord(t *testing.T) {
	t.Parallel()
	succeeded := phase(v1.PodSucceeded)
	for name, tc := range map[string]struct {
		given []step
		key   string
		want  string
		notes []string
	}{
		"a gang that starts and ends": {
			given: []step{
				{5, aGroup("a", 2)},
				{6, podsOf("a-0 a-1")}, {10, podsOf("a-0", on("n1"))}, {11, podsOf("a-1", on("n2"))},
				{50, podsOf("a-0", on("n1"), succeeded)}, {51, podsOf("a-1", on("n2"), succeeded)},
			},
			want: `{"t":6,"submit":{"name":"ns/a","queue":"q","min":2,"replicas":2,"request":{"cpu":"1"},"duration":40}}`,
		},
		"a gang is submitted when it is complete, in any order": {
			given: []step{{5, podsOf("a-0 a-1")}, {7, aGroup("a", 2)}, {10, podsOf("a-0 a-1", on("n1"))}, {30, deletedPods("a-0 a-1")}},
			want:  `{"t":7,"submit":{"name":"ns/a","queue":"q","min":2,"replicas":2,"request":{"cpu":"1"},"duration":20}}`,
		},
		"surplus pods and a priority class": {
			given: []step{
				{0, func(r *Builder, at time.Duration) {
					r.SetPriorityClass(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 7}, at)
				}},
				{1, aGroup("a", 1, func(g *v1alpha1.PodGroup) { g.Spec.PriorityClassName = "high" })},
				{2, podsOf("a-0 a-1 a-2")}, {3, podsOf("a-0", on("n1"))}, {9, podsOf("a-1", on("n1"))}, {20, deletedPods("a-0 a-1 a-2")},
			},
			want: `{"t":2,"submit":{"name":"ns/a","queue":"q","priority":7,"min":1,"replicas":3,"request":{"cpu":"1"},"duration":17}}`,
		},
		"what runs and what waits at the beginning and at the end": {
			given: []step{
				{0, aGroup("a", 2)}, {0, podsOf("a-1", on("n2"))}, {0, podsOf("a-0", on("n1"))},
				{0, aGroup("b", 2)}, {0, podsOf("b-0 b-1")},
				{60, podsOf("b-0 b-1", on("n3"))},
			},
			want: `{"t":0,"submit":{"name":"ns/a","queue":"q","min":2,"replicas":2,"request":{"cpu":"1"},"duration":100,"age":3600,"unended":true,"nodes":["n1","n2"]}}
			{"t":0,"submit":{"name":"ns/b","queue":"q","min":2,"replicas":2,"request":{"cpu":"1"},"duration":40,"age":3600,"unended":true}}`,
		},
		"a job that never starts": {
			given: []step{{20, aGroup("a", 1)}, {21, podsOf("a-0")}},
			want:  `{"t":21,"submit":{"name":"ns/a","queue":"q","min":1,"replicas":1,"request":{"cpu":"1"},"duration":0,"unended":true}}`,
		},
		"a job that is deleted while it waits": {
			given: []step{{20, aGroup("a", 1)}, {21, podsOf("a-0")}, {30, deletedGroup("a")}, {31, deletedPods("a-0")}},
			want: `{"t":21,"submit":{"name":"ns/a","queue":"q","min":1,"replicas":1,"request":{"cpu":"1"},"duration":0,"unended":true}}
			{"t":31,"cancel":"ns/a"}`,
		},
		"the last run of a gang that was evicted counts": {
			given: []step{
				{1, aGroup("a", 2)}, {1, podsOf("a-0 a-1")}, {2, podsOf("a-0 a-1", on("n1"))},
				{10, podsOf("a-0", on("n1"), evicted)}, {11, deletedPods("a-0")}, {11, podsOf("a-2")}, {40, podsOf("a-2", on("n2"))},
				{70, podsOf("a-1", on("n1"), succeeded)}, {70, podsOf("a-2", on("n2"), succeeded)},
			},
			want: `{"t":1,"submit":{"name":"ns/a","queue":"q","min":2,"replicas":2,"request":{"cpu":"1"},"duration":30}}`,
		},
		"a pod that is being deleted and the one in its place count once": {
			given: []step{
				{1, aGroup("a", 2)}, {1, podsOf("a-0 a-1")}, {2, podsOf("a-0 a-1", on("n1"))},
				{10, podsOf("a-0", on("n1"), evicted)}, {10, podsOf("a-2")}, {20, deletedPods("a-0")},
			},
			want: `{"t":1,"submit":{"name":"ns/a","queue":"q","min":2,"replicas":2,"request":{"cpu":"1"},"duration":0,"unended":true}}`,
		},
		"pods of a Job in waves are one run": {
			given: []step{
				{1, aGroup("a", 2)}, {1, podsOf("a-0 a-1")}, {2, podsOf("a-0 a-1", on("n1"))},
				{12, podsOf("a-0 a-1", on("n1"), succeeded)}, {13, podsOf("a-2 a-3")}, {14, podsOf("a-2 a-3", on("n1"))},
				{30, podsOf("a-2 a-3", on("n1"), succeeded)},
			},
			want: `{"t":1,"submit":{"name":"ns/a","queue":"q","min":2,"replicas":2,"request":{"cpu":"1"},"duration":28}}`,
		},
		"pods without a group are jobs of their own": {
			given: []step{
				{1, podsOf("x y", func(p *v1.Pod) { p.Labels[v1alpha1.LabelQueue] = "q" })},
				{2, podsOf("x", on("n1"))}, {3, podsOf("y", on("n1"))}, {10, podsOf("x", on("n1"), phase(v1.PodFailed))}, {30, deletedPods("y")},
			},
			want: `{"t":1,"submit":{"name":"ns/x","queue":"q","min":1,"replicas":1,"request":{"cpu":"1"},"duration":8}}
			{"t":1,"submit":{"name":"ns/y","queue":"q","min":1,"replicas":1,"request":{"cpu":"1"},"duration":27}}`,
		},
		"an evicted pod and the next of its controller are one job": {
			given: []step{
				{1, podsOf("x", controlledBy("rs"))}, {2, podsOf("x", controlledBy("rs"), on("n1"))},
				{9, podsOf("x", controlledBy("rs"), on("n1"), evicted)}, {10, deletedPods("x", controlledBy("rs"), evicted)},
				{11, podsOf("y", controlledBy("rs"))}, {20, podsOf("y", controlledBy("rs"), on("n1"))}, {50, deletedPods("y", controlledBy("rs"))},
			},
			want: `{"t":1,"submit":{"name":"ns/x","min":1,"replicas":1,"request":{"cpu":"1"},"duration":30}}`,
		},
		"a gang by annotations": {
			given: []step{
				{1, podsOf("x y", controlledBy("rs"), func(p *v1.Pod) { p.Annotations[v1alpha1.AnnotationGroupMinMember] = "2" })},
				{2, podsOf("x y", controlledBy("rs"), on("n1"), func(p *v1.Pod) { p.Annotations[v1alpha1.AnnotationGroupMinMember] = "2" })},
			},
			want: `{"t":1,"submit":{"name":"ns/rs","min":2,"replicas":2,"request":{"cpu":"1"},"duration":98,"unended":true}}`,
		},
		"a gang with several kinds of pods": {
			given: []step{
				{1, aGroup("a", 2)}, {1, podsOf("a-master", requests("cpu", "2"))}, {1, podsOf("a-0 a-1 a-2", requests("cpu", "8"))},
				{2, podsOf("a-master", requests("cpu", "2"), on("n1"))}, {2, podsOf("a-0 a-1 a-2", requests("cpu", "8"), on("n1"))},
			},
			want: `{"t":1,"submit":{"name":"ns/a","queue":"q","min":1,"replicas":3,"request":{"cpu":"8"},"duration":98,` +
				`"roles":[{"pods":1,"request":{"cpu":"2"}}],"unended":true}}`,
		},
		"subgroups count with their minima": {
			given: []step{
				{1, aGroup("a", 1, func(g *v1alpha1.PodGroup) {
					g.Spec.SubGroups = []v1alpha1.SubGroup{{Name: "x", MinMember: ptr.To[int32](2)}, {Name: "y"}}
				})},
				{1, podsOf("a-0 a-1 a-2")},
			},
			want: `{"t":1,"submit":{"name":"ns/a","queue":"q","min":3,"replicas":3,"request":{"cpu":"1"},"duration":0,"unended":true}}`,
		},
		"selectors, tolerations and limits": {
			given: []step{{1, podsOf("x", func(p *v1.Pod) {
				p.Spec.NodeSelector = map[string]string{"gpu-model": "A"}
				p.Spec.Affinity = trace.Affinity(map[string][]string{"zone": {"a", "b"}})
				p.Spec.Tolerations = []v1.Toleration{{Key: "gpu", Operator: v1.TolerationOpExists}, {Key: v1.TaintNodeNotReady, Operator: v1.TolerationOpExists}}
				p.Spec.ActiveDeadlineSeconds = ptr.To[int64](60)
			})}},
			want: `{"t":1,"submit":{"name":"ns/x","min":1,"replicas":1,"request":{"cpu":"1"},"duration":0,"limit":60,` +
				`"selector":{"gpu-model":["A"],"zone":["a","b"]},"unended":true,"tolerations":[{"key":"gpu","operator":"Exists"}]}}`,
		},
		"the limit of a group": {
			given: []step{
				{1, aGroup("a", 1, func(g *v1alpha1.PodGroup) { g.Spec.MaximumExecutionTimeSeconds = ptr.To[int32](30) })},
				{1, podsOf("a-0", func(p *v1.Pod) { p.Spec.ActiveDeadlineSeconds = ptr.To[int64](60) })},
			},
			want: `{"t":1,"submit":{"name":"ns/a","queue":"q","min":1,"replicas":1,"request":{"cpu":"1"},"duration":0,"limit":30,"unended":true}}`,
		},
		"the rest of the limit of what runs at the beginning": { // its PodGroup exists for an hour
			given: []step{
				{0, aGroup("a", 2, declares(1200, 900))},
				{0, podsOf("a-0", on("n1"), startedBefore(20*time.Minute))}, {0, podsOf("a-1", on("n1"), startedBefore(10*time.Minute))},
				{0, podsOf("a-2", on("n1"), startedBefore(5*time.Minute))},
				{0, aGroup("b", 1, declares(1200, 0))}, {0, podsOf("b-0")}, // it waits
				{0, aGroup("c", 2, declares(1200, 0))}, {0, podsOf("c-0", on("n1"), startedBefore(10*time.Minute))}, {0, podsOf("c-1")}, // too few
				{0, aGroup("d", 1, declares(1200, 0))}, {0, podsOf("d-0", on("n1"), startedBefore(30*time.Minute))}, // too long
				{0, aGroup("e", 1, declares(1200, 0))}, {0, podsOf("e-0", on("n1"), scheduledBefore(10*time.Minute))},
			},
			want: `{"t":0,"submit":{"name":"ns/a","queue":"q","min":2,"replicas":3,"request":{"cpu":"1"},"duration":100,"limit":600,"expected":300,"age":3600,"unended":true,"nodes":["n1","n1","n1"]}}
			{"t":0,"submit":{"name":"ns/b","queue":"q","min":1,"replicas":1,"request":{"cpu":"1"},"duration":0,"limit":1200,"age":3600,"unended":true}}
			{"t":0,"submit":{"name":"ns/c","queue":"q","min":2,"replicas":2,"request":{"cpu":"1"},"duration":0,"limit":1200,"age":3600,"unended":true,"nodes":["n1"]}}
			{"t":0,"submit":{"name":"ns/d","queue":"q","min":1,"replicas":1,"request":{"cpu":"1"},"duration":100,"limit":1,"age":3600,"unended":true,"nodes":["n1"]}}
			{"t":0,"submit":{"name":"ns/e","queue":"q","min":1,"replicas":1,"request":{"cpu":"1"},"duration":100,"limit":600,"age":3600,"unended":true,"nodes":["n1"]}}`,
		},
		"what a record does not have is noted": {
			given: []step{
				{1, podsOf("x", func(p *v1.Pod) {
					p.Spec.Affinity = &v1.Affinity{PodAffinity: &v1.PodAffinity{}}
					p.Spec.Volumes = []v1.Volume{{VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: planted}}}}
				})},
				{1, aGroup("a", 2)}, {1, podsOf("a-0")},
			},
			want: `{"t":1,"submit":{"name":"ns/x","min":1,"replicas":1,"request":{"cpu":"1"},"duration":0,"unended":true}}`,
			notes: []string{
				"1 jobs left out: too few of their pods existed, or their PodGroup did not",
				"1 jobs recorded without their affinity to other pods",
				"1 jobs recorded without their volumes or devices that tie them to nodes",
			},
		},
		"a name that is used again": {
			given: []step{
				{1, aGroup("a", 1)}, {1, podsOf("a-0")}, {2, podsOf("a-0", on("n1"))}, {3, deletedPods("a-0")}, {4, deletedGroup("a")},
				{5, aGroup("a", 1)}, {5, podsOf("a-1")}, {6, podsOf("a-1", on("n1"))}, {8, deletedPods("a-1")}, {9, deletedGroup("a")},
			},
			want: `{"t":1,"submit":{"name":"ns/a","queue":"q","min":1,"replicas":1,"request":{"cpu":"1"},"duration":1}}
			{"t":5,"submit":{"name":"ns/a#2","queue":"q","min":1,"replicas":1,"request":{"cpu":"1"},"duration":2}}`,
		},
		"pods of other schedulers hold resources": {
			given: []step{
				{0, podsOf("d", on("n1"), func(p *v1.Pod) { p.Spec.SchedulerName = "default-scheduler" })},
				{5, podsOf("e", func(p *v1.Pod) { p.Spec.SchedulerName = "default-scheduler" })},
				{6, podsOf("e", on("n2"), func(p *v1.Pod) { p.Spec.SchedulerName = "default-scheduler" })},
				{9, deletedPods("e", func(p *v1.Pod) { p.Spec.SchedulerName = "default-scheduler" })},
			},
			want: `{"t":6,"pod":{"name":"ns/e","node":"n2","request":{"cpu":"1"},"duration":3}}
			{"t":0,"pod":{"name":"ns/d","node":"n1","request":{"cpu":"1"},"duration":100,"unended":true}}`,
		},
		"nodes and queues": {
			given: []step{
				{0, aNode("n1", "4")}, {0, setQueue("q", 2)}, {1, aNode("n1", "4")}, {2, setQueue("q", 2)}, {3, aNode("n1", "8")},
				{4, aNode("n1", "8", func(n *v1.Node) {
					n.Spec.Unschedulable = true
					n.Spec.Taints = []v1.Taint{{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule}, {Key: "gpu", Value: "yes", Effect: v1.TaintEffectNoSchedule}}
				})},
				{5, setQueue("q", 3)}, {6, func(r *Builder, at time.Duration) {
					r.DeleteNode(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, at)
					r.DeleteQueue(&v1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Name: "q"}}, at)
				}},
				{7, aNode("n1", "8", func(n *v1.Node) { n.Status.Conditions[0].Status = v1.ConditionFalse })},
			},
			want: `{"t":0,"node":{"name":"n1","state":"up","allocatable":{"cpu":"4"},"labels":{"kubernetes.io/hostname":"n1"}}}
			{"t":0,"queue":{"name":"q","spec":{"weight":2}}}
			{"t":3,"node":{"name":"n1","state":"up","allocatable":{"cpu":"8"},"labels":{"kubernetes.io/hostname":"n1"}}}
			{"t":4,"node":{"name":"n1","state":"cordon","allocatable":{"cpu":"8"},"labels":{"kubernetes.io/hostname":"n1"},"taints":[{"key":"gpu","value":"yes","effect":"NoSchedule"}]}}
			{"t":5,"queue":{"name":"q","spec":{"weight":3}}}
			{"t":6,"node":{"name":"n1","state":"down"}}
			{"t":6,"queue":{"name":"q"}}
			{"t":7,"node":{"name":"n1","state":"cordon","allocatable":{"cpu":"8"},"labels":{"kubernetes.io/hostname":"n1"}}}`,
		},
		"hashed names": {
			key: "k",
			given: []step{
				{0, aNode("n1", "4")}, {0, setQueue("default", 1)}, {0, aGroup("a", 1)}, {0, podsOf("a-0", on("n1"))},
				{1, podsOf("x", func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{v1.LabelHostname: "n1"} })},
			},
			want: `{"t":0,"node":{"name":"N","state":"up","allocatable":{"cpu":"4"},"labels":{"kubernetes.io/hostname":"N"}}}
			{"t":0,"queue":{"name":"default","spec":{"weight":1}}}
			{"t":0,"submit":{"name":"A","queue":"Q","min":1,"replicas":1,"request":{"cpu":"1"},"duration":100,"age":3600,"unended":true,"nodes":["N"]}}
			{"t":1,"submit":{"name":"X","min":1,"replicas":1,"request":{"cpu":"1"},"duration":0,"selector":{"kubernetes.io/hostname":["N"]},"unended":true}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, notes := play(t, tc.given, tc.key)
			if tc.key != "" {
				n := namer{[]byte(tc.key)}
				got = strings.NewReplacer(n.name("n1"), "N", n.name("ns/a"), "A", n.name("ns/x"), "X", n.name("q"), "Q").Replace(got)
			}
			var want []string
			for line := range strings.Lines(tc.want) {
				want = append(want, strings.TrimSpace(line))
			}
			want = append(want, `{"t":100,"end":true}`)
			if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(got), "\n")); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.notes, notes); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}

func setQueue(name string, weight int32) func(*Builder, time.Duration) {
	return func(r *Builder, at time.Duration) {
		r.SetQueue(&v1alpha1.Queue{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"a": planted}}, Spec: v1alpha1.QueueSpec{Weight: weight},
		}, at)
	}
}

// play records steps, and checks that the record can be read and has no secret.
func play(t *testing.T, steps []step, key string) (lines string, notes []string) {
	t.Helper()
	var out bytes.Buffer
	r := New(&out, Options{SchedulerNames: []string{"batch-scheduler"}, Sources: api.AllGroupSources(), Key: []byte(key), Began: began})
	for _, s := range steps {
		s.apply(r, time.Duration(s.at)*time.Second)
	}
	r.End(100 * time.Second)
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), planted) {
		t.Errorf("the record has a secret:\n%s", out.String())
	}
	if strings.Contains(out.String(), "submit") {
		if _, err := trace.Read("jsonl", "the record", bytes.NewReader(out.Bytes()), trace.Options{}); err != nil {
			t.Errorf("the record cannot be read: %v", err)
		}
	}
	return out.String(), r.Notes()
}

// TestStrip looks for secrets in what the informers keep.
func TestStrip(t *testing.T) {
	t.Parallel()
	pod := aPod("a-0", on("n1"), evicted, controlledBy("rs"), func(p *v1.Pod) {
		delete(p.Labels, "x") // labels may select the subgroup of a pod
		p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: planted}}})
		p.Spec.InitContainers = p.Spec.Containers
	})
	var node *v1.Node
	aNode("n1", "4", func(n *v1.Node) { node = n })
	for _, object := range []any{pod, node} {
		before, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		after, err := json.Marshal(strip(object))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(before), planted) || strings.Contains(string(after), planted) {
			t.Errorf("kept are %s of %s", after, before)
		}
	}
	if got := strip(strip(pod)); len(got.Spec.Volumes) != 1 || got.Spec.NodeName != "n1" || got.Labels[v1alpha1.LabelPodGroup] != "a" || !disrupted(got) {
		t.Errorf("after the second time, these are left: %v", got)
	}
}

// TestFlush writes a job that has had no pods for a while, and no others.
func TestFlush(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	r := New(&out, Options{SchedulerNames: []string{"batch-scheduler"}, Began: began})
	aGroup("a", 1)(r, time.Second)
	podsOf("a-0", on("n1"))(r, time.Second)
	deletedPods("a-0")(r, time.Minute)
	aGroup("b", 1)(r, time.Minute)
	podsOf("b-0", on("n1"))(r, time.Minute)
	r.Flush(time.Minute + Linger - 1)
	if out.Len() > 0 {
		t.Errorf("written before others could replace the pods: %s", out.String())
	}
	r.Flush(time.Minute + Linger)
	if got := out.String(); !strings.Contains(got, `"ns/a"`) || strings.Count(got, "\n") != 1 {
		t.Errorf("written are\n%s, want job ns/a", got)
	}
	if got := fmt.Sprint(r.Counts()); got != "{0 0 2 1 0}" {
		t.Errorf("counts are %s", got)
	}
}
