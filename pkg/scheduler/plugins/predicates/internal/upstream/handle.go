package upstream

import (
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/core"
	corev1 "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	listersv1 "k8s.io/client-go/listers/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// handle is all that the plugins get to see. What it does not override is nil: plugins must not
// call it when they filter, and a cycle in which one does fails visibly.
type handle struct {
	fwk.Handle
	mirror  *snapshot
	factory informers.SharedInformerFactory
	kube    kubernetes.Interface
	devices *Devices
}

func (h *handle) SnapshotSharedLister() fwk.SharedLister { return h.mirror }

func (h *handle) Parallelizer() fwk.Parallelizer { return parallelizer{} }

// ClientSet is used to bind volumes and to allocate devices, and for nothing else.
func (h *handle) ClientSet() kubernetes.Interface { return h.kube }

func (h *handle) SharedCSIManager() fwk.CSIManager {
	return nodevolumelimits.NewCSIManager(h.factory.Storage().V1().CSINodes().Lister())
}

func (h *handle) SharedDRAManager() fwk.SharedDRAManager { return h.devices }

func (h *handle) SharedInformerFactory() informers.SharedInformerFactory {
	return factory{h.factory, h.mirror}
}

// factory is the real one, except that namespaces are read from the model, which stands still in
// a session. The real one may be nil: then there are namespaces only.
type factory struct {
	informers.SharedInformerFactory
	mirror *snapshot
}

func (f factory) Core() core.Interface {
	if f.SharedInformerFactory == nil {
		return coreGroup{nil, f.mirror}
	}
	return coreGroup{f.SharedInformerFactory.Core(), f.mirror}
}

type coreGroup struct {
	core.Interface
	mirror *snapshot
}

func (g coreGroup) V1() corev1.Interface {
	if g.Interface == nil {
		return coreV1{nil, g.mirror}
	}
	return coreV1{g.Interface.V1(), g.mirror}
}

type coreV1 struct {
	corev1.Interface
	mirror *snapshot
}

func (v coreV1) Namespaces() corev1.NamespaceInformer { return namespaceInformer{mirror: v.mirror} }

type namespaceInformer struct {
	corev1.NamespaceInformer
	mirror *snapshot
}

func (i namespaceInformer) Lister() listersv1.NamespaceLister { return namespaces{mirror: i.mirror} }

// namespaces lists the namespaces of the model, with name and labels only.
type namespaces struct {
	listersv1.NamespaceListerExpansion
	mirror *snapshot
}

func (l namespaces) List(selector labels.Selector) ([]*v1.Namespace, error) {
	var list []*v1.Namespace
	for _, name := range l.mirror.cluster.NamespacesSelected(selector) {
		list = append(list, namespaceOf(l.mirror.cluster, name))
	}
	return list, nil
}

func (l namespaces) Get(name string) (*v1.Namespace, error) {
	if _, known := l.mirror.cluster.NamespaceLabels(name); !known {
		return nil, apierrors.NewNotFound(v1.Resource("namespaces"), name)
	}
	return namespaceOf(l.mirror.cluster, name), nil
}

func namespaceOf(cluster api.ClusterView, name string) *v1.Namespace {
	set, _ := cluster.NamespaceLabels(name)
	return &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: set}}
}
