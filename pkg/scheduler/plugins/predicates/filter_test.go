// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package predicates

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

func TestNodeFilters(t *testing.T) {
	tests := map[string]struct {
		arguments conf.Arguments
		node      *v1.Node
		pod       *v1.Pod
		want      string
	}{
		"a pod and a node without constraints": {
			node: node("n"), pod: pod("p"), want: fits,
		},
		"a node without conditions is ready": {
			node: node("n", condition(v1.NodeDiskPressure, v1.ConditionFalse)), pod: pod("p"), want: fits,
		},
		"a node whose Ready condition is False": {
			node: node("n", condition(v1.NodeReady, v1.ConditionFalse)), pod: pod("p"), want: "node(s) were not ready",
		},
		"a node whose Ready condition is Unknown": {
			node: node("n", condition(v1.NodeReady, v1.ConditionUnknown)), pod: pod("p"), want: "node(s) were not ready",
		},
		"a pod that tolerates the taint of a node that is not ready": {
			node: node("n", condition(v1.NodeReady, v1.ConditionFalse)),
			pod:  pod("p", tolerates(v1.TaintNodeNotReady, "", v1.TolerationOpExists, v1.TaintEffectNoSchedule)), want: fits,
		},
		"a pod that tolerates only NoExecute": {
			node: node("n", condition(v1.NodeReady, v1.ConditionFalse)),
			pod:  pod("p", tolerates(v1.TaintNodeNotReady, "", v1.TolerationOpExists, v1.TaintEffectNoExecute)), want: "node(s) were not ready",
		},
		"a pod that tolerates the taint of an unreachable node": {
			node: node("n", condition(v1.NodeReady, v1.ConditionUnknown)),
			pod:  pod("p", tolerates(v1.TaintNodeUnreachable, "", v1.TolerationOpExists, v1.TaintEffectNoSchedule)), want: fits,
		},
		"cordoned is reported before the taint of cordoned nodes": {
			node: node("n", cordoned, taint(v1.TaintNodeUnschedulable, "", v1.TaintEffectNoSchedule)), pod: pod("p"), want: "node(s) were unschedulable",
		},
		"a pod that tolerates everything fits on a cordoned node": {
			node: node("n", cordoned), pod: pod("p", tolerates("", "", v1.TolerationOpExists, "")), want: fits,
		},
		"a taint": {
			node: node("n", taint("dedicated", "infra", v1.TaintEffectNoSchedule)), pod: pod("p"), want: "node(s) had untolerated taint {dedicated=infra:NoSchedule}",
		},
		"a taint without value": {
			node: node("n", taint("gpu", "", v1.TaintEffectNoExecute)), pod: pod("p"), want: "node(s) had untolerated taint {gpu:NoExecute}",
		},
		"the first taint that is not tolerated is reported": {
			node: node("n", taint("a", "", v1.TaintEffectNoSchedule), taint("b", "", v1.TaintEffectNoSchedule)),
			pod:  pod("p", tolerates("a", "", v1.TolerationOpExists, "")), want: "node(s) had untolerated taint {b:NoSchedule}",
		},
		"a tolerated taint": {
			node: node("n", taint("dedicated", "infra", v1.TaintEffectNoSchedule)),
			pod:  pod("p", tolerates("dedicated", "infra", v1.TolerationOpEqual, v1.TaintEffectNoSchedule)), want: fits,
		},
		"another value of the taint": {
			node: node("n", taint("dedicated", "infra", v1.TaintEffectNoSchedule)),
			pod:  pod("p", tolerates("dedicated", "batch", "", "")), want: "node(s) had untolerated taint {dedicated=infra:NoSchedule}",
		},
		"comparison operators of tolerations are off as in kube-scheduler": {
			node: node("n", taint("level", "5", v1.TaintEffectNoSchedule)),
			pod:  pod("p", tolerates("level", "3", "Gt", "")), want: "node(s) had untolerated taint {level=5:NoSchedule}",
		},
		"a taint of effect PreferNoSchedule rejects no pods": {
			node: node("n", taint("dedicated", "infra", v1.TaintEffectPreferNoSchedule)), pod: pod("p"), want: fits,
		},
		"a node selector that matches": {
			node: node("n", zone("a")), pod: pod("p", func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{v1.LabelTopologyZone: "a"} }), want: fits,
		},
		"a node selector that does not": {
			node: node("n", zone("b")), pod: pod("p", func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{v1.LabelTopologyZone: "a"} }),
			want: "node(s) didn't match Pod's node affinity/selector",
		},
		"affinity to a label": {
			node: node("n", zone("b")), pod: pod("p", requires(labelTerm(v1.LabelTopologyZone, v1.NodeSelectorOpIn, "a", "b"))), want: fits,
		},
		"affinity to the absence of a label": {
			node: node("n", zone("b")), pod: pod("p", requires(labelTerm(v1.LabelTopologyZone, v1.NodeSelectorOpDoesNotExist))),
			want: "node(s) didn't match Pod's node affinity/selector",
		},
		"one of several terms is enough": {
			node: node("n", zone("b")), pod: pod("p", requires(nameTerm(v1.NodeSelectorOpIn, "other"), labelTerm(v1.LabelTopologyZone, v1.NodeSelectorOpExists))), want: fits,
		},
		"affinity to the name": {
			node: node("n"), pod: pod("p", requires(nameTerm(v1.NodeSelectorOpIn, "n"))), want: fits,
		},
		"affinity to another name": {
			node: node("n"), pod: pod("p", requires(nameTerm(v1.NodeSelectorOpIn, "m"))), want: "node(s) didn't match Pod's node affinity/selector",
		},
		"pressure conditions are ignored by default": {
			node: node("n", condition(v1.NodeMemoryPressure, v1.ConditionTrue), condition(v1.NodeDiskPressure, v1.ConditionTrue),
				condition(v1.NodePIDPressure, v1.ConditionTrue)),
			pod: pod("p"), want: fits,
		},
		"memory pressure, enabled by arguments": {
			arguments: conf.Arguments{"predicate.MemoryPressureEnable": "true"},
			node:      node("n", condition(v1.NodeMemoryPressure, v1.ConditionTrue)), pod: pod("p"), want: "node(s) had memory pressure",
		},
		"disk pressure, enabled by arguments": {
			arguments: conf.Arguments{"predicate.DiskPressureEnable": "true", "predicate.MemoryPressureEnable": "true"},
			node:      node("n", condition(v1.NodeDiskPressure, v1.ConditionTrue)), pod: pod("p"), want: "node(s) had disk pressure",
		},
		"PID pressure, enabled by arguments": {
			arguments: conf.Arguments{"predicate.PIDPressureEnable": "true"},
			node:      node("n", condition(v1.NodePIDPressure, v1.ConditionTrue)), pod: pod("p"), want: "node(s) had pid pressure",
		},
		"no pressure, enabled by arguments": {
			arguments: conf.Arguments{"predicate.PIDPressureEnable": "true"},
			node:      node("n", condition(v1.NodePIDPressure, v1.ConditionFalse)), pod: pod("p"), want: fits,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			ssn, _ := given{nodes: []*v1.Node{tt.node}, pods: []*v1.Pod{tt.pod}, arguments: tt.arguments}.open(t)
			expect(t, map[string]string{"n": tt.want}, verdicts(ssn, "p", api.Now))
		})
	}
}

