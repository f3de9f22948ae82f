// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package groups

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/cache/internal/fakediscovery"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/groupapi"
)

// TestSources asserts that the groups of the enabled sources are known as groupapi reads them, and no others.
func TestSources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer stop()
		kinds, lists, objects := map[schema.GroupVersionResource]string{}, []*metav1.APIResourceList{}, []runtime.Object{}
		for _, a := range groupapi.All() {
			kinds[a.Resource] = "PodGroupList"
			version := a.Resource.GroupVersion().String()
			served := metav1.APIResource{Name: a.Resource.Resource}
			if at := slices.IndexFunc(lists, func(l *metav1.APIResourceList) bool { return l.GroupVersion == version }); at >= 0 {
				lists[at].APIResources = append(lists[at].APIResources, served)
			} else {
				lists = append(lists, &metav1.APIResourceList{GroupVersion: version, APIResources: []metav1.APIResource{served}})
			}
			objects = append(objects, &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": version, "kind": a.Kind, "metadata": map[string]any{"namespace": "ns", "name": "g"},
				"spec": map[string]any{"minMember": int64(2), "schedulingPolicy": map[string]any{"gang": map[string]any{"minCount": int64(2), "minGroupCount": int64(2)}}},
			}})
		}
		var discovery fakediscovery.Discovery
		discovery.Serve(lists...)
		w := New(Options{
			Dynamic:   dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, objects...),
			Discovery: &discovery, Handler: toolscache.ResourceEventHandlerFuncs{}, Clock: clock.RealClock{}, Log: logr.Discard(),
		})
		known := func() (names []string) {
			synctest.Wait()
			for _, source := range append(api.AllSources()[1:], api.SourceComposite) {
				if g := w.Get(source, "ns", "g"); g != nil && g.Source == source && max(g.Spec.MinMember, g.MinGroups) == 2 {
					names = append(names, source.String())
				}
			}
			return names
		}
		w.Enable(ctx, api.GroupSources{Native: true, Volcano: true})
		if got, want := known(), []string{"native", "volcano", "composite"}; !slices.Equal(got, want) {
			t.Errorf("got groups of %q, want %q", got, want)
		}
		w.Enable(ctx, api.GroupSources{SchedulerPlugins: true})
		w.Keep(api.GroupSources{SchedulerPlugins: true, Volcano: true})
		if got, want := known(), []string{"scheduler-plugins", "volcano"}; !slices.Equal(got, want) {
			t.Errorf("got groups of %q, want %q", got, want)
		}
	})
}
