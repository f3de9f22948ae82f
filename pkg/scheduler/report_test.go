// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/builtin"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

// backlogModel has pending gangs of two job classes, one for each of two full nodes.
type backlogModel struct {
	*model.Cluster
	profile  *framework.Profile
	reporter *reporter
}

func newBacklogModel(t *testing.T) *backlogModel {
	t.Helper()
	registry, err := builtin.NewRegistry()
	if err != nil {
		t.Fatal(err)
	}
	policy, err := conf.Default(registry.Catalog())
	if err != nil {
		t.Fatal(err)
	}
	policy.StarvationAfter = 0
	m := &backlogModel{Cluster: model.NewCluster(model.Options{SchedulerNames: []string{"us"}, DefaultQueue: "default"}), reporter: newReporter()}
	m.profile, err = registry.NewProfile(policy, framework.Handle{
		Informers: informers.NewSharedInformerFactory(fake.NewClientset(), 0), Clock: clocktesting.NewFakePassiveClock(time.Unix(9, 0)),
	})
	if err != nil {
		t.Fatal(err)
	}
	m.Events().SetQueue(queue)
	m.Events().SetNamespace(namespace)
	for _, name := range []string{"x", "y"} {
		m.Events().SetNode(&v1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"node": name}},
			Status: v1.NodeStatus{
				Allocatable: v1.ResourceList{v1.ResourceCPU: resource.MustParse("4"), v1.ResourcePods: resource.MustParse("9")},
				Conditions:  []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}},
			},
		})
		m.Events().SetPod(m.pod("one-on-"+name, name, "1", ""))
		m.Events().SetPod(m.pod("two-on-"+name, name, "2", ""))
		for _, gang := range []string{name + "1", name + "2"} {
			m.Events().SetPodGroup(&v1alpha1.PodGroup{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: gang, UID: types.UID(gang)}, Spec: v1alpha1.PodGroupSpec{MinMember: 1},
			})
			m.Events().SetPod(m.pod(gang, name, "4", gang))
		}
	}
	return m
}

// pod returns a pod that runs on a node, or a pending one of a PodGroup that selects the node.
func (*backlogModel) pod(name, node, cpu, group string) *v1.Pod {
	p := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("pod-" + name), Labels: map[string]string{}},
		Spec: v1.PodSpec{SchedulerName: "us", Containers: []v1.Container{{
			Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu)}},
		}}},
	}
	if group != "" {
		p.Labels[v1alpha1.LabelPodGroup] = group
		p.Spec.NodeSelector = map[string]string{"node": node}
	} else {
		p.Spec.NodeName, p.Status.Phase = node, v1.PodRunning
	}
	return p
}

type silentEffects struct{}

func (silentEffects) Commit([]api.Decision) {}

// report runs a session and returns its report.
func (m *backlogModel) report(t *testing.T) *api.Report {
	t.Helper()
	changed := m.Events().Recompute()
	ssn, decided, err := m.profile.Run(t.Context(), m.Cluster, silentEffects{}, logr.Discard(), framework.Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	return m.reporter.report(ssn, append(changed, decided...))
}

// reported runs a session and returns the names of the PodGroups and of the pods in its report.
func (m *backlogModel) reported(t *testing.T) string {
	t.Helper()
	report := m.report(t)
	var groups, pods []string
	for _, g := range report.PodGroups {
		groups = append(groups, g.Name)
	}
	for _, p := range report.Pods {
		pods = append(pods, p.Name)
	}
	slices.Sort(groups)
	slices.Sort(pods)
	return strings.Join(groups, " ") + ", pods " + strings.Join(pods, " ")
}

// TestReportsOfABacklog asserts which pending gangs, and which of their pods, are reported after a change.
func TestReportsOfABacklog(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*backlogModel)
		want   string
	}{
		"nothing has changed": {func(m *backlogModel) { m.Events().NotifyExternalChange() }, ", pods "},
		"the nearest node lacks less, which pods do not show": {
			func(m *backlogModel) { m.Events().DeletePod("pod-one-on-x") }, "x1 x2, pods ",
		},
		"a node refuses the pods for another reason": {
			func(m *backlogModel) {
				node := m.Node("x").Node.DeepCopy()
				node.Spec.Unschedulable = true
				m.Events().SetNode(node)
			}, "x1 x2 y1 y2, pods x1 x2 y1 y2",
		},
		"a job had an outcome of its own": {func(m *backlogModel) {
			m.reporter.single = []*api.JobInfo{m.Jobs()["group/ns/x1"]}
			m.Events().NotifyExternalChange()
		}, "x1, pods x1"},
		"a pod of a gang was created again": {func(m *backlogModel) {
			m.Events().DeletePod("pod-x1")
			again := m.pod("x1", "x", "4", "x1")
			again.UID = "again"
			m.Events().SetPod(again)
		}, "x1, pods x1"},
		"a status was written": {func(m *backlogModel) {
			g := m.Jobs()["group/ns/y2"].Group.DeepCopy()
			g.Status.Phase = v1alpha1.PodGroupPending
			m.Events().SetPodGroup(g)
			m.Events().NotifyExternalChange()
		}, "y2, pods y2"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newBacklogModel(t)
			first := m.reported(t)
			tc.change(m)
			if diff := cmp.Diff([]string{"x1 x2 y1 y2, pods x1 x2 y1 y2", tc.want}, []string{first, m.reported(t)}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestReportedDomains asserts the domains for which gangs wait. Those of x have a job class, y1 has none, and y2 requires no
// level.
func TestReportedDomains(t *testing.T) {
	m := newBacklogModel(t)
	m.topology("t", "t", "node")
	for _, gang := range []string{"x1", "x2", "y1"} {
		g := m.Jobs()["group/ns/"+api.JobID(gang)].Group.DeepCopy()
		g.Spec.TopologyConstraint = &v1alpha1.TopologyConstraint{RequiredTopologyLevel: "node"}
		m.Events().SetPodGroup(g)
	}
	m.Events().SetPod(m.pod("y1-small", "y", "3", "y1"))
	got := map[string]api.DomainName{}
	for _, g := range m.report(t).PodGroups {
		got[g.Name] = g.Domain
	}
	if diff := cmp.Diff(map[string]api.DomainName{"x1": "node x node", "x2": "node x node", "y1": "node y node", "y2": ""}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
