// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package schedtest

import (
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// Part is an element of a row of pods: members, an option of the group, or a pod option for all members of the row.
type Part interface{ addTo(*declaration) }

// PodOption changes the pods of one member list or, as a Part, of a whole row.
type PodOption interface {
	Part
	change(*v1.Pod)
}

// NodeOption changes a node.
type NodeOption interface{ changeNode(*v1.Node) }

// QueueOption changes a queue.
type QueueOption func(*Scenario, *v1alpha1.Queue)

// Mutate is the pod option for changes without an option of their own.
type Mutate func(*v1.Pod)

func (f Mutate) change(p *v1.Pod)     { f(p) }
func (f Mutate) addTo(d *declaration) { d.all = append(d.all, f) }

type groupOption func(*declaration)

func (f groupOption) addTo(d *declaration) { f(d) }

type nodeOption func(*v1.Node)

func (f nodeOption) changeNode(n *v1.Node) { f(n) }

type label struct{ key, value string }

func (l label) change(p *v1.Pod)      { p.Labels[l.key] = l.value }
func (l label) addTo(d *declaration)  { d.all = append(d.all, l) }
func (l label) changeNode(n *v1.Node) { n.Labels[l.key] = l.value }

// Labelled is the result of Label, an option of pods and of nodes.
type Labelled interface {
	PodOption
	NodeOption
}

// Label sets a label on pods or on a node.
func Label(key, value string) Labelled { return label{key, value} }

// Annotation sets an annotation on pods.
func Annotation(key, value string) PodOption {
	return Mutate(func(p *v1.Pod) { p.Annotations[key] = value })
}

// Taint adds a taint "key=value:Effect" or "key:Effect" to a node.
func Taint(text string) NodeOption {
	return nodeOption(func(n *v1.Node) { n.Spec.Taints = append(n.Spec.Taints, taint(text)) })
}

func taint(text string) v1.Taint {
	pair, effect, _ := strings.Cut(text, ":")
	key, value, _ := strings.Cut(pair, "=")
	return v1.Taint{Key: key, Value: value, Effect: v1.TaintEffect(effect)}
}

// Unschedulable cordons a node.
func Unschedulable() NodeOption {
	return nodeOption(func(n *v1.Node) { n.Spec.Unschedulable = true })
}

// NotReady sets the Ready condition of a node to False.
func NotReady() NodeOption {
	return nodeOption(func(n *v1.Node) {
		n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionFalse}}
	})
}

// Capability limits a queue: "4cpu 8Gi".
func Capability(text string) QueueOption {
	return func(c *Scenario, q *v1alpha1.Queue) {
		q.Spec.Capability = c.amounts("Capability of queue "+q.Name, text)
	}
}

// Guarantee sets the guaranteed resources of a queue.
func Guarantee(text string) QueueOption {
	return func(c *Scenario, q *v1alpha1.Queue) {
		q.Spec.Guarantee = c.amounts("Guarantee of queue "+q.Name, text)
	}
}

// NotReclaimable makes a queue neither borrow nor be reclaimed from.
func NotReclaimable() QueueOption {
	return func(_ *Scenario, q *v1alpha1.Queue) {
		no := false
		q.Spec.Reclaimable = &no
	}
}

// Priority sets the priority of pods.
func Priority(n int32) PodOption { return Mutate(func(p *v1.Pod) { p.Spec.Priority = &n }) }

// Class sets the PriorityClass of a group.
func Class(name string) Part {
	return groupOption(func(d *declaration) { d.class = name })
}

// MinResources sets spec.minResources of a group.
func MinResources(text string) Part {
	return groupOption(func(d *declaration) { d.minResources = text })
}

// Within sets the topology level that a group requires, in the only topology or in the named one: "rack", "default rack".
func Within(text string) Part {
	return groupOption(func(d *declaration) {
		if topology, level, ok := strings.Cut(text, " "); ok {
			d.constraint().Topology, text = topology, level
		}
		d.constraint().RequiredTopologyLevel = text
	})
}

// Prefer sets the topology level that a group prefers, and how long it waits for one domain of it; 0 if it does not wait.
func Prefer(level string, wait time.Duration) Part {
	return groupOption(func(d *declaration) {
		d.constraint().PreferredTopologyLevel = level
		if wait > 0 {
			d.constraint().PreferredWait = &metav1.Duration{Duration: wait}
		}
	})
}

// SubGroups sets spec.subGroups of a group. Pods name theirs with Label("role", NAME), unless it has a selector.
func SubGroups(list ...v1alpha1.SubGroup) Part {
	return groupOption(func(d *declaration) {
		for _, s := range list {
			inner := slices.ContainsFunc(list, func(c v1alpha1.SubGroup) bool { return c.Parent == s.Name })
			if s.Selector == nil && !inner {
				s.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"role": s.Name}}
			}
			d.subGroups = append(d.subGroups, s)
		}
	})
}

// In sets the namespace of the pods of a row and their group; the default is "ns".
func In(namespace string) Part {
	return groupOption(func(d *declaration) { d.namespace = namespace })
}

// OfQueue sets the queue label of pods without a group.
func OfQueue(name string) Part {
	return groupOption(func(d *declaration) { d.queue = name })
}

