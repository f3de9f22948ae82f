// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

// counted runs a session and returns the topologies in its report.
func (m *backlogModel) counted(t *testing.T) string {
	t.Helper()
	changed := m.Events().Recompute()
	ssn, _, err := m.profile.Run(t.Context(), m.Cluster, silentEffects{}, logr.Discard(), framework.Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, report := range m.reporter.report(ssn, changed).Topologies {
		line := report.Name + ":"
		for _, l := range report.Status.Levels {
			line += fmt.Sprintf(" %s %d/%d", l.Name, l.Domains, l.Nodes)
		}
		lines = append(lines, fmt.Sprintf("%s, %d unlabelled", line, report.Status.UnlabelledNodes))
	}
	return strings.Join(lines, "; ")
}

// labelled adds a node with labels, in the form key=value.
func (m *backlogModel) labelled(name string, labels ...string) {
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{}}}
	for _, label := range labels {
		key, value, _ := strings.Cut(label, "=")
		node.Labels[key] = value
	}
	m.Events().SetNode(node)
}

func (m *backlogModel) topology(name, uid string, labels ...string) {
	topology := &v1alpha1.Topology{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid)}}
	for _, label := range labels {
		topology.Spec.Levels = append(topology.Spec.Levels, v1alpha1.TopologyLevel{NodeLabel: label})
	}
	model.TopologiesOf(m.Cluster).Set(topology)
}

// TestTopologyCounts changes a cluster with nodes in the racks a/r1, a/r2 and b/r1, one in block b alone, and two without
// labels.
func TestTopologyCounts(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*backlogModel)
		want   string
	}{
		"nothing has changed": {func(m *backlogModel) { m.Events().NotifyExternalChange() }, ""},
		"another label of a node": {
			func(m *backlogModel) { m.labelled("1", "block=a", "rack=r1", "color=red") }, "",
		},
		"a node moves, and its rack is gone": {
			func(m *backlogModel) { m.labelled("3", "block=a", "rack=r1") }, "t: block 2/5 rack 2/4, 2 unlabelled",
		},
		"a node gets its label": {
			func(m *backlogModel) { m.labelled("5", "block=b", "rack=r1") }, "t: block 2/5 rack 3/5, 2 unlabelled",
		},
		"a node loses the label of the widest level": {
			func(m *backlogModel) { m.labelled("4", "rack=r1") }, "t: block 2/4 rack 2/3, 3 unlabelled",
		},
		"a node more":      {func(m *backlogModel) { m.labelled("6") }, "t: block 2/5 rack 3/4, 3 unlabelled"},
		"a node less":      {func(m *backlogModel) { m.Events().DeleteNode("x") }, "t: block 2/5 rack 3/4, 1 unlabelled"},
		"a topology more":  {func(m *backlogModel) { m.topology("s", "s", "rack") }, "s: rack 2/4, 3 unlabelled"},
		"a level less":     {func(m *backlogModel) { m.topology("t", "t", "block") }, "t: block 2/5, 2 unlabelled"},
		"the same again":   {func(m *backlogModel) { m.topology("t", "t", "block", "rack") }, ""},
		"created again":    {func(m *backlogModel) { m.topology("t", "new", "block", "rack") }, "t: block 2/5 rack 3/4, 2 unlabelled"},
		"no topology":      {func(m *backlogModel) { model.TopologiesOf(m.Cluster).Delete("t") }, ""},
		"the journal lost": {func(m *backlogModel) { m.reporter.counts.reader.Invalidate() }, "t: block 2/5 rack 3/4, 2 unlabelled"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newBacklogModel(t)
			m.labelled("1", "block=a", "rack=r1")
			m.labelled("2", "block=a", "rack=r1")
			m.labelled("3", "block=a", "rack=r2")
			m.labelled("4", "block=b", "rack=r1")
			m.labelled("5", "block=b")
			if got := m.counted(t); got != "" {
				t.Errorf("without a topology, reported %q", got)
			}
			m.topology("t", "t", "block", "rack")
			if diff := cmp.Diff("t: block 2/5 rack 3/4, 2 unlabelled", m.counted(t)); diff != "" {
				t.Errorf("first report (-want +got):\n%s", diff)
			}
			tc.change(m)
			if diff := cmp.Diff(tc.want, m.counted(t)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestTopologyCountsOfAnotherModel: the cache builds another model after a panic.
func TestTopologyCountsOfAnotherModel(t *testing.T) {
	first, second := newBacklogModel(t), newBacklogModel(t)
	second.reporter = first.reporter
	for _, m := range []*backlogModel{first, second} {
		m.labelled("1", "block=a")
		m.topology("t", "t", "block")
	}
	first.labelled("2", "block=a") // so that its journal is longer
	if got := first.counted(t) + "; " + second.counted(t); got != "t: block 1/2, 2 unlabelled; t: block 1/1, 2 unlabelled" {
		t.Errorf("reported %q", got)
	}
}
