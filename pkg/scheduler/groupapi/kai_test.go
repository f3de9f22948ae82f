// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package groupapi

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// TestKAISubGroups compares the subgroups of PodGroups of KAI Scheduler with those of PodGroups of this scheduler.
func TestKAISubGroups(t *testing.T) {
	for name, tc := range map[string]struct{ kai, want string }{
		"none": {"{subGroups: []}", "[]"},
		"roles": { // as of a RayCluster
			"{minMember: 5, subGroups: [{name: headgroup, minMember: 1}, {name: gpu, minMember: 4}]}",
			`- {name: headgroup, minMember: 1, selector: {matchLabels: {kai.scheduler/subgroup-name: headgroup}}}
- {name: gpu, minMember: 4, selector: {matchLabels: {kai.scheduler/subgroup-name: gpu}}}`,
		},
		"replicas": { // as of a JobSet
			`{minSubGroup: 1, subGroups: [{name: w, minMember: 0, minSubGroup: 2},
{name: w-replica-0, parent: w, minMember: 4}, {name: w-replica-1, parent: w, minMember: 4}]}`,
			`- {name: w, minSubGroup: 2}
- {name: w-replica-0, parent: w, minMember: 4, selector: {matchLabels: {kai.scheduler/subgroup-name: w-replica-0}}}
- {name: w-replica-1, parent: w, minMember: 4, selector: {matchLabels: {kai.scheduler/subgroup-name: w-replica-1}}}`,
		},
		"some of the group": {
			"{minSubGroup: 1, subGroups: [{name: a, minMember: 2}, {name: b, minMember: 3}]}",
			`- {name: subGroups, minSubGroup: 1}
- {name: a, parent: subGroups, minMember: 2, selector: {matchLabels: {kai.scheduler/subgroup-name: a}}}
- {name: b, parent: subGroups, minMember: 3, selector: {matchLabels: {kai.scheduler/subgroup-name: b}}}`,
		},
		"none of the group is required": {
			"{minSubGroup: 0, subGroups: [{name: a, minMember: 2}]}",
			`- {name: subGroups, minSubGroup: 0}
- {name: a, parent: subGroups, minMember: 2, selector: {matchLabels: {kai.scheduler/subgroup-name: a}}}`,
		},
		"a minimum that contradicts the children stays": {
			"{subGroups: [{name: a, minMember: 2}, {name: b, parent: a, minMember: 1}]}",
			`- {name: a, minMember: 2}
- {name: b, parent: a, minMember: 1, selector: {matchLabels: {kai.scheduler/subgroup-name: b}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := readKAI(object(t, "spec: "+tc.kai))
			if err != nil {
				t.Fatal(err)
			}
			want := []v1alpha1.SubGroup{}
			if err := yaml.UnmarshalStrict([]byte(tc.want), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, append([]v1alpha1.SubGroup{}, g.Spec.SubGroups...)); diff != "" || g.NotSupported != "" {
				t.Errorf("not supported: %q, subgroups (-want +got):\n%s", g.NotSupported, diff)
			}
		})
	}
}
