// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package conformance is the plugin that protects system pods from eviction.
package conformance

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

// Name is the plugin's name in configurations.
const Name = "conformance"

// Spec registers the plugin; it takes no arguments.
func Spec() framework.PluginSpec {
	return framework.PluginSpec{
		New:          func(*conf.Decoder, framework.Handle) (framework.Plugin, error) { return plugin{}, nil },
		NeverPermits: []conf.Point{conf.Preemptable, conf.Reclaimable},
	}
}

type plugin struct{}

func (plugin) Name() string { return Name }

func (plugin) OnSessionOpen(ssn *framework.Session) {
	ssn.AddPreemptableFn(Name, rejectSystemPods)
	ssn.AddReclaimableFn(Name, rejectSystemPods)
	ssn.AddNonEvictableFn(Name, isSystem)
}

func (plugin) OnSessionClose(*framework.Session) {}

// The priority classes of system pods; k8s.io/kubernetes/pkg/apis/scheduling has them as internal constants.
const (
	clusterCritical = "system-cluster-critical"
	nodeCritical    = "system-node-critical"
)

func rejectSystemPods(_ *api.Claim, unit api.Unit) api.Vote {
	if slices.ContainsFunc(unit.Tasks, isSystem) {
		return api.Reject
	}
	return api.Abstain
}

func isSystem(t *api.TaskInfo) bool {
	class := t.Pod.Spec.PriorityClassName
	return t.Pod.Namespace == metav1.NamespaceSystem || class == clusterCritical || class == nodeCritical
}