func TestUnfitIsShared(t *testing.T) {
	ssn, cluster := given{
		nodes: []*v1.Node{node("a", taint("gpu", "", v1.TaintEffectNoSchedule)), node("b", taint("gpu", "", v1.TaintEffectNoSchedule))},
		pods:  []*v1.Pod{pod("p")},
	}.open(t)
	signature := taskNamed(cluster, "p").Signature
	if ssn.Filter(signature, cluster.Node("a")) != ssn.Filter(signature, cluster.Node("b")) {
		t.Error("two nodes with the same taint return different *api.Unfit")
	}
}

func TestTaintsDoNotAccumulate(t *testing.T) {
	var made *plugin
	spec := Spec()
	newPlugin := spec.New
	spec.New = func(d *conf.Decoder, handle framework.Handle) (framework.Plugin, error) {
		p, err := newPlugin(d, handle)
		made, _ = p.(*plugin)
		return p, err
	}
	g := given{nodes: []*v1.Node{node("n", taint("gpu", "", v1.TaintEffectNoSchedule))}, pods: []*v1.Pod{pod("p")}}
	ssn, cluster := g.openWith(t, g.profileOf(t, spec))
	if ssn.Filter(taskNamed(cluster, "p").Signature, cluster.Node("n")) == nil || len(made.filter.taints) != 1 {
		t.Fatal("the taint is not kept during the session")
	}
	ssn.Close()
	if len(made.filter.taints) > 0 {
		t.Error("the taint is kept after the session")
	}
}

