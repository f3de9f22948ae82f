// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package othergroups

import (
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery/fake"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/groupapi"
)

// TestPodGroupsOf: the PodGroups of a composite group are all below it, on any level; those of a PodGroup it alone.
func TestPodGroupsOf(t *testing.T) {
	kinds := map[schema.GroupVersionResource]string{}
	for _, a := range groupapi.All() {
		kinds[a.Resource] = a.Kind + "List"
	}
	var objects []runtime.Object
	for _, line := range []string{
		"CompositePodGroup root", "CompositePodGroup mid root", "PodGroup a mid", "PodGroup b root", "PodGroup root mid", "PodGroup alone",
		"CompositePodGroup round about", "CompositePodGroup about round", "PodGroup c round", "PodGroup lost gone",
	} {
		words := strings.Fields(line + " ")
		u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
		if len(words) == 3 {
			u.Object["spec"] = map[string]any{"parentCompositePodGroupName": words[2]}
		}
		u.SetAPIVersion("scheduling.k8s.io/v1alpha3")
		u.SetKind(words[0])
		u.SetNamespace("ns")
		u.SetName(words[1])
		objects = append(objects, u)
	}
	served := &metav1.APIResourceList{GroupVersion: "scheduling.k8s.io/v1alpha3", APIResources: []metav1.APIResource{{Name: "podgroups"}, {Name: "compositepodgroups"}}}
	r := Reader{
		Dynamic:   dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, objects...),
		Discovery: &fake.FakeDiscovery{Fake: &clienttesting.Fake{Resources: []*metav1.APIResourceList{served}}},
	}
	for name, want := range map[string]string{
		"composite/root": "ns/a ns/b ns/root", "composite/mid": "ns/a ns/root", "composite/about": "ns/c", "native/a": "ns/a",
	} {
		source, name, _ := strings.Cut(name, "/")
		found, err := r.Find(t.Context(), "ns", name)
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(found, func(g Group) bool { return g.Source == api.GroupSource(source) })
		got, err := r.PodGroupsOf(t.Context(), found[at].Group)
		if err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(slices.Sorted(maps.Keys(got)), " "); text != want {
			t.Errorf("%s %s has the PodGroups %s, want %s", source, name, text, want)
		}
	}
}
