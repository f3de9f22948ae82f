// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Verdict is the decision of a kubelet about a pod.
type Verdict struct {
	Admitted bool

	// Reason is one word such as OutOfcpu, Message a sentence; both are empty for admitted pods.
	Reason, Message string
}

// admission admits pods to nodes with the rules of the real kubelet. It is safe for concurrent use; decisions for one
// node are serialized.
//
// It does not watch pods. It records the pods that it admitted. Before it rejects a pod it reads the current pods and
// the node from the API server and forgets pods that have ended. So it never rejects a pod because of a pod that had
// ended or was deleted before, or because of an outdated capacity.
type admission struct {
	ctx    context.Context // for requests to the API server
	client kubernetes.Interface
	nodes  corelisters.NodeLister

	mu      sync.Mutex
	ledgers map[string]*nodeAdmission // by node name
}

// nodeAdmission records the decisions about pods of one node that have not ended.
type nodeAdmission struct {
	mu       sync.Mutex
	admitted map[types.UID]*corev1.Pod
	rejected map[types.UID]Verdict
}

func newAdmission(ctx context.Context, client kubernetes.Interface, nodes corelisters.NodeLister) *admission {
	return &admission{ctx: ctx, client: client, nodes: nodes, ledgers: map[string]*nodeAdmission{}}
}

// admit decides about a pod that is bound to a node. The first decision for a pod is final, because kwok may ask
// twice.
func (a *admission) admit(pod *corev1.Pod) Verdict {
	l := a.ledger(pod.Spec.NodeName)
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.admitted[pod.UID]; ok {
		return Verdict{Admitted: true}
	}
	if verdict, ok := l.rejected[pod.UID]; ok {
		return verdict
	}
	verdict := l.admit(pod, a.cachedNode)
	if !verdict.Admitted {
		a.forgetEnded(pod.Spec.NodeName, l)
		verdict = l.admit(pod, a.freshNode)
	}
	if verdict.Admitted {
		l.admitted[pod.UID] = trim(pod)
	} else {
		l.rejected[pod.UID] = verdict
	}
	return verdict
}

func (a *admission) ledger(node string) *nodeAdmission {
	a.mu.Lock()
	defer a.mu.Unlock()
	l, ok := a.ledgers[node]
	if !ok {
		l = &nodeAdmission{admitted: map[types.UID]*corev1.Pod{}, rejected: map[types.UID]Verdict{}}
		a.ledgers[node] = l
	}
	return l
}

// admit runs the real kubelet's admission.
func (l *nodeAdmission) admit(pod *corev1.Pod, node func(name string) (*corev1.Node, error)) Verdict {
	handler := lifecycle.NewPredicateAdmitHandler(
		func(context.Context, bool) (*corev1.Node, error) { return node(pod.Spec.NodeName) },
		lifecycle.NewAdmissionFailureHandlerStub(),
		func(*framework.NodeInfo, *lifecycle.PodAdmitAttributes) error { return nil },
	)
	result := handler.Admit(&lifecycle.PodAdmitAttributes{
		Pod:       pod,
		OtherPods: slices.Collect(maps.Values(l.admitted)), // in any order
	})
	return Verdict{Admitted: result.Admit, Reason: result.Reason, Message: result.Message}
}

// forgetEnded removes pods that the API server does not have or that have ended.
func (a *admission) forgetEnded(node string, l *nodeAdmission) {
	pods, err := a.client.CoreV1().Pods(metav1.NamespaceAll).List(a.ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String(),
	})
	if err != nil {
		klog.ErrorS(err, "Reading pods of a node failed", "node", node)
		return
	}
	active := map[types.UID]bool{}
	for i := range pods.Items {
		phase := pods.Items[i].Status.Phase
		active[pods.Items[i].UID] = phase != corev1.PodSucceeded && phase != corev1.PodFailed
	}
	maps.DeleteFunc(l.admitted, func(uid types.UID, _ *corev1.Pod) bool { return !active[uid] })
	maps.DeleteFunc(l.rejected, func(uid types.UID, _ Verdict) bool { return !active[uid] })
}

// cachedNode returns the node from the informer, which may not have a new node yet.
func (a *admission) cachedNode(name string) (*corev1.Node, error) {
	node, err := a.nodes.Get(name)
	if err != nil {
		return nil, err
	}
	return withLabels(node), nil
}

// freshNode returns the node from the API server.
func (a *admission) freshNode(name string) (*corev1.Node, error) {
	node, err := a.client.CoreV1().Nodes().Get(a.ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return withLabels(node), nil
}

// withLabels copies a node because the kubelet's code sets a missing label for the operating system.
func withLabels(node *corev1.Node) *corev1.Node {
	shallow := *node
	shallow.Labels = maps.Clone(node.Labels)
	return &shallow
}

// trim returns the fields of a pod that affect the admission of others.
func trim(pod *corev1.Pod) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, Labels: pod.Labels},
		Spec:       pod.Spec,
	}
}
