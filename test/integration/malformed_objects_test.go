// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/test/capacity"
)

// malformedPods are pods with invalid or unusual fields; the API server accepts most of them.
var malformedPods = map[string]func(*corev1.Pod){
	"asks for more than there can be": asks("cpu", "9223372036854775807"),
	"asks for more bytes than count":  asks("memory", "900E"),
	"asks for too many to write out":  asks("example.com/unicorns", "1e99999"),
	"asks for next to nothing":        asks("cpu", "1m"),
	"asks for half a byte":            asks("memory", "500m"),
	"requests an unknown resource":    asks("example.com/unicorns", "3"),
	"asks for nothing, by name":       asks("example.com/unicorns", "0"),
	"asks for huge pages":             func(p *corev1.Pod) { asks("hugepages-2Mi", "4Mi")(p); asks("memory", "1Mi")(p) },
	"asks with limits alone": func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: resources("1cpu 1Gi")}
	},
	"asks as a whole": func(p *corev1.Pod) {
		p.Spec.Resources = &corev1.ResourceRequirements{Requests: resources("2cpu 1Gi")}
	},
	"starts with a glutton": func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "image", Resources: corev1.ResourceRequirements{Requests: resources("3cpu")}}}
	},
	"has a sidecar": func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{{Name: "side", Image: "image",
			RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways),
			Resources:     corev1.ResourceRequirements{Requests: resources("1cpu")}}}
	},

	"needs fewer than none":          annotated(v1alpha1.AnnotationGroupMinMember, "-5"),
	"needs a word":                   annotated(v1alpha1.AnnotationGroupMinMember, "two"),
	"needs more than can be counted": annotated(v1alpha1.AnnotationGroupMinMember, strings.Repeat("9", 30)),
	"names a group with a slash":     annotated(v1alpha1.AnnotationGroupName, "other/../group"),
	"names a group without end":      annotated(v1alpha1.AnnotationGroupName, strings.Repeat("long", 500)),
	"names a group in Greek":         annotated(v1alpha1.AnnotationGroupName, "ομάδα"),
	"names a group as none can be":   label(v1alpha1.LabelPodGroup, "A.Group_Of-Mine"),
	"names a queue as none can be":   label(v1alpha1.LabelQueue, "A.Queue_Of-Mine"),
	"has forged a queue":             annotated(v1alpha1.AnnotationQueue, "other-queue"),
	"has forged a group and a node": func(p *corev1.Pod) {
		annotated(v1alpha1.AnnotationQueue, "")(p)
		annotated(v1alpha1.AnnotationPodGroupUID, "no uid at all")(p)
		p.Spec.NodeName = "odd-1"
	},
	"is a mirror pod": func(p *corev1.Pod) {
		annotated(corev1.MirrorPodAnnotationKey, "yes")(p)
		p.Spec.NodeName = "odd-2"
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "odd-2", UID: "1", Controller: ptr.To(true)}}
	},
	"is on a node that does not exist": func(p *corev1.Pod) { p.Spec.NodeName = "atlantis" },
	"is of a DaemonSet that is not": func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "x", UID: "x", Controller: ptr.To(true)}}
	},
	"ends and does not go": lingering,
	"is gated twice": func(p *corev1.Pod) {
		p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/a"}, {Name: "example.com/b"}}
	},
	"is gated in a group": func(p *corev1.Pod) { gated(p); label(v1alpha1.LabelPodGroup, "odd-group-1")(p) },
	"is in a group":       label(v1alpha1.LabelPodGroup, "odd-group-2"),
	"is for windows": func(p *corev1.Pod) {
		p.Spec.OS = &corev1.PodOS{Name: corev1.Windows}
	},

	"requires a label above a word": requires(corev1.NodeSelectorRequirement{Key: "x", Operator: corev1.NodeSelectorOpGt, Values: []string{"word"}}),
	"requires a label below 3":      requires(corev1.NodeSelectorRequirement{Key: "x", Operator: corev1.NodeSelectorOpLt, Values: []string{"3"}}),
	"requires nothing of a node": func(p *corev1.Pod) {
		requires()(p)
	},
	"requires a node by two names": func(p *corev1.Pod) {
		requireOn("odd-1")(p)
		p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "odd-2"}
	},
	"keeps away from all": func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{}},
		}}}
	},
	"keeps away from none": func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{TopologyKey: "no/such-key"},
		}}}
	},
	"keeps away from itself": func(p *corev1.Pod) { avoid("odd")(p); label(jobLabel, "odd")(p) },
	"keeps to its kind everywhere": func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey:       corev1.LabelTopologyZone,
			NamespaceSelector: &metav1.LabelSelector{},
			LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "missing", Operator: metav1.LabelSelectorOpDoesNotExist},
				{Key: jobLabel, Operator: metav1.LabelSelectorOpNotIn, Values: []string{"a", "b"}},
			}},
			MatchLabelKeys: []string{"version"},
		}}}}
	},
	"is spread by a key that no node has": evenly("no/such-key", "odd"),
	"is spread over many domains": func(p *corev1.Pod) {
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: math.MaxInt32, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule,
			MinDomains: ptr.To[int32](1000), NodeTaintsPolicy: ptr.To(corev1.NodeInclusionPolicyHonor),
		}, {
			MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.ScheduleAnyway,
			LabelSelector: &metav1.LabelSelector{}, NodeAffinityPolicy: ptr.To(corev1.NodeInclusionPolicyIgnore),
		}}
	},
	"tolerates everything": func(p *corev1.Pod) {
		p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	},
	"takes a port on one address": func(p *corev1.Pod) {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{
			{ContainerPort: 1, HostPort: 1, HostIP: "127.0.0.1", Protocol: corev1.ProtocolUDP},
			{ContainerPort: 1, HostPort: 1, HostIP: "0.0.0.0", Protocol: corev1.ProtocolSCTP},
		}
	},
	"is on the host's network": func(p *corev1.Pod) { p.Spec.HostNetwork = true },

	"needs a claim that is not": volume(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "missing"}}),
	"brings a claim": volume(corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{"storage": resource.MustParse("1Gi")}},
		},
	}}}),
	"mounts what it likes":       volume(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}),
	"mounts from nowhere":        volume(corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{Server: "nowhere", Path: "/"}}),
	"mounts by a missing driver": volume(corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "example.com"}}),
	"needs a device that is not": func(p *corev1.Pod) {
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{
			{Name: "one", ResourceClaimName: ptr.To("missing")},
			{Name: "two", ResourceClaimTemplateName: ptr.To("missing")},
		}
	},
}

