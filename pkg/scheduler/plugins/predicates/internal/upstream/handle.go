// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

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

// handle is the framework handle of the plugins. Methods that it does not override panic: plugins must not call them
// in Filter, and a call fails the cycle visibly.
type handle struct {
	fwk.Handle
	snapshot *snapshot
	factory  informers.SharedInformerFactory
	kube     kubernetes.Interface
	devices  *Devices
	future   *future
	view     *view
}

func (h *handle) SnapshotSharedLister() fwk.SharedLister { return h.snapshot }

func (h *handle) Parallelizer() fwk.Parallelizer { return parallelizer{} }

// ClientSet returns the client that binds volumes and allocates devices.
func (h *handle) ClientSet() kubernetes.Interface { return h.kube }

func (h *handle) SharedCSIManager() fwk.CSIManager {
	return nodevolumelimits.NewCSIManager(h.factory.Storage().V1().CSINodes().Lister())
}

func (h *handle) SharedDRAManager() fwk.SharedDRAManager {
	return draManager{h.devices, h.future, h.view}
}

func (h *handle) SharedInformerFactory() informers.SharedInformerFactory {
	return factory{h.factory, h.snapshot}
}

// factory is the informer factory of the handle, except that namespaces come from the model, which does not change
// within a session. The wrapped factory may be nil: then only namespaces are available.
type factory struct {
	informers.SharedInformerFactory
	snapshot *snapshot
}

func (f factory) Core() core.Interface {
	if f.SharedInformerFactory == nil {
		return coreGroup{nil, f.snapshot}
	}
	return coreGroup{f.SharedInformerFactory.Core(), f.snapshot}
}

type coreGroup struct {
	core.Interface
	snapshot *snapshot
}

func (g coreGroup) V1() corev1.Interface {
	if g.Interface == nil {
		return coreV1{nil, g.snapshot}
	}
	return coreV1{g.Interface.V1(), g.snapshot}
}

type coreV1 struct {
	corev1.Interface
	snapshot *snapshot
}

func (v coreV1) Namespaces() corev1.NamespaceInformer { return namespaceInformer{snapshot: v.snapshot} }

type namespaceInformer struct {
	corev1.NamespaceInformer
	snapshot *snapshot
}

func (i namespaceInformer) Lister() listersv1.NamespaceLister {
	return namespaces{snapshot: i.snapshot}
}

// namespaces lists the namespaces of the model, with name and labels only.
type namespaces struct {
	listersv1.NamespaceListerExpansion
	snapshot *snapshot
}

func (l namespaces) List(selector labels.Selector) ([]*v1.Namespace, error) {
	var list []*v1.Namespace
	for _, name := range l.snapshot.cluster.NamespacesSelected(selector) {
		list = append(list, namespaceOf(l.snapshot.cluster, name))
	}
	return list, nil
}

func (l namespaces) Get(name string) (*v1.Namespace, error) {
	if _, known := l.snapshot.cluster.NamespaceLabels(name); !known {
		return nil, apierrors.NewNotFound(v1.Resource("namespaces"), name)
	}
	return namespaceOf(l.snapshot.cluster, name), nil
}

func namespaceOf(cluster api.ClusterView, name string) *v1.Namespace {
	set, _ := cluster.NamespaceLabels(name)
	return &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: set}}
}
