// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"context"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	schedulercache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	schedulerframework "k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	"k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"pgregory.net/rapid"
)

// peer is the filtering part of kube-scheduler with its default configuration.
type peer struct {
	framework  schedulerframework.Framework
	snapshot   *snapshot
	namespaces cache.Indexer
}

// snapshot can be replaced for the plugins, which are built once.
type snapshot struct{ *schedulercache.Snapshot }

func newPeer(t *testing.T) *peer {
	client := fake.NewClientset()
	return newPeerOf(t.Context(), t, client, informers.NewSharedInformerFactory(client, 0))
}

// newPeerOf returns a peer that reads objects outside its snapshot from informers, if they are started.
func newPeerOf(ctx context.Context, t *testing.T, client kubernetes.Interface, factory informers.SharedInformerFactory) *peer {
	metrics.Register()
	defaults, err := latest.Default()
	if err != nil {
		t.Fatal(err)
	}
	profile := defaults.Profiles[0]
	// Without resource claims, which are not generated, this plugin always passes; it needs running informers.
	profile.Plugins.MultiPoint.Enabled = slices.DeleteFunc(profile.Plugins.MultiPoint.Enabled, func(p config.Plugin) bool {
		return p.Name == names.DynamicResources
	})
	p := &peer{
		snapshot:   &snapshot{schedulercache.NewEmptySnapshot()},
		namespaces: factory.Core().V1().Namespaces().Informer().GetIndexer(),
	}
	p.framework, err = runtime.NewFramework(ctx, plugins.NewInTreeRegistry(), &profile,
		runtime.WithSnapshotSharedLister(p.snapshot),
		runtime.WithInformerFactory(factory),
		runtime.WithClientSet(client),
		runtime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(factory.Storage().V1().CSINodes().Lister())),
	)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// show sets the snapshot of kube-scheduler to a cluster with these pods on its nodes.
func (p *peer) show(t failer, w *fixture, podsOnNodes []*v1.Pod) {
	p.snapshot.Snapshot = schedulercache.NewSnapshot(podsOnNodes, w.nodes)
	objects := make([]any, len(w.namespaces))
	for i, ns := range w.namespaces {
		objects[i] = ns
	}
	if err := p.namespaces.Replace(objects, ""); err != nil {
		t.Fatal(err)
	}
}

// verdicts returns why kube-scheduler rejects each node, empty for nodes that fit.
func (p *peer) verdicts(t *rapid.T, pod *v1.Pod) map[string]string {
	ctx := context.Background()
	state := schedulerframework.NewCycleState()
	nodes, err := p.snapshot.NodeInfos().List()
	if err != nil {
		t.Fatal(err)
	}
	narrowed, status, _ := p.framework.RunPreFilterPlugins(ctx, state, pod)
	reasons := map[string]string{}
	for _, n := range nodes {
		name := n.Node().Name
		switch {
		case !status.IsSuccess():
			reasons[name] = reason(t, status)
		case !narrowed.AllNodes() && !narrowed.NodeNames.Has(name):
			reasons[name] = "not one of the nodes that can be meant"
		default:
			reasons[name] = reason(t, p.framework.RunFilterPlugins(ctx, state, pod, n))
		}
	}
	return reasons
}

func reason(t *rapid.T, status *fwk.Status) string {
	switch {
	case status.IsSuccess():
		return ""
	case status.Code() == fwk.Error:
		t.Fatalf("kube-scheduler fails: %v", status.AsError())
	}
	return status.Plugin() + ": " + status.Message()
}
