// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/audit"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

func affinity(a v1.Affinity) podChange { return func(p *v1.Pod) { p.Spec.Affinity = &a } }

func antiAffinityTo(terms ...v1.PodAffinityTerm) podChange {
	return affinity(v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}})
}

func selecting(pairs ...string) *metav1.LabelSelector {
	s := &metav1.LabelSelector{MatchLabels: map[string]string{}}
	for i := 0; i < len(pairs); i += 2 {
		s.MatchLabels[pairs[i]] = pairs[i+1]
	}
	return s
}

func inNamespace(name string) podChange {
	return func(p *v1.Pod) { p.Namespace = name }
}

func TestSignaturesOfEquivalentPodsAreEqual(t *testing.T) {
	spec := func(change func(*v1.PodSpec)) podChange { return func(p *v1.Pod) { change(&p.Spec) } }
	claimVolume := spec(func(s *v1.PodSpec) {
		s.Volumes = []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}}}
	})
	ephemeral := spec(func(s *v1.PodSpec) {
		s.Volumes = []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{Ephemeral: &v1.EphemeralVolumeSource{}}}}
	})
	devices := func(claim string) podChange {
		return func(p *v1.Pod) {
			p.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: ptr.To("template")}}
			if claim != "" {
				p.Status.ResourceClaimStatuses = []v1.PodResourceClaimStatus{{Name: "gpu", ResourceClaimName: &claim}}
			}
		}
	}
	configMap := spec(func(s *v1.PodSpec) {
		s.Volumes = []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{}}}}
	})
	port := func(p v1.ContainerPort) podChange {
		return spec(func(s *v1.PodSpec) { s.Containers[0].Ports = []v1.ContainerPort{p} })
	}
	cases := map[string]struct {
		a, b  *v1.Pod
		equal bool
	}{
		"names do not matter":       {aPod("a"), aPod("b"), true},
		"labels do not matter":      {aPod("a", withLabel("x", "1")), aPod("b", withLabel("x", "2")), true},
		"indexed Jobs do not split": {aPod("j-0", withLabel("batch.kubernetes.io/job-completion-index", "0")), aPod("j-1", withLabel("batch.kubernetes.io/job-completion-index", "1")), true},
		"groups do not matter":      {aPod("a", inGroup("g")), aPod("b", inGroup("h")), true},
		"priority does not matter":  {aPod("a", prioritized(1)), aPod("b", prioritized(2)), true},
		"namespaces matter":         {aPod("a"), aPod("b", inNamespace("other")), false},
		"requests matter":           {aPod("a"), aPod("b", requesting("cpu", "2")), false},
		"quantities are values":     {aPod("a", requesting("cpu", "1000m")), aPod("b", requesting("cpu", "1")), true},
		"selectors matter":          {aPod("a"), aPod("b", spec(func(s *v1.PodSpec) { s.NodeSelector = map[string]string{"k": "v"} })), false},
		"tolerations matter":        {aPod("a"), aPod("b", spec(func(s *v1.PodSpec) { s.Tolerations = []v1.Toleration{{Key: "k"}} })), false},
		"images matter":             {aPod("a"), aPod("b", spec(func(s *v1.PodSpec) { s.Containers[0].Image = "i" })), false},
		"affinity matters":          {aPod("a"), aPod("b", repelling("k", "v")), false},
		"equal affinity is equal":   {aPod("a", repelling("k", "v")), aPod("b", repelling("k", "v")), true},
		"whether affinity selects its own pods matters": {
			aPod("a", joining("color", "red")), aPod("b", joining("color", "red"), withLabel("color", "red")), false,
		},
		"host ports matter":               {aPod("a"), aPod("b", port(v1.ContainerPort{HostPort: 80})), false},
		"container ports do not":          {aPod("a"), aPod("b", port(v1.ContainerPort{ContainerPort: 80})), true},
		"host ports have a protocol":      {aPod("a", port(v1.ContainerPort{HostPort: 80})), aPod("b", port(v1.ContainerPort{HostPort: 80, Protocol: v1.ProtocolUDP})), false},
		"defaults of ports are spelt out": {aPod("a", port(v1.ContainerPort{HostPort: 80})), aPod("b", port(v1.ContainerPort{HostPort: 80, Protocol: v1.ProtocolTCP, HostIP: "0.0.0.0"})), true},
		"volumes from claims matter":      {aPod("a"), aPod("b", claimVolume), false},
		"one claim, one signature":        {aPod("a", claimVolume), aPod("b", claimVolume), true},
		"ephemeral volumes: one per pod":  {aPod("a", ephemeral), aPod("b", ephemeral), false},
		"resource claims matter":          {aPod("a"), aPod("b", devices("")), false},
		"claims made from a template: one per pod": {
			aPod("a", devices("a-gpu")), aPod("b", devices("b-gpu")), false,
		},
		"volumes without place do not": {aPod("a"), aPod("b", configMap), true},
		"selector and toleration are not confused": {
			aPod("a", spec(func(s *v1.PodSpec) { s.NodeSelector = map[string]string{"a": "b", "c": "d"} })),
			aPod("b", spec(func(s *v1.PodSpec) {
				s.Tolerations = []v1.Toleration{{Key: "a", Operator: "b", Value: "c", Effect: "d"}}
			})), false,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newTestCluster()
			c.Events().SetPod(tc.a)
			c.Events().SetPod(tc.b)
			if equal := c.Tasks()[api.TaskID(tc.a.UID)].Signature == c.Tasks()[api.TaskID(tc.b.UID)].Signature; equal != tc.equal {
				t.Errorf("one signature: %t", equal)
			}
		})
	}
}

