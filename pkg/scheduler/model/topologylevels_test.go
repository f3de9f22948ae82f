// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
)

// TestTopologyLevels: who asks for the levels of a topology needs the topologies, which nothing else has asked for.
func TestTopologyLevels(t *testing.T) {
	topologies := model.TopologiesOf(model.NewCluster(model.Options{}))
	if topologies.Needed() {
		t.Error("topologies are needed before anything has asked for one")
	}
	add := func(name string) {
		topologies.Set(&v1alpha1.Topology{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.TopologySpec{
			Levels: []v1alpha1.TopologyLevel{{NodeLabel: "block"}, {NodeLabel: "rack"}},
		}})
	}
	check := func(name, want string) {
		t.Helper()
		levels, unknown := topologies.Levels(name)
		if unknown != want || (len(levels) == 2) != (want == "") {
			t.Errorf("Levels(%q) returns %d levels and %q, want %q", name, len(levels), unknown, want)
		}
	}
	check("", "no topology exists")
	if !topologies.Needed() {
		t.Error("topologies are not needed although levels were asked for")
	}
	add("default")
	check("", "")
	add("power")
	check("", "no topology is named, and there are several: default, power")
	check("power", "")
}
