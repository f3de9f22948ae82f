// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package groupapi

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// TestVolcanoSubGroups compares the subgroups of PodGroups of Volcano with those of PodGroups of this scheduler.
func TestVolcanoSubGroups(t *testing.T) {
	for name, tc := range map[string]struct{ volcano, want string }{
		"tasks": {
			"minTaskMember: {worker: 4, driver: 1}",
			`- {name: driver, minMember: 1, selector: {matchLabels: {volcano.sh/task-spec: driver}}}
- {name: worker, minMember: 4, selector: {matchLabels: {volcano.sh/task-spec: worker}}}`,
		},
		"policies": {
			"subGroupPolicy: [{name: tp, labelSelector: {matchLabels: {role: w}}, matchLabelKeys: [replica], subGroupSize: 4, minSubGroups: 2}]",
			"- {name: tp, selector: {matchLabels: {role: w}}, segmentBy: replica, segmentSize: 4, minSubGroup: 2}",
		},
		"defaults of a policy": {
			"subGroupPolicy: [{name: tp, matchLabelKeys: [replica]}]",
			"- {name: tp, selector: {}, segmentBy: replica, segmentSize: 1, minSubGroup: 0}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte("spec: {"+tc.volcano+"}"), &u.Object); err != nil {
				t.Fatal(err)
			}
			g, err := readVolcano(u)
			if err != nil {
				t.Fatal(err)
			}
			var want []v1alpha1.SubGroup
			if err := yaml.UnmarshalStrict([]byte(tc.want), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, g.Spec.SubGroups); diff != "" || g.NotSupported != "" {
				t.Errorf("not supported: %q, subgroups (-want +got):\n%s", g.NotSupported, diff)
			}
		})
	}
}
