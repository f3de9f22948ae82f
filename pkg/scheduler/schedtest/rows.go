// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package schedtest

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

// Row declares an object. Rows apply from top to bottom.
type Row func(*Scenario)

// Given lists rows.
func Given(rows ...Row) []Row { return rows }

// Rows combines rows.
func Rows(rows ...Row) Row {
	return func(c *Scenario) {
		for _, row := range rows {
			row(c)
		}
	}
}

// Node declares a ready node: Node("n1", "4cpu 16Gi"). Without an amount of pods it allows 110. It has the label
// kubernetes.io/hostname.
func Node(name, allocatable string, options ...NodeOption) Row {
	return func(c *Scenario) {
		list := c.amounts(fmt.Sprintf("Node(%q)", name), allocatable)
		if _, given := list[v1.ResourcePods]; !given {
			list[v1.ResourcePods] = *mustParse("110")
		}
		node := &v1.Node{
			ObjectMeta: c.meta("", name),
			Status: v1.NodeStatus{
				Allocatable: list, Capacity: list,
				Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}},
			},
		}
		node.Labels[v1.LabelHostname] = name
		for _, option := range options {
			option.changeNode(node)
		}
		c.setNode(node)
	}
}

// Nodes declares count nodes n1, n2, … when called with the prefix "n".
func Nodes(count int, prefix, allocatable string, options ...NodeOption) Row {
	return func(c *Scenario) {
		for i := range count {
			Node(fmt.Sprintf("%s%d", prefix, i+1), allocatable, options...)(c)
		}
	}
}

// MissingNode declares that pods name a node that does not exist.
func MissingNode(name string) Row {
	return func(c *Scenario) { c.missing["node "+name] = true }
}

// MissingQueue declares that rows name a queue that does not exist.
func MissingQueue(name string) Row {
	return func(c *Scenario) { c.missing["queue "+name] = true }
}

// Queue declares a queue.
func Queue(name string, weight int32, options ...QueueOption) Row {
	return func(c *Scenario) {
		queue := &v1alpha1.Queue{ObjectMeta: c.meta("", name), Spec: v1alpha1.QueueSpec{Weight: weight}}
		for _, option := range options {
			option(c, queue)
		}
		c.setQueue(queue)
	}
}

// Topology declares a topology with these levels, the widest first. The name of a level is its node label.
func Topology(name string, labels ...string) Row {
	return func(c *Scenario) {
		t := &v1alpha1.Topology{ObjectMeta: c.meta("", name)}
		for _, label := range labels {
			t.Spec.Levels = append(t.Spec.Levels, v1alpha1.TopologyLevel{NodeLabel: label})
		}
		c.enqueue("topology "+name, func(m *model.Cluster) { model.TopologiesOf(m).Set(t) })
	}
}

// MissingTopology deletes a topology.
func MissingTopology(name string) Row {
	return func(c *Scenario) {
		c.enqueue("topology "+name, func(m *model.Cluster) { model.TopologiesOf(m).Delete(name) })
	}
}

// PriorityClass declares a priority class.
func PriorityClass(name string, value int32) Row {
	return func(c *Scenario) {
		c.setPriorityClass(&schedulingv1.PriorityClass{ObjectMeta: c.meta("", name), Value: value})
	}
}

// Budget declares a PodDisruptionBudget that allows that many evictions of pods with a label.
func Budget(name string, allowed int32, key, value string) Row {
	return func(c *Scenario) {
		c.t.Helper()
		b := &policyv1.PodDisruptionBudget{
			ObjectMeta: c.meta("ns", name),
			Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}},
			Status:     policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed},
		}
		c.enqueue("budget "+name, func(m *model.Cluster) { m.Events().SetBudget(b) })
	}
}

// Terminating declares a namespace that is being deleted.
func Terminating(name string) Row {
	return func(c *Scenario) {
		c.setNamespace(&v1.Namespace{ObjectMeta: c.meta("", name), Status: v1.NamespaceStatus{Phase: v1.NamespaceTerminating}})
	}
}

// Group declares the PodGroup "queue/name" and the pods in it.
func Group(name string, minMember int32, parts ...Part) Row {
	row := fmt.Sprintf("Group(%q)", name)
	return func(c *Scenario) {
		d := c.declare(row, name, parts)
		c.needQueue(row, d.queue)
		if c.groups[d.namespace+"/"+d.name] != nil {
			c.t.Fatalf("%s: namespace %s has a group %q already; names of groups are theirs alone, whatever the queue", row, d.namespace, d.name)
		}
		group := &v1alpha1.PodGroup{
			ObjectMeta: c.meta(d.namespace, d.name),
			Spec:       v1alpha1.PodGroupSpec{MinMember: minMember, Queue: d.queue, PriorityClassName: d.class},
		}
		group.Spec.SubGroups = d.subGroups
		if d.minResources != "" {
			group.Spec.MinResources = c.amounts(row, d.minResources)
		}
		group.Spec.TopologyConstraint = d.topology
		d.runTime.applyTo(&group.Spec)
		c.names[d.namespace+"/"+d.name] = name
		c.setGroup(name, group)
		d.join(c.objects, group)
		c.addMembers(row, d)
	}
}