func TestSignaturesEndWithTheirLastTask(t *testing.T) {
	c := newTestCluster()
	c.Events().SetPod(aPod("a"))
	c.Events().SetPod(aPod("b"))
	signature := c.Tasks()["uid-a"].Signature
	c.Events().DeletePod("uid-a")
	if signature.Unreferenced() {
		t.Error("dead although a task has it")
	}
	c.Events().DeletePod("uid-b")
	if !signature.Unreferenced() {
		t.Error("alive although no task has it")
	}
	c.Events().SetPod(aPod("c"))
	if c.Tasks()["uid-c"].Signature == signature {
		t.Error("the ID of an unused signature is assigned again")
	}
}

func TestBestEffort(t *testing.T) {
	cases := map[string]struct {
		pod  *v1.Pod
		want bool
	}{
		"no requests":                {aPod("p", requesting()), true},
		"a request":                  {aPod("p"), false},
		"an extended resource alone": {aPod("p", requesting("example.com/gpu", "1")), false},
		"requests of zero":           {aPod("p", requesting("cpu", "0")), true},
		"an init container with a request": {
			aPod("p", requesting(), func(p *v1.Pod) {
				p.Spec.InitContainers = []v1.Container{{Resources: v1.ResourceRequirements{Requests: amountsOf("cpu", "1")}}}
			}), false,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newTestCluster()
			c.Events().SetPod(tc.pod)
			if got := c.Tasks()["uid-p"].BestEffort(); got != tc.want {
				t.Errorf("best effort: %t", got)
			}
		})
	}
}