func asks(name corev1.ResourceName, amount string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		q := resource.MustParse(amount)
		r := &p.Spec.Containers[0].Resources
		capacity.Add(r.Requests, corev1.ResourceList{name: q})
		r.Limits = r.Requests.DeepCopy()
	}
}

func annotated(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations[key] = value }
}

func requires(list ...corev1.NodeSelectorRequirement) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: list}},
		}}}
	}
}

func volume(source corev1.VolumeSource) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Volumes = []corev1.Volume{{Name: "volume", VolumeSource: source}} }
}

// malformedNodes are nodes that no kubelet makes.
var malformedNodes = map[string]func(*corev1.Node){
	"has nothing at all": func(n *corev1.Node) { n.Status = corev1.NodeStatus{} },
	"has no labels":      func(n *corev1.Node) { n.Labels = nil },
	"says it is another": func(n *corev1.Node) { n.Labels[corev1.LabelHostname] = "odd-1" },
	"has no resources":   has("0cpu 0 0pods"),
	"has huge resources": has("9223372036854775807cpu 900E 9223372036854775807pods"),
	"has half a byte":    has("1cpu 500m 1pods"),
	"is not ready":       func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse },
	"has unknown status": func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown },
	"says nothing of itself": func(n *corev1.Node) {
		n.Status.Conditions = nil
	},
	"is under every pressure": func(n *corev1.Node) {
		for _, kind := range []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure, corev1.NodeNetworkUnavailable, "Made-Up"} {
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: kind, Status: corev1.ConditionTrue})
		}
	},
	"is cordoned": func(n *corev1.Node) { n.Spec.Unschedulable = true },
	"is tainted in every way": func(n *corev1.Node) {
		for _, effect := range []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute} {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "example.com/taint", Effect: effect})
		}
	},
	"has more unicorns than bytes": func(n *corev1.Node) {
		n.Status.Allocatable["example.com/unicorns"] = resource.MustParse("9223372036854775807")
	},
}

func has(allocatable string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Status.Capacity, n.Status.Allocatable = resources(allocatable), resources(allocatable)
	}
}

// malformedPodGroups and oddQueues are specs as JSON.
var (
	malformedPodGroups = []string{
		`{}`,
		`{"minMember":2147483647}`,
		`{"minMember":3,"queue":"nobodys"}`,
		`{"priorityClassName":"No Such Class"}`,
		`{"minResources":{}}`,
		`{"minResources":{"cpu":"9223372036854775807","memory":"900E","example.com/unicorns":"1"}}`,
		`{"minResources":{"cpu":"1n","memory":"0.1","pods":"0"}}`,
		`{"queue":"odd-queue-1","minMember":2}`,
		`{"queue":"odd-queue-2"}`,
	}
	malformedQueues = []string{
		`{}`,
		`{"weight":65535}`,
		`{"capability":{}}`,
		`{"capability":{"cpu":"0"}}`,
		`{"capability":{"cpu":"1n","memory":"0.5","example.com/unicorns":"1"}}`,
		`{"guarantee":{"cpu":"9223372036854775807","memory":"900E"}}`,
		`{"guarantee":{"cpu":"1e3"},"reclaimable":false}`,
		`{"guarantee":{"cpu":"2"},"capability":{"cpu":"2"},"weight":2,"reclaimable":false}`,
	}
	malformedPriorities = []int32{math.MinInt32, -1, 0, 1_000_000_000}
	malformedBudgets    = []intstr.IntOrString{intstr.FromInt32(0), intstr.FromInt32(math.MaxInt32), intstr.FromString("100%"), intstr.FromString("0%")}
)
