// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package nodes_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/batch-scheduler/batch-scheduler/cmd/localcluster/internal/nodes"
)

func TestParsePool(t *testing.T) {
	for name, test := range map[string]struct {
		given string
		want  nodes.Pool
	}{
		"missing resources have default values": {
			given: "cpu=4",
			want:  pool("node", 7, "cpu", "4", "memory", "256Gi", "pods", "110"),
		},
		"extended resources, also zero": {
			given: "nvidia.com/gpu=8,example.com/nic=0",
			want:  pool("node", 7, "cpu", "32", "memory", "256Gi", "pods", "110", "nvidia.com/gpu", "8", "example.com/nic", "0"),
		},
		"a name and a count of its own": {
			given: "name=gpu,count=2,cpu=64",
			want:  pool("gpu", 2, "cpu", "64", "memory", "256Gi", "pods", "110"),
		},
		"huge pages, disk, and spaces after commas": {
			given: "hugepages-2Mi=1Gi, ephemeral-storage=10Gi, memory=0, pods=1",
			want:  pool("node", 7, "cpu", "32", "memory", "0", "pods", "1", "hugepages-2Mi", "1Gi", "ephemeral-storage", "10Gi"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := nodes.ParsePool(test.given, 7)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("pool (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParsePoolErrors(t *testing.T) {
	for name, test := range map[string]struct {
		given string
		want  string
	}{
		"nothing":                      {"", `"" is not of the form resource=quantity`},
		"a resource without value":     {"cpu", `"cpu" is not of the form resource=quantity`},
		"an empty value":               {"cpu=", `"cpu=" is not of the form resource=quantity`},
		"a duplicate resource":         {"cpu=1,cpu=2", "cpu is given twice"},
		"a misspelt resource":          {"mem=4Gi", `"mem" is not a resource`},
		"a misspelt quantity":          {"memory=4Gib", "memory=4Gib: want a quantity"},
		"a negative quantity":          {"cpu=-1", "cpu=-1 is negative"},
		"a negative count":             {"count=-1", `count "-1" is not a whole number`},
		"a fractional count":           {"count=1.5", `count "1.5" is not a whole number`},
		"an invalid name":              {"name=Big_Node", `name "Big_Node"`},
		"an invalid huge page size":    {"hugepages-big=1Gi", `"hugepages-big" is not a resource`},
		"an invalid extended resource": {"example.com/a/b=1", `"example.com/a/b" is not a resource`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := nodes.ParsePool(test.given, 1)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %+v and error %v, want an error with %q", got, err, test.want)
			}
		})
	}
}

func TestBuildNamesAndZones(t *testing.T) {
	for name, test := range map[string]struct {
		given nodes.Plan
		want  []string
	}{
		"no pools": {nodes.Plan{}, nil},
		"one pool without zones": {
			nodes.Plan{Pools: []nodes.Pool{{Name: "node", Count: 2}}},
			[]string{"node-0", "node-1"},
		},
		"zones are assigned round-robin over all pools": {
			nodes.Plan{Zones: 2, Pools: []nodes.Pool{{Name: "a", Count: 3}, {Name: "b", Count: 2}}},
			[]string{"a-0 zone-a", "a-1 zone-b", "a-2 zone-a", "b-0 zone-b", "b-1 zone-a"},
		},
		"pools with the same name are numbered consecutively": {
			nodes.Plan{Pools: []nodes.Pool{{Name: "node", Count: 1}, {Name: "gpu", Count: 1}, {Name: "node", Count: 1}}},
			[]string{"node-0", "gpu-0", "node-1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, node := range test.given.Build(metav1.Time{}) {
				got = append(got, strings.TrimSpace(node.Name+" "+node.Labels[corev1.LabelTopologyZone]))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("nodes (-want +got):\n%s", diff)
			}
			if got := test.given.Size(); got != len(test.want) {
				t.Errorf("size %d, want %d", got, len(test.want))
			}
		})
	}
}

func TestNodeIsComplete(t *testing.T) {
	now := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	plan := nodes.Plan{Pools: []nodes.Pool{pool("node", 1, "cpu", "4", "pods", "10")}}
	node := plan.Build(now)[0]
	if diff := cmp.Diff(plan.Pools[0].Resources, node.Status.Allocatable); diff != "" {
		t.Errorf("allocatable (-want +got):\n%s", diff)
	}
	want := map[corev1.NodeConditionType]corev1.ConditionStatus{
		corev1.NodeReady:          corev1.ConditionTrue,
		corev1.NodeMemoryPressure: corev1.ConditionFalse,
		corev1.NodeDiskPressure:   corev1.ConditionFalse,
		corev1.NodePIDPressure:    corev1.ConditionFalse,
	}
	got := map[corev1.NodeConditionType]corev1.ConditionStatus{}
	for _, condition := range node.Status.Conditions {
		got[condition.Type] = condition.Status
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	if got := node.Labels[corev1.LabelHostname]; got != "node-0" {
		t.Errorf("hostname label %q, want node-0", got)
	}
}

func TestCreateError(t *testing.T) {
	plan := nodes.Plan{Pools: []nodes.Pool{{Name: "node", Count: 20}}}
	built := plan.Build(metav1.Time{})
	client := fake.NewClientset(built[5]) // an existing node is not an error
	client.PrependReactor("create", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
		name := action.(clienttesting.CreateAction).GetObject().(*corev1.Node).Name
		return name == "node-13", nil, errors.New("no more nodes")
	})
	err := nodes.Create(t.Context(), client, built)
	if err == nil || !strings.Contains(err.Error(), "creating node node-13: no more nodes") {
		t.Errorf("got error %v, want one that names node-13", err)
	}
}

func pool(name string, count int, resources ...string) nodes.Pool {
	list := corev1.ResourceList{}
	for i := 0; i < len(resources); i += 2 {
		list[corev1.ResourceName(resources[i])] = resource.MustParse(resources[i+1])
	}
	return nodes.Pool{Name: name, Count: count, Resources: list}
}