// Labels make a difference only where a term of a living pod selects by them.
func TestClassesFollowLivingTerms(t *testing.T) {
	red, blue := withLabel("color", "red"), withLabel("color", "blue")
	one := func(c *model.Cluster) string {
		r, b := c.ClassOf(c.Tasks()["uid-red"]), c.ClassOf(c.Tasks()["uid-blue"])
		return fmt.Sprintf("one class: %t, red affected: %t, blue affected: %t", r == b, r.AffectedByPods(), b.AffectedByPods())
	}
	const (
		unmoved  = "one class: true, red affected: false, blue affected: false"
		redOnly  = "one class: false, red affected: true, blue affected: false"
		together = "one class: true, red affected: true, blue affected: true"
		apart    = "one class: false, red affected: true, blue affected: true"
	)
	elsewhere := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: map[string]string{"team": "a"}}}
	cases := map[string]struct {
		given func(*model.Cluster)
		want  string
	}{
		"no term": {func(*model.Cluster) {}, unmoved},
		"a term that selects red": {
			func(c *model.Cluster) { c.Events().SetPod(aPod("x", repelling("color", "red"))) }, redOnly,
		},
		"a term that selects neither": {
			func(c *model.Cluster) { c.Events().SetPod(aPod("x", repelling("color", "green"))) }, unmoved,
		},
		"two terms": {
			func(c *model.Cluster) {
				c.Events().SetPod(aPod("x", repelling("color", "red")))
				c.Events().SetPod(aPod("y", repelling("color", "blue")))
			}, apart,
		},
		"a term that selects everybody": {
			func(c *model.Cluster) {
				c.Events().SetPod(aPod("x", antiAffinityTo(v1.PodAffinityTerm{LabelSelector: selecting(), TopologyKey: "zone"})))
			}, together,
		},
		"a term without selector selects no pod": {
			func(c *model.Cluster) {
				c.Events().SetPod(aPod("x", antiAffinityTo(v1.PodAffinityTerm{TopologyKey: "zone"})))
			}, unmoved,
		},
		"first a term without selector, then one for everybody": {
			func(c *model.Cluster) {
				c.Events().SetPod(aPod("x", antiAffinityTo(v1.PodAffinityTerm{TopologyKey: "zone"})))
				c.Events().SetPod(aPod("y", antiAffinityTo(v1.PodAffinityTerm{LabelSelector: selecting(), TopologyKey: "zone"})))
			}, together,
		},
		"a term of a pod that has gone": {
			func(c *model.Cluster) {
				c.Events().SetPod(aPod("x", repelling("color", "red")))
				c.Events().DeletePod("uid-x")
			}, unmoved,
		},
		"a term that one of two pods still has": {
			func(c *model.Cluster) {
				c.Events().SetPod(aPod("x", repelling("color", "red")))
				c.Events().SetPod(aPod("y", repelling("color", "red"), requesting("cpu", "7")))
				c.Events().DeletePod("uid-x")
			}, redOnly,
		},
		"a term of a foreign pod": {
			func(c *model.Cluster) { c.Events().SetPod(aPod("x", foreign, repelling("color", "red"))) }, redOnly,
		},
		"a spread constraint": {
			func(c *model.Cluster) {
				c.Events().SetPod(aPod("x", func(p *v1.Pod) {
					p.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{TopologyKey: "zone", LabelSelector: selecting("color", "red")}}
				}))
			}, redOnly,
		},
		"a term in another namespace": {
			func(c *model.Cluster) { c.Events().SetPod(aPod("x", inNamespace("other"), repelling("color", "red"))) }, unmoved,
		},
		"a term of another namespace that names ours": {
			func(c *model.Cluster) {
				c.Events().SetPod(aPod("x", inNamespace("other"), antiAffinityTo(v1.PodAffinityTerm{
					LabelSelector: selecting("color", "red"), Namespaces: []string{"ns"}, TopologyKey: "zone",
				})))
			}, redOnly,
		},
		"a term of another namespace that selects ours by label": {
			func(c *model.Cluster) {
				c.Events().SetPod(aPod("x", inNamespace("other"), antiAffinityTo(v1.PodAffinityTerm{
					LabelSelector: selecting("color", "red"), NamespaceSelector: selecting("team", "a"), TopologyKey: "zone",
				})))
				c.Events().SetNamespace(elsewhere)
			}, redOnly,
		},
		"first a term that names a namespace, then one for all namespaces": {
			func(c *model.Cluster) {
				term := v1.PodAffinityTerm{LabelSelector: selecting("color", "red"), Namespaces: []string{"far"}, TopologyKey: "zone"}
				c.Events().SetPod(aPod("x", inNamespace("other"), antiAffinityTo(term)))
				term.NamespaceSelector = selecting()
				c.Events().SetPod(aPod("y", inNamespace("other"), antiAffinityTo(term)))
			}, redOnly,
		},
		"a selector that no parser takes": {
			func(c *model.Cluster) {
				c.Events().SetPod(aPod("x", antiAffinityTo(v1.PodAffinityTerm{TopologyKey: "zone", LabelSelector: &metav1.LabelSelector{
					MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "color", Operator: "Like", Values: []string{"r%"}}},
				}})))
			}, unmoved,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newTestCluster()
			c.Events().SetPod(aPod("red", red))
			c.Events().SetPod(aPod("blue", blue))
			tc.given(c)
			if got := one(c); got != tc.want {
				t.Errorf("\n got %s\nwant %s", got, tc.want)
			}
			if err := audit.Model(c); err != nil {
				t.Error(err)
			}
		})
	}
}