// More adds pods to an existing group; their numbers continue those of the group.
func More(name string, parts ...Part) Row {
	row := fmt.Sprintf("More(%q)", name)
	return func(c *Scenario) {
		d := c.declare(row, name, parts)
		group := c.groups[d.namespace+"/"+d.name]
		if group == nil {
			c.t.Fatalf("%s: no such group; declare it with Group above", row)
		}
		d.join(c.objects, group)
		c.addMembers(row, d)
	}
}

// MissingGroup declares pods of a group that does not exist.
func MissingGroup(name string, parts ...Part) Row {
	row := fmt.Sprintf("MissingGroup(%q)", name)
	return func(c *Scenario) {
		d := c.declare(row, name, parts)
		d.all = append(d.all, Label(v1alpha1.LabelPodGroup, d.name))
		c.names[d.namespace+"/"+d.name] = name
		c.addMembers(row, d)
	}
}

// Plain declares pods without a group and without a controller, each a job of its own: name-0, name-1, … They are in
// the default queue unless OfQueue sets another.
func Plain(name string, parts ...Part) Row {
	row := fmt.Sprintf("Plain(%q)", name)
	return func(c *Scenario) { c.addPodsWithoutGroup(row, c.declare(row, name, parts)) }
}

// ReplicaSet declares pods without a group that have a controller of that name.
func ReplicaSet(name string, parts ...Part) Row {
	row := fmt.Sprintf("ReplicaSet(%q)", name)
	return func(c *Scenario) {
		d := c.declare(row, name, parts)
		yes := true
		owner := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name, UID: c.uid("", "rs-"+name), Controller: &yes}
		d.all = append(d.all, Mutate(func(p *v1.Pod) { p.OwnerReferences = []metav1.OwnerReference{owner} }))
		c.addPodsWithoutGroup(row, d)
	}
}

func (o *objects) addPodsWithoutGroup(row string, d *declaration) {
	o.t.Helper()
	if d.queue == "" {
		o.needQueue(row, defaultQueue)
	} else {
		o.needQueue(row, d.queue)
		d.all = append(d.all, Label(v1alpha1.LabelQueue, d.queue))
	}
	o.addMembers(row, d)
}

// Foreign declares pods of another scheduler.
func Foreign(name string, parts ...Part) Row {
	row := fmt.Sprintf("Foreign(%q)", name)
	return func(c *Scenario) {
		d := c.declare(row, name, parts)
		d.foreign = true
		d.all = append(d.all, Mutate(func(p *v1.Pod) { p.Spec.SchedulerName = v1.DefaultSchedulerName }))
		c.addMembers(row, d)
	}
}

// declaration is a row of pods during its evaluation.
type declaration struct {
	title     string // spelling in the test: "q/low"
	namespace string
	queue     string
	name      string
	foreign   bool

	all, last    []PodOption // before and after those of members
	members      []members
	class        string
	subGroups    []v1alpha1.SubGroup
	minResources string
	runTime      runTime
	topology     *v1alpha1.TopologyConstraint
	groupUID     string
}

func (d *declaration) constraint() *v1alpha1.TopologyConstraint {
	if d.topology == nil {
		d.topology = &v1alpha1.TopologyConstraint{}
	}
	return d.topology
}

func (o *objects) declare(row, title string, parts []Part) *declaration {
	o.t.Helper()
	d := &declaration{title: title, namespace: "ns", name: title}
	if queue, name, ok := strings.Cut(title, "/"); ok {
		d.queue, d.name = queue, name
	}
	for _, part := range parts {
		part.addTo(d)
	}
	return d
}

func (o *objects) needQueue(row, name string) {
	o.t.Helper()
	if name != "" && o.queues[name] == nil && !o.missing["queue "+name] {
		o.t.Fatalf("%s: queue %q is not declared; declare it above with Queue, or with MissingQueue", row, name)
	}
}

func (o *objects) needNode(row, name string) {
	o.t.Helper()
	if o.nodes[name] == nil && !o.missing["node "+name] {
		o.t.Fatalf("%s: node %q is not declared; declare it above with Node, or with MissingNode", row, name)
	}
}

// amounts fails the test if a row has amounts that cannot be parsed.
func (o *objects) amounts(row, text string) v1.ResourceList {
	o.t.Helper()
	list, err := amounts(text)
	if err != nil {
		o.t.Fatalf("%s: %v", row, err)
	}
	return list
}