// GangOf sets the annotation of pods without a group that makes them a gang of that size.
func GangOf(n string) PodOption { return Annotation(v1alpha1.AnnotationGroupMinMember, n) }

// NodeSelector restricts pods to nodes with a label.
func NodeSelector(key, value string) PodOption {
	return Mutate(func(p *v1.Pod) {
		if p.Spec.NodeSelector == nil {
			p.Spec.NodeSelector = map[string]string{}
		}
		p.Spec.NodeSelector[key] = value
	})
}

func affinityOf(p *v1.Pod) *v1.Affinity {
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &v1.Affinity{}
	}
	return p.Spec.Affinity
}

func nodeAffinityOf(p *v1.Pod) *v1.NodeAffinity {
	a := affinityOf(p)
	if a.NodeAffinity == nil {
		a.NodeAffinity = &v1.NodeAffinity{}
	}
	return a.NodeAffinity
}

// RequireNode restricts pods to the node of that name, by required node affinity.
func RequireNode(name string) PodOption {
	return Mutate(func(p *v1.Pod) {
		nodeAffinityOf(p).RequiredDuringSchedulingIgnoredDuringExecution = &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
			MatchFields: []v1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: v1.NodeSelectorOpIn, Values: []string{name}}},
		}}}
	})
}

// PreferNodes gives pods preferred affinity to nodes with a label.
func PreferNodes(weight int32, key, value string) PodOption {
	return Mutate(func(p *v1.Pod) {
		a := nodeAffinityOf(p)
		a.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PreferredDuringSchedulingIgnoredDuringExecution,
			v1.PreferredSchedulingTerm{Weight: weight, Preference: v1.NodeSelectorTerm{
				MatchExpressions: []v1.NodeSelectorRequirement{{Key: key, Operator: v1.NodeSelectorOpIn, Values: []string{value}}},
			}})
	})
}

// podTerm selects pods with the labels "key=value,…" within one topology domain.
func podTerm(topology, selector string) v1.PodAffinityTerm {
	return v1.PodAffinityTerm{TopologyKey: topology, LabelSelector: labelSelector(selector)}
}

func labelSelector(text string) *metav1.LabelSelector {
	s := &metav1.LabelSelector{MatchLabels: map[string]string{}}
	for _, pair := range strings.Split(text, ",") {
		key, value, _ := strings.Cut(pair, "=")
		s.MatchLabels[key] = value
	}
	return s
}

// Near gives pods required affinity to pods with the labels.
func Near(topology, selector string) PodOption {
	return Mutate(func(p *v1.Pod) {
		affinityOf(p).PodAffinity = &v1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{podTerm(topology, selector)},
		}
	})
}

// PreferNear gives pods preferred affinity to pods with the labels.
func PreferNear(weight int32, topology, selector string) PodOption {
	return Mutate(func(p *v1.Pod) {
		affinityOf(p).PodAffinity = &v1.PodAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []v1.WeightedPodAffinityTerm{{Weight: weight, PodAffinityTerm: podTerm(topology, selector)}},
		}
	})
}

// Away gives pods required anti-affinity to pods with the labels.
func Away(topology, selector string) PodOption {
	return Mutate(func(p *v1.Pod) {
		affinityOf(p).PodAntiAffinity = &v1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{podTerm(topology, selector)},
		}
	})
}

// Spread gives pods a topology spread constraint over pods with the labels.
func Spread(maxSkew int32, topology, selector string) PodOption {
	return Mutate(func(p *v1.Pod) {
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, v1.TopologySpreadConstraint{
			MaxSkew: maxSkew, TopologyKey: topology, WhenUnsatisfiable: v1.DoNotSchedule, LabelSelector: labelSelector(selector),
		})
	})
}

// Tolerate gives pods a toleration of a taint "key=value:Effect" or "key:Effect".
func Tolerate(text string) PodOption {
	return Mutate(func(p *v1.Pod) {
		t := taint(text)
		toleration := v1.Toleration{Key: t.Key, Operator: v1.TolerationOpExists, Effect: t.Effect}
		if t.Value != "" {
			toleration.Operator, toleration.Value = v1.TolerationOpEqual, t.Value
		}
		p.Spec.Tolerations = append(p.Spec.Tolerations, toleration)
	})
}

// HostPort gives pods a host port.
func HostPort(port int32) PodOption {
	return Mutate(func(p *v1.Pod) {
		c := &p.Spec.Containers[0]
		c.Ports = append(c.Ports, v1.ContainerPort{ContainerPort: port, HostPort: port, Protocol: v1.ProtocolTCP})
	})
}

// Init gives pods an init container with a request.
func Init(text string) PodOption {
	return Mutate(func(p *v1.Pod) {
		list, err := amounts(text)
		if err != nil {
			panic("Init: " + err.Error())
		}
		p.Spec.InitContainers = append(p.Spec.InitContainers, v1.Container{Name: "init", Resources: v1.ResourceRequirements{Requests: list}})
	})
}

// Nominated sets the nominated node of pods of another scheduler.
func Nominated(node string) PodOption {
	return Mutate(func(p *v1.Pod) { p.Status.NominatedNodeName = node })
}
