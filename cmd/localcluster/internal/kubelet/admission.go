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

// Verdict is whether a kubelet admits a pod and, if not, why.
type Verdict struct {
	Admitted bool

	// Reason is one word such as OutOfcpu, Message a sentence; both empty when admitted.
	Reason, Message string
}

// admission admits pods to nodes by the rules of the real kubelet. It is safe for
// concurrent use; pods of one node wait for each other.
//
// It keeps no watch on pods. It knows which pods it admitted, and learns that some of them
// are gone when it is about to refuse another for their sake: then it asks the API server
// for the pods and the node as they are now. So it never refuses a pod for one that had
// ended or was deleted before that pod came, nor for a node that has grown since.
type admission struct {
	ctx    context.Context // bounds the questions to the API server
	client kubernetes.Interface
	nodes  corelisters.NodeLister

	mu      sync.Mutex
	ledgers map[string]*nodeAdmission // by node name
}

// nodeAdmission is what a kubelet has decided about pods that have not ended, as far as it knows.
type nodeAdmission struct {
	mu       sync.Mutex
	admitted map[types.UID]*corev1.Pod
	refused  map[types.UID]Verdict
}

func newAdmission(ctx context.Context, client kubernetes.Interface, nodes corelisters.NodeLister) *admission {
	return &admission{ctx: ctx, client: client, nodes: nodes, ledgers: map[string]*nodeAdmission{}}
}

// admit decides about a pod that is bound to a node. The first answer for a pod stands,
// because kwok may ask twice.
func (a *admission) admit(pod *corev1.Pod) Verdict {
	l := a.ledger(pod.Spec.NodeName)
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.admitted[pod.UID]; ok {
		return Verdict{Admitted: true}
	}
	if verdict, ok := l.refused[pod.UID]; ok {
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
		l.refused[pod.UID] = verdict
	}
	return verdict
}

func (a *admission) ledger(node string) *nodeAdmission {
	a.mu.Lock()
	defer a.mu.Unlock()
	l, ok := a.ledgers[node]
	if !ok {
		l = &nodeAdmission{admitted: map[types.UID]*corev1.Pod{}, refused: map[types.UID]Verdict{}}
		a.ledgers[node] = l
	}
	return l
}

// admit asks the real kubelet's code.
func (l *nodeAdmission) admit(pod *corev1.Pod, node func(name string) (*corev1.Node, error)) Verdict {
	handler := lifecycle.NewPredicateAdmitHandler(
		func(context.Context, bool) (*corev1.Node, error) { return node(pod.Spec.NodeName) },
		lifecycle.NewAdmissionFailureHandlerStub(),
		func(*framework.NodeInfo, *lifecycle.PodAdmitAttributes) error { return nil },
	)
	result := handler.Admit(&lifecycle.PodAdmitAttributes{
		Pod:       pod,
		OtherPods: slices.Collect(maps.Values(l.admitted)), // their order does not matter
	})
	return Verdict{Admitted: result.Admit, Reason: result.Reason, Message: result.Message}
}

// forgetEnded drops from the ledger what the API server no longer has, or has as ended.
func (a *admission) forgetEnded(node string, l *nodeAdmission) {
	pods, err := a.client.CoreV1().Pods(metav1.NamespaceAll).List(a.ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String(),
	})
	if err != nil {
		klog.ErrorS(err, "A simulated kubelet decides with what it knew before", "node", node)
		return
	}
	active := map[types.UID]bool{}
	for i := range pods.Items {
		phase := pods.Items[i].Status.Phase
		active[pods.Items[i].UID] = phase != corev1.PodSucceeded && phase != corev1.PodFailed
	}
	maps.DeleteFunc(l.admitted, func(uid types.UID, _ *corev1.Pod) bool { return !active[uid] })
	maps.DeleteFunc(l.refused, func(uid types.UID, _ Verdict) bool { return !active[uid] })
}

// cachedNode returns the node as the informer last saw it; a new node it may not have seen.
func (a *admission) cachedNode(name string) (*corev1.Node, error) {
	node, err := a.nodes.Get(name)
	if err != nil {
		return nil, err
	}
	return withLabels(node), nil
}

// freshNode returns the node as the API server has it.
func (a *admission) freshNode(name string) (*corev1.Node, error) {
	node, err := a.client.CoreV1().Nodes().Get(a.ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return withLabels(node), nil
}

// withLabels copies what the kubelet's code may write to: it sets a missing label for the
// operating system.
func withLabels(node *corev1.Node) *corev1.Node {
	shallow := *node
	shallow.Labels = maps.Clone(node.Labels)
	return &shallow
}

// trim keeps of a pod what counts for the admission of others.
func trim(pod *corev1.Pod) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, Labels: pod.Labels},
		Spec:       pod.Spec,
	}
}
