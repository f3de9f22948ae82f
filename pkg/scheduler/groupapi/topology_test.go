// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package groupapi

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// TestTopology: the topology constraints of PodGroups of each API, in the fields of PodGroups of this scheduler.
func TestTopology(t *testing.T) {
	const gang = "schedulingPolicy: {gang: {minCount: 8}}"
	for name, tc := range map[string]struct {
		api                *API
		text               string
		want, notSupported string
	}{
		"native":                  {nativeV1alpha2(), "spec: {" + gang + ", schedulingConstraints: {topology: [{key: example.com/rack}]}}", `topologyConstraint: {topology: "*", requiredTopologyLevel: example.com/rack}`, ""},
		"native, several":         {nativeV1alpha2(), "spec: {" + gang + ", schedulingConstraints: {topology: [{key: a}, {key: b}]}}", "", "spec.schedulingConstraints.topology with several entries"},
		"native 1.37":             {nativeV1beta1(), "spec: {" + gang + ", schedulingConstraints: {topology: [{key: example.com/rack}]}}", `topologyConstraint: {topology: "*", requiredTopologyLevel: example.com/rack}`, ""},
		"native 1.37, several":    {nativeV1beta1(), "spec: {" + gang + ", schedulingConstraints: {topology: [{key: a}, {key: b}]}}", "", "spec.schedulingConstraints.topology with several entries"},
		"native 1.37, pods":       {nativeV1beta1(), "spec: {schedulingPolicy: {basic: {}}, schedulingConstraints: {topology: [{key: rack}]}}", `topologyConstraint: {topology: "*", requiredTopologyLevel: rack}`, ""},
		"native, pods, annotated": {nativeV1beta1(), "{metadata: {annotations: {kueue.x-k8s.io/podset-required-topology: rack}}, spec: {schedulingPolicy: {basic: {}}}}", `topologyConstraint: {topology: "*", requiredTopologyLevel: rack}`, ""},
		"composite":               {compositeV1alpha3(), "spec: {schedulingPolicy: {basic: {}}, schedulingConstraints: {topology: [{key: rack}]}}", `topologyConstraint: {topology: "*", requiredTopologyLevel: rack}`, ""},
		"native, named topology":  {nativeV1beta1(), "{metadata: {annotations: {scheduling.batch-scheduler.dev/topology: power}}, spec: {" + gang + ", schedulingConstraints: {topology: [{key: rack}]}}}", "topologyConstraint: {topology: power, requiredTopologyLevel: rack}", ""},
		"part of a tree, preferred": {
			nativeV1beta1(), "{metadata: {annotations: {scheduling.batch-scheduler.dev/topology-preferred: rack}}, spec: {parentCompositePodGroupName: p, " + gang + "}}", "",
			"a preferred topology level of a part of a tree of groups",
		},

		"kai":                        {kai(), "spec: {topologyConstraint: {topology: t, requiredTopologyLevel: block, preferredTopologyLevel: rack}}", "topologyConstraint: {topology: t, requiredTopologyLevel: block, preferredTopologyLevel: rack}", ""},
		"kai, without a topology":    {kai(), "spec: {topologyConstraint: {requiredTopologyLevel: example.com/rack}}", `topologyConstraint: {topology: "*", requiredTopologyLevel: example.com/rack}`, ""},
		"kai, without a level":       {kai(), "spec: {topologyConstraint: {topology: t}}", "", ""},
		"kai, subgroup":              {kai(), "spec: {minSubGroup: 1, subGroups: [{name: a, minMember: 2, topologyConstraint: {topology: t, requiredTopologyLevel: rack, preferredTopologyLevel: rack}}]}", "subGroups: [{name: a, minMember: 2, selector: {matchLabels: {kai.scheduler/subgroup-name: a}}, topologyConstraint: {topology: t, requiredTopologyLevel: rack}}]", ""},
		"kai, subgroup that prefers": {kai(), "spec: {subGroups: [{name: a, minMember: 2, topologyConstraint: {topology: t, preferredTopologyLevel: rack}}]}", "", "spec.subGroups.topologyConstraint.preferredTopologyLevel"},
		"kai, from its owner":        {kai(), "metadata: {annotations: {kai.scheduler/topology: t, kai.scheduler/topology-required-placement: block, kai.scheduler/topology-preferred-placement: rack}}", "topologyConstraint: {topology: t, requiredTopologyLevel: block, preferredTopologyLevel: rack}", ""},

		"volcano, hard":                    {volcano(), "spec: {minMember: 8, networkTopology: {mode: hard, highestTierName: rack}}", "topologyConstraint: {requiredTopologyLevel: rack}", ""},
		"volcano, default mode":            {volcano(), "spec: {minMember: 8, networkTopology: {highestTierName: rack}}", "topologyConstraint: {requiredTopologyLevel: rack}", ""},
		"volcano, soft":                    {volcano(), "spec: {minMember: 8, networkTopology: {mode: soft, highestTierName: rack}}", "topologyConstraint: {preferredTopologyLevel: rack}", ""},
		"volcano, number":                  {volcano(), "spec: {minMember: 8, networkTopology: {mode: hard, highestTierAllowed: 2}}", "topologyConstraint: {requiredTopologyLevel: tier 2}", ""},
		"volcano, soft without tier":       {volcano(), "spec: {minMember: 8, networkTopology: {mode: soft}}", "topologyConstraint: {preferredTopologyLevel: tier 1}", ""},
		"volcano, hard without tier":       {volcano(), "spec: {minMember: 8, networkTopology: {mode: hard}}", "", "spec.networkTopology of mode hard without highestTierName or highestTierAllowed"},
		"volcano, two tiers":               {volcano(), "spec: {minMember: 8, networkTopology: {highestTierName: rack, highestTierAllowed: 1}}", "", "spec.networkTopology with both highestTierName and highestTierAllowed"},
		"volcano, unknown mode":            {volcano(), "spec: {minMember: 8, networkTopology: {mode: firm, highestTierName: rack}}", "", "spec.networkTopology.mode firm"},
		"volcano, named topology":          {volcano(), "{metadata: {annotations: {scheduling.batch-scheduler.dev/topology: power}}, spec: {minMember: 8, networkTopology: {highestTierAllowed: 1}}}", "topologyConstraint: {topology: power, requiredTopologyLevel: tier 1}", ""},
		"volcano, policy":                  {volcano(), "spec: {minMember: 8, subGroupPolicy: [{name: tp, matchLabelKeys: [replica], subGroupSize: 4, minSubGroups: 2, networkTopology: {mode: hard, highestTierName: rack}}]}", "subGroups: [{name: tp, selector: {}, segmentBy: replica, segmentSize: 4, minSubGroup: 2, segmentTopologyConstraint: {requiredTopologyLevel: rack}}]", ""},
		"volcano, policy, named topology":  {volcano(), "{metadata: {annotations: {scheduling.batch-scheduler.dev/topology: power}}, spec: {minMember: 8, subGroupPolicy: [{name: tp, matchLabelKeys: [replica], subGroupSize: 4, minSubGroups: 2, networkTopology: {mode: hard, highestTierName: rack}}]}}", "subGroups: [{name: tp, selector: {}, segmentBy: replica, segmentSize: 4, minSubGroup: 2, segmentTopologyConstraint: {topology: power, requiredTopologyLevel: rack}}]", ""},
		"volcano, soft policy":             {volcano(), "spec: {minMember: 8, subGroupPolicy: [{name: tp, matchLabelKeys: [replica], networkTopology: {mode: soft, highestTierName: rack}}]}", "", "subGroupPolicy: spec.networkTopology of mode soft"},
		"volcano, field before annotation": {volcano(), "{metadata: {annotations: {kueue.x-k8s.io/podset-required-topology: zone}}, spec: {minMember: 8, networkTopology: {highestTierName: rack}}}", "topologyConstraint: {requiredTopologyLevel: rack}", ""},

		"own annotations":   {schedulerPlugins(), "metadata: {annotations: {scheduling.batch-scheduler.dev/topology: t, scheduling.batch-scheduler.dev/topology-required: block, scheduling.batch-scheduler.dev/topology-preferred: rack, kueue.x-k8s.io/podset-required-topology: zone}}", "topologyConstraint: {topology: t, requiredTopologyLevel: block, preferredTopologyLevel: rack}", ""},
		"kueue, required":   {schedulerPlugins(), "metadata: {annotations: {kueue.x-k8s.io/podset-required-topology: example.com/rack}}", `topologyConstraint: {topology: "*", requiredTopologyLevel: example.com/rack}`, ""},
		"kueue, preferred":  {schedulerPlugins(), "metadata: {annotations: {scheduling.batch-scheduler.dev/topology: t, kueue.x-k8s.io/podset-preferred-topology: rack}}", "topologyConstraint: {topology: t, preferredTopologyLevel: rack}", ""},
		"kueue, none":       {schedulerPlugins(), "metadata: {annotations: {kueue.x-k8s.io/podset-unconstrained-topology: 'true'}}", "", ""},
		"kueue, slices":     {schedulerPlugins(), "{metadata: {annotations: {kueue.x-k8s.io/podset-required-topology: block, kueue.x-k8s.io/podset-slice-required-topology: rack, kueue.x-k8s.io/podset-slice-size: '4'}}, spec: {minMember: 8}}", `{topologyConstraint: {topology: "*", requiredTopologyLevel: block}, subGroups: [{name: slices, selector: {}, segmentBy: "*", segmentSize: 4, minSubGroup: 2, segmentTopologyConstraint: {topology: "*", requiredTopologyLevel: rack}}]}`, ""},
		"kueue, broken":     {schedulerPlugins(), "{metadata: {annotations: {kueue.x-k8s.io/podset-slice-required-topology: rack, kueue.x-k8s.io/podset-slice-size: '3'}}, spec: {minMember: 8}}", "", "annotation kueue.x-k8s.io/podset-slice-size is 3, but 8 pods start together, which are no whole slices"},
		"kueue, no size":    {schedulerPlugins(), "metadata: {annotations: {kueue.x-k8s.io/podset-slice-required-topology: rack}}", "", "annotation kueue.x-k8s.io/podset-slice-required-topology without kueue.x-k8s.io/podset-slice-size"},
		"kueue, no level":   {schedulerPlugins(), "metadata: {annotations: {kueue.x-k8s.io/podset-slice-size: '4'}}", "", "annotation kueue.x-k8s.io/podset-slice-size without kueue.x-k8s.io/podset-slice-required-topology"},
		"kueue, no number":  {schedulerPlugins(), "metadata: {annotations: {kueue.x-k8s.io/podset-slice-required-topology: rack, kueue.x-k8s.io/podset-slice-size: four}}", "", `annotation kueue.x-k8s.io/podset-slice-size is "four", not a positive number`},
		"kueue, layers":     {schedulerPlugins(), "metadata: {annotations: {kueue.x-k8s.io/podset-slice-required-topology-constraints: '[]'}}", "", "annotation kueue.x-k8s.io/podset-slice-required-topology-constraints"},
		"kueue, sub groups": {kai(), "{metadata: {annotations: {kueue.x-k8s.io/podset-slice-required-topology: rack, kueue.x-k8s.io/podset-slice-size: '4'}}, spec: {subGroups: [{name: a, minMember: 4}]}}", "", "annotation kueue.x-k8s.io/podset-slice-required-topology of a group with subgroups"},
	} {
		t.Run(name, func(t *testing.T) {
			g := tc.api.Read(object(t, tc.text))
			if g.NotSupported != tc.notSupported {
				t.Fatalf("not supported: %q, want %q", g.NotSupported, tc.notSupported)
			}
			if tc.notSupported != "" {
				return
			}
			if g.Basic {
				t.Error("pods of the group count as if they named none")
			}
			var want v1alpha1.PodGroupSpec
			if err := yaml.UnmarshalStrict([]byte(tc.want), &want); err != nil {
				t.Fatal(err)
			}
			got := v1alpha1.PodGroupSpec{TopologyConstraint: g.Spec.TopologyConstraint, SubGroups: g.Spec.SubGroups}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