func TestFilterAllocations(t *testing.T) {
	tests := map[string]struct {
		node *v1.Node
		pod  *v1.Pod
	}{
		"a node that fits":       {node("n"), pod("p")},
		"a tainted node":         {node("n", taint("gpu", "", v1.TaintEffectNoSchedule)), pod("p")},
		"a tolerated taint":      {node("n", taint("gpu", "", v1.TaintEffectNoSchedule)), pod("p", tolerates("gpu", "", v1.TolerationOpExists, ""))},
		"a cordoned node":        {node("n", cordoned), pod("p")},
		"a node selector":        {node("n", zone("a")), pod("p", func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{v1.LabelTopologyZone: "b"} })},
		"a host port":            {node("n"), pod("p", port(80, v1.ProtocolTCP, ""))},
		"a pod that has a label": {node("n"), pod("p", app("a"))},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			ssn, cluster := given{
				nodes: []*v1.Node{tt.node},
				pods:  []*v1.Pod{tt.pod, pod("beside", on("n"), port(80, v1.ProtocolTCP, "")), pod("choosy", on("n"), avoids(apps("b"), v1.LabelHostname))},
			}.open(t)
			task, n := taskNamed(cluster, "p"), cluster.Node("n")
			ask := func() {
				ssn.Filter(task.Signature, n)
				ssn.Predicate(task, n, api.Now)
			}
			if allocated := testing.AllocsPerRun(100, ask); allocated > 0 {
				t.Errorf("%v allocations per node, want none", allocated)
			}
		})
	}
}

func TestArguments(t *testing.T) {
	tests := map[string]struct {
		given conf.Arguments
		want  string
	}{
		"no arguments":  {},
		"kube-batch's":  {given: conf.Arguments{"predicate.MemoryPressureEnable": "true", "predicate.DiskPressureEnable": "false", "predicate.PIDPressureEnable": "true"}},
		"not a boolean": {given: conf.Arguments{"predicate.DiskPressureEnable": "maybe"}, want: `[predicate.DiskPressureEnable]: Invalid value: "maybe": must be true or false`},
		"small devices": {given: conf.Arguments{"smallestdevice.weight": "100", "smallestdevice.capacity": "gpu.example.com/memory", "smallestdevice.typical": "1Pi"}},
		"no weight":     {given: conf.Arguments{"smallestdevice.weight": "101"}, want: `[smallestdevice.weight]: Invalid value: "101": must be a whole number from 0 to 100`},
		"no size":       {given: conf.Arguments{"smallestdevice.typical": "0"}, want: `[smallestdevice.typical]: Invalid value: "0": must be an amount from 1 to 1Pi`},
		"too large":     {given: conf.Arguments{"smallestdevice.typical": "2Pi"}, want: `[smallestdevice.typical]: Invalid value: "2Pi": must be an amount from 1 to 1Pi`},
		"no amount":     {given: conf.Arguments{"smallestdevice.typical": "large"}, want: `[smallestdevice.typical]: Invalid value: "large": must be an amount from 1 to 1Pi`},
		"no capacity": {
			given: conf.Arguments{"smallestdevice.capacity": "a b"},
			want:  `[smallestdevice.capacity]: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`,
		},
		"a typing error": {given: conf.Arguments{"predicate.MemoryPresureEnable": "true"}, want: `[predicate.MemoryPresureEnable]: Forbidden: no such argument; did you mean "predicate.MemoryPressureEnable"?`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, d := "", tt.given.Decoder(nil)
			Spec().Check(d)
			if err := d.Done().ToAggregate(); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}
