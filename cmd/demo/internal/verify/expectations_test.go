// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package verify_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/batch-scheduler/batch-scheduler/cmd/demo/internal/verify"
)

// TestSamplesTellTheStory holds the story to what config/samples contains, so that nothing of it is overlooked.
func TestSamplesTellTheStory(t *testing.T) {
	t.Parallel()
	rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), "../../../../config/samples")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, r := range rendered.Resources() {
		if namespace := r.GetNamespace(); namespace != "" && namespace != verify.Samples().Namespace {
			t.Errorf("%s %s is in namespace %s", r.GetKind(), r.GetName(), namespace)
		}
		got[r.GetKind()] = append(got[r.GetKind()], r.GetName())
	}
	for kind := range got {
		slices.Sort(got[kind])
	}
	story := verify.Samples()
	groups := slices.Clone(story.Gangs)
	for _, i := range story.Infeasible {
		groups = append(groups, i.Group)
	}
	const handmade, roles = "train-early", "ray" // all other groups have a Job of their name
	want := map[string][]string{
		"Namespace":  {story.Namespace},
		"Queue":      without(story.Queues, "default"), // is in config/default
		"PodGroup":   without(groups),
		"Deployment": story.Deployments,
		"Pod":        append(slices.Clone(story.Pods), handmade+"-0", handmade+"-1"),
		"Job":        without(append(groups, append(story.Jobs, roles+"-head", roles+"-cpu-worker", roles+"-gpu-worker")...), handmade, roles),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects (-story +samples):\n%s", diff)
	}
}

// without returns the names in their order, but for some.
func without(names []string, some ...string) []string {
	rest := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(some, name) })
	slices.Sort(rest)
	return rest
}
