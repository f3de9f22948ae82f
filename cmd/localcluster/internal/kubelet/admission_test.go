// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
)

// The node of these tests has 4 cpus, 2 GPUs and capacity for 3 pods. The first pod is admitted and runs; the test
// checks the decision about the second.
func TestAdmit(t *testing.T) {
	for name, test := range map[string]struct {
		first, second *corev1.Pod
		want          string // reason; empty: admitted
	}{
		"exactly the available cpu":            {newPod("a", cpu("3")), newPod("b", cpu("1")), ""},
		"slightly more than the available cpu": {newPod("a", cpu("3")), newPod("b", cpu("1001m")), "OutOfcpu"},
		"an extended resource": {
			newPod("a", request("nvidia.com/gpu", "1")), newPod("b", request("nvidia.com/gpu", "2")), "OutOfnvidia.com/gpu",
		},
		"an extended resource the node does not know": {
			newPod("a"), newPod("b", request("example.com/fpga", "1")), "", // the kubelet ignores it by design
		},
		"a host port in use":             {newPod("a", hostPort(80)), newPod("b", hostPort(80)), "NodePorts"},
		"another host port":              {newPod("a", hostPort(80)), newPod("b", hostPort(81)), ""},
		"a label the node does not have": {newPod("a"), newPod("b", selector("disk", "ssd")), "NodeAffinity"},
		"a label the node has":           {newPod("a"), newPod("b", selector("disk", "hdd")), ""},
		"no requests":                    {newPod("a", cpu("4")), newPod("b"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := newTestAdmission(t, newNode(), test.first, test.second)
			if verdict := a.admit(test.first); !verdict.Admitted {
				t.Fatalf("the first pod is not admitted: %+v", verdict)
			}
			got := a.admit(test.second)
			if got.Reason != test.want || got.Admitted != (test.want == "") {
				t.Errorf("got %+v, want reason %q", got, test.want)
			}
			if again := a.admit(test.second); again != got {
				t.Errorf("asked again: %+v, before: %+v", again, got)
			}
		})
	}
}

func TestAdmitLooksTwiceBeforeItRefuses(t *testing.T) {
	ended := newPod("a", cpu("4"))
	ended.Status.Phase = corev1.PodSucceeded
	rejectedPod := newPod("a", cpu("5"))
	for name, test := range map[string]struct {
		first *corev1.Pod   // already admitted or rejected
		now   []*corev1.Pod // current pods in the API server
		want  string
	}{
		"the first pod still exists":        {newPod("a", cpu("4")), []*corev1.Pod{newPod("a", cpu("4"))}, "OutOfcpu"},
		"the first pod is deleted":          {newPod("a", cpu("4")), nil, ""},
		"the first pod has ended":           {newPod("a", cpu("4")), []*corev1.Pod{ended}, ""},
		"another pod has the name":          {newPod("a", cpu("4")), []*corev1.Pod{withUID(newPod("a", cpu("4")), "other")}, ""},
		"the first pod was rejected":        {rejectedPod, []*corev1.Pod{rejectedPod}, ""},
		"a pod without an earlier decision": {newPod("a"), []*corev1.Pod{newPod("a"), newPod("c", cpu("4"))}, ""},
		"the API server returns an error":   {newPod("a", cpu("4")), []*corev1.Pod{broken()}, "OutOfcpu"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newTestAdmission(t, newNode(), test.now...)
			a.admit(test.first)
			if got := a.admit(newPod("b", cpu("4"))); got.Reason != test.want {
				t.Errorf("got %+v, want reason %q", got, test.want)
			}
		})
	}
}

func TestAdmitGoesByTheNodeAsItIsNow(t *testing.T) {
	small, grown := newNode(), newNode()
	grown.Status.Allocatable["cpu"] = resource.MustParse("16")
	for name, test := range map[string]struct {
		cached, current *corev1.Node
		want            string
	}{
		"the capacity has increased":           {small, grown, ""},
		"the node is not in the cache yet":     {nil, grown, ""},
		"the capacity is unchanged":            {small, small, "OutOfcpu"},
		"the node is deleted but in the cache": {small, nil, "InvalidNodeInfo"},
		"the node does not exist":              {nil, nil, "InvalidNodeInfo"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newTestAdmission(t, test.current)
			a.nodes = lister(t, test.cached)
			if got := a.admit(newPod("a", cpu("8"))); got.Reason != test.want {
				t.Errorf("got %+v, want reason %q", got, test.want)
			}
		})
	}
}

func TestAdmitLeavesTheCachedNodeAlone(t *testing.T) {
	node := newNode()
	a := newTestAdmission(t, node)
	a.admit(newPod("a"))
	diff(t, "the cached node", newNode(), node)
}

func BenchmarkAdmit(b *testing.B) {
	a := newTestAdmission(b, newNode())
	a.nodes = lister(b, roomy())
	for i := range 30 {
		a.admit(newPod(fmt.Sprint("other-", i), cpu("1m")))
	}
	pod := newPod("a", cpu("1m"))
	ledger := a.ledger(pod.Spec.NodeName)
	for b.Loop() {
		if !a.admit(pod).Admitted {
			b.Fatal("rejected")
		}
		delete(ledger.admitted, pod.UID)
	}
}

type podOption func(*corev1.Pod)

func newPod(name string, options ...podOption) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-of-" + name)},
		Spec:       corev1.PodSpec{NodeName: "node", Containers: []corev1.Container{{Name: "main", Image: "image"}}},
		Status:     corev1.PodStatus{Phase: corev1.PodPending},
	}
	for _, option := range options {
		option(pod)
	}
	return pod
}

func cpu(quantity string) podOption { return request("cpu", quantity) }

func request(name corev1.ResourceName, quantity string) podOption {
	return func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{name: resource.MustParse(quantity)}
	}
}

func hostPort(port int32) podOption {
	return func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 1, HostPort: port, Protocol: corev1.ProtocolTCP}}
	}
}

func selector(key, value string) podOption {
	return func(pod *corev1.Pod) { pod.Spec.NodeSelector = map[string]string{key: value} }
}

func withUID(pod *corev1.Pod, uid types.UID) *corev1.Pod {
	pod.UID = uid
	return pod
}

// broken makes the API server return an error for lists of pods.
func broken() *corev1.Pod { return newPod("broken") }

func newNode() *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node", Labels: map[string]string{"disk": "hdd"}},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
			"cpu": resource.MustParse("4"), "nvidia.com/gpu": resource.MustParse("2"), "pods": resource.MustParse("3"),
		}},
	}
}

func roomy() *corev1.Node {
	node := newNode()
	node.Status.Allocatable["pods"] = resource.MustParse("110")
	return node
}

// newTestAdmission returns an admission for an API server with the node, which may be nil, and the pods.
func newTestAdmission(t testing.TB, node *corev1.Node, pods ...*corev1.Pod) *admission {
	client := fake.NewClientset()
	if node != nil {
		if err := client.Tracker().Add(node); err != nil {
			t.Fatal(err)
		}
	}
	for _, pod := range pods {
		if err := client.Tracker().Add(pod); err != nil {
			t.Fatal(err)
		}
		if pod.Name == broken().Name {
			client.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, errors.New("out of order")
			})
		}
	}
	return newAdmission(context.Background(), client, lister(t, node))
}

func lister(t testing.TB, node *corev1.Node) corelisters.NodeLister {
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	if node != nil {
		if err := indexer.Add(node); err != nil {
			t.Fatal(err)
		}
	}
	return corelisters.NewNodeLister(indexer)
}

func diff(t *testing.T, what string, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}
