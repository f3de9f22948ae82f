// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package crd_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestCreate(t *testing.T) {
	t.Parallel()
	const noQuantity = `every quantity must be a number with at most one suffix, such as 4, 500m, 64Gi or 1e3`
	cases := map[string]struct {
		given string
		want  string // the refusals, one a line; empty if the object is accepted
	}{
		"a group with a name alone is a group": {
			given: `PodGroup {name: g}`,
		},
		"a group may say everything": {
			given: `PodGroup {name: g.v2} spec: {minMember: 8, queue: team-a, priorityClassName: high, minResources: {cpu: 16, memory: 1Gi, nvidia.com/gpu: "8", hugepages-2Mi: 0}}`,
		},
		"a group may name the default queue by an empty string": {
			given: `PodGroup {name: g} spec: {queue: ""}`,
		},
		"minMember of 0": {
			given: `PodGroup {name: g} spec: {minMember: 0}`,
			want:  `spec.minMember: spec.minMember in body should be greater than or equal to 1`,
		},
		"a negative minMember": {
			given: `PodGroup {name: g} spec: {minMember: -3}`,
			want:  `spec.minMember: spec.minMember in body should be greater than or equal to 1`,
		},
		"a gang larger than an int32": {
			given: `PodGroup {name: g} spec: {minMember: 2147483648}`,
			want:  `<nil>: Checked value must be of type integer with format int32 in spec.minMember`,
		},
		"a group name that is no label value": {
			given: `PodGroup {name: ` + strings.Repeat("g", 64) + `}`,
			want:  `<nil>: the name must have at most 63 characters, because pods carry it as the value of a label`,
		},
		"a group name that is no DNS name": {
			given: `PodGroup {name: Gang_1}`,
			want:  `metadata.name: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`,
		},
		"a group in a queue with an invalid name": {
			given: `PodGroup {name: g} spec: {queue: Team_A}`,
			want:  `spec.queue: must be the name of a Queue: lower case letters, digits and '-', with a letter or digit at both ends; or empty for the default queue`,
		},
		"a group in a queue with a dot": {
			given: `PodGroup {name: g} spec: {queue: team.a}`,
			want:  `spec.queue: must be the name of a Queue: lower case letters, digits and '-', with a letter or digit at both ends; or empty for the default queue`,
		},
		"a group in a queue with too long a name": {
			given: `PodGroup {name: g} spec: {queue: ` + strings.Repeat("q", 64) + `}`,
			want: `spec.queue: may not be more than 63 bytes
			       <nil>: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation`,
		},
		"a group that calls itself critical for the cluster": {
			given: `PodGroup {name: g} spec: {priorityClassName: system-cluster-critical}`,
			want:  `spec.priorityClassName: system-cluster-critical and system-node-critical are for the cluster's own pods; use a PriorityClass of your own`,
		},
		"a group that calls itself critical for the node": {
			given: `PodGroup {name: g} spec: {priorityClassName: system-node-critical}`,
			want:  `spec.priorityClassName: system-cluster-critical and system-node-critical are for the cluster's own pods; use a PriorityClass of your own`,
		},
		"a group that needs less than nothing": {
			given: `PodGroup {name: g} spec: {minResources: {cpu: -1}}`,
			want:  `spec.minResources: no quantity may be negative`,
		},
		"a group within a rack": {
			given: `PodGroup {name: g} spec: {topologyConstraint: {topology: default, requiredTopologyLevel: rack}}`,
		},
		"a group within a level of the only topology, by its label": {
			given: `PodGroup {name: g} spec: {topologyConstraint: {requiredTopologyLevel: topology.kubernetes.io/zone}}`,
		},
		"a constraint without a level": {
			given: `PodGroup {name: g} spec: {topologyConstraint: {requiredTopologyLevel: ""}}`,
			want:  `spec.topologyConstraint.requiredTopologyLevel: spec.topologyConstraint.requiredTopologyLevel in body should be at least 1 chars long`,
		},
		"a topology": {
			given: `Topology {name: default} spec: {levels: [{name: block, nodeLabel: example.com/block}, {nodeLabel: kubernetes.io/hostname}]}`,
		},
		"a topology without levels": {
			given: `Topology {name: default} spec: {levels: []}`,
			want:  `spec.levels: spec.levels in body should have at least 1 items`,
		},
		"two levels of one label": {
			given: `Topology {name: default} spec: {levels: [{name: a, nodeLabel: rack}, {name: b, nodeLabel: rack}]}`,
			want:  `spec.levels: no two levels may have the same nodeLabel`,
		},
		"two levels of one name": {
			given: `Topology {name: default} spec: {levels: [{name: a, nodeLabel: rack}, {name: a, nodeLabel: block}, {nodeLabel: c}]}`,
			want:  `spec.levels: no two levels may have the same name`,
		},
		"a level whose label is none": {
			given: `Topology {name: default} spec: {levels: [{nodeLabel: "example.com/a/b"}]}`,
			want:  `spec.levels[0].nodeLabel: must be the key of a node label, such as topology.kubernetes.io/zone`,
		},
		"a queue with a name alone is a queue": {
			given: `Queue {name: q}`,
		},
		"a queue may say everything": {
			given: `Queue {name: q} spec: {weight: 65535, reclaimable: false, guarantee: {cpu: 500m, nvidia.com/gpu: 8}, capability: {cpu: "4e+1", memory: 1.5Gi, nvidia.com/gpu: "8", pods: 100}}`,
		},
		"a queue may be closed": {
			given: `Queue {name: q} spec: {capability: {cpu: 0}}`,
		},
		"a queue without weight": {
			given: `Queue {name: q} spec: {weight: 0}`,
			want:  `spec.weight: spec.weight in body should be greater than or equal to 1`,
		},
		"a queue with too much weight": {
			given: `Queue {name: q} spec: {weight: 65536}`,
			want:  `spec.weight: spec.weight in body should be less than or equal to 65535`,
		},
		"a queue name with a dot": {
			given: `Queue {name: team.a}`,
			want:  `<nil>: the name must have at most 63 characters and no dot, because pods carry it as the value of a label`,
		},
		"a queue name that is no label value": {
			given: `Queue {name: ` + strings.Repeat("q", 64) + `}`,
			want:  `<nil>: the name must have at most 63 characters and no dot, because pods carry it as the value of a label`,
		},
		"a negative capability": {
			given: `Queue {name: q} spec: {capability: {cpu: "1", memory: "-1Gi"}}`,
			want:  `spec.capability: no quantity may be negative`,
		},
		"a negative capability written as a number": {
			given: `Queue {name: q} spec: {capability: {cpu: -1}}`,
			want:  `spec.capability: no quantity may be negative`,
		},
		"a negative guarantee": {
			given: `Queue {name: q} spec: {guarantee: {cpu: -1m}}`,
			want:  `spec.guarantee: no quantity may be negative`,
		},
		"a guarantee above the capability": {
			given: `Queue {name: q} spec: {guarantee: {cpu: 4001m, memory: 1Gi}, capability: {cpu: 4}}`,
			want:  `spec.guarantee: must not exceed capability`,
		},
		"a quantity that is none": {
			given: `Queue {name: q} spec: {capability: {cpu: many}}`,
			want: `spec.capability.cpu: spec.capability.cpu in body should match '^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$'
			       spec.capability: ` + noQuantity,
		},
		"a quantity that looks like one, and that clients could not read": {
			given: `Queue {name: q} spec: {capability: {cpu: 1e1.5}}`,
			want:  `spec.capability: ` + noQuantity,
		},
		"a quantity that takes clients and API server minutes to compare": {
			given: `Queue {name: q} spec: {guarantee: {cpu: "1"}, capability: {cpu: "1e999999999"}}`,
			want:  `spec.capability: ` + noQuantity,
		},
		"the same as guarantee": {
			given: `Queue {name: q} spec: {guarantee: {cpu: "1E+999999999"}, capability: {cpu: "1"}}`,
			want:  `spec.guarantee: ` + noQuantity,
		},
		"the same as need of a group": {
			given: `PodGroup {name: g} spec: {minResources: {cpu: "1.5e999999999"}}`,
			want:  `spec.minResources: ` + noQuantity,
		},
		"a resource that no node has": {
			given: `Queue {name: q} spec: {capability: {gpu: 8}}`,
			want:  `spec.capability: every name must be cpu, memory, ephemeral-storage, pods, hugepages-<size>, or an extended resource with its domain, such as nvidia.com/gpu`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			obj := parse(t, tc.given)
			resource := serve(t, obj.GetKind())
			resource.receive(obj)
			resource.PrepareForCreate(t.Context(), obj)
			got := refusals(resource.Validate(t.Context(), obj))
			if diff := cmp.Diff(lines(tc.want), got); diff != "" {
				t.Errorf("refusals (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUpdate(t *testing.T) {
	t.Parallel()
	const moved = `spec.queue: cannot change while pods of the PodGroup run; delete the pods first, or create another PodGroup`
	cases := map[string]struct {
		given string
		then  string // the update; the status is the one of given
		want  string
	}{
		"a new group may change its queue": {
			given: `PodGroup {name: g} spec: {queue: a}`,
			then:  `PodGroup {name: g} spec: {queue: b}`,
		},
		"a waiting group may change its queue, which may have been misspelt": {
			given: `PodGroup {name: g} spec: {queue: a} status: {phase: Pending, pending: 4, running: 0}`,
			then:  `PodGroup {name: g} spec: {queue: b}`,
		},
		"a finished group may change its queue": {
			given: `PodGroup {name: g} spec: {queue: a} status: {phase: Finished, succeeded: 4}`,
			then:  `PodGroup {name: g} spec: {queue: b}`,
		},
		"a running group stays in its queue": {
			given: `PodGroup {name: g} spec: {queue: a} status: {phase: Running, running: 1}`,
			then:  `PodGroup {name: g} spec: {queue: b}`,
			want:  moved,
		},
		"a running group cannot leave for the default queue": {
			given: `PodGroup {name: g} spec: {queue: a} status: {phase: Running, running: 1}`,
			then:  `PodGroup {name: g}`,
			want:  moved,
		},
		"a running group cannot leave the default queue": {
			given: `PodGroup {name: g} status: {phase: Running, running: 1}`,
			then:  `PodGroup {name: g} spec: {queue: b}`,
			want:  moved,
		},
		"a running group cannot leave by sending another status along": {
			given: `PodGroup {name: g} spec: {queue: a} status: {phase: Running, running: 1}`,
			then:  `PodGroup {name: g} spec: {queue: b} status: {phase: Pending, running: 0}`,
			want:  moved,
		},
		"a running group may change all the rest": {
			given: `PodGroup {name: g} spec: {queue: a} status: {phase: Running, running: 1}`,
			then:  `PodGroup {name: g} spec: {queue: a, minMember: 9, priorityClassName: high}`,
		},
		"a queue may be made smaller than what it holds": {
			given: `Queue {name: q} spec: {capability: {cpu: 8}} status: {allocated: {cpu: 8}}`,
			then:  `Queue {name: q} spec: {capability: {cpu: 4}}`,
		},
		"a queue does not become wrong": {
			given: `Queue {name: q} spec: {capability: {cpu: 8}, guarantee: {cpu: 6}}`,
			then:  `Queue {name: q} spec: {capability: {cpu: 4}, guarantee: {cpu: 6}}`,
			want:  `spec.guarantee: must not exceed capability`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old, obj := parse(t, tc.given), parse(t, tc.then)
			old.SetResourceVersion("1")
			obj.SetResourceVersion("1")
			resource := serve(t, obj.GetKind())
			resource.receive(old)
			resource.receive(obj)
			resource.PrepareForUpdate(t.Context(), obj, old)
			got := refusals(resource.ValidateUpdate(t.Context(), obj, old))
			if diff := cmp.Diff(lines(tc.want), got); diff != "" {
				t.Errorf("refusals (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		given string
		want  string // the spec
	}{
		"of a group":                         {`PodGroup {name: g}`, `{"minMember":1}`},
		"of a group that says null":          {`PodGroup {name: g} spec: {minMember: null}`, `{"minMember":1}`},
		"of a group that says something":     {`PodGroup {name: g} spec: {minMember: 2}`, `{"minMember":2}`},
		"of a queue":                         {`Queue {name: q}`, `{"reclaimable":true,"weight":1}`},
		"of a queue that is not reclaimable": {`Queue {name: q} spec: {reclaimable: false}`, `{"reclaimable":false,"weight":1}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			obj := parse(t, tc.given)
			serve(t, obj.GetKind()).receive(obj)
			got, err := json.Marshal(obj.Object["spec"])
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
		})
	}
}

func TestColumns(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		given string
		want  string // what "kubectl get" shows without the age
	}{
		"of a new group": {
			given: `PodGroup {name: g} spec: {minMember: 4, queue: team-a}`,
			want:  `Name=g Queue=team-a Min=4 Phase=<nil> Pending=<nil> Running=<nil> Succeeded=<nil> Failed=<nil> Reason=<nil>`,
		},
		"of a waiting group": {
			given: `PodGroup {name: g} spec: {minMember: 4, queue: team-a} status: {phase: Pending, pending: 3, running: 0, succeeded: 0, failed: 1, conditions: [{type: Other, reason: Nothing}, {type: PodGroupScheduled, reason: NotEnoughPods}]}`,
			want:  `Name=g Queue=team-a Min=4 Phase=Pending Pending=3 Running=0 Succeeded=0 Failed=1 Reason=NotEnoughPods`,
		},
		"of a queue": {
			given: `Queue {name: q} spec: {weight: 3} status: {deserved: {cpu: "16", memory: 64Gi}, allocated: {cpu: "4"}, groups: {pending: 2, running: 1, unknown: 0, finished: 9}}`,
			want:  `Name=q Weight=3 Pending=2 Running=1 CPU=4 Deserved CPU=16`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			obj := parse(t, tc.given)
			table, err := serve(t, obj.GetKind()).columns.ConvertToTable(t.Context(), obj, nil)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for i, column := range table.ColumnDefinitions {
				if column.Priority == 0 && column.Name != "Age" {
					got = append(got, fmt.Sprintf("%s=%v", column.Name, table.Rows[0].Cells[i]))
				}
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("columns (-want +got):\n%s", diff)
			}
		})
	}
}

// refusals prints each error as "field: detail", without the value.
func refusals(errs field.ErrorList) []string {
	var got []string
	for _, err := range errs {
		got = append(got, err.Field+": "+err.Detail)
	}
	return got
}

func lines(text string) []string {
	var want []string
	for line := range strings.Lines(text) {
		want = append(want, strings.TrimSpace(line))
	}
	return want
}
