// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package groupapi

import (
	"encoding/json"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// schedulerPlugins returns scheduling.x-k8s.io/v1alpha1 of kubernetes-sigs/scheduler-plugins. The training operator, the
// MPI operator, Trainer, the Spark operator and KubeRay create its PodGroups.
func schedulerPlugins() *API {
	return &API{
		Source:            api.SourceSchedulerPlugins,
		Resource:          schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"},
		Kind:              "PodGroup",
		StatusSubresource: true,
		read:              readSchedulerPlugins,
		shown:             schedulerPluginsShown,
		status:            schedulerPluginsStatus,
	}
}

// pluginsPodGroup has the fields of a PodGroup that the scheduler reads. It does not read spec.scheduleTimeoutSeconds: a
// gang that does not fit holds no resources, so there is nothing to release after a time.
type pluginsPodGroup struct {
	Spec struct {
		MinMember    int32           `json:"minMember"`
		MinResources v1.ResourceList `json:"minResources"`
	} `json:"spec"`
	Status pluginsStatus `json:"status"`
}

// pluginsStatus has the fields of the status that the scheduler writes.
type pluginsStatus struct {
	Phase     string `json:"phase,omitempty"`
	Running   int32  `json:"running"`
	Succeeded int32  `json:"succeeded"`
	Failed    int32  `json:"failed"`
}

// Phases of a PodGroup of scheduler-plugins.
const (
	pluginsPending    = "Pending"    // fewer than minMember pods exist
	pluginsScheduling = "Scheduling" // the pods exist and have not started
	pluginsRunning    = "Running"
	pluginsUnknown    = "Unknown"
	pluginsFinished   = "Finished"
	pluginsFailed     = "Failed"
)

func readSchedulerPlugins(u *unstructured.Unstructured) (*api.Group, error) {
	object, err := decode[pluginsPodGroup](u)
	if err != nil {
		return nil, err
	}
	g := &v1alpha1.PodGroup{Spec: v1alpha1.PodGroupSpec{MinMember: max(object.Spec.MinMember, 1), MinResources: object.Spec.MinResources}}
	switch object.Status.Phase {
	case pluginsFinished:
		g.Status.Phase = v1alpha1.PodGroupFinished
	case pluginsFailed:
		g.Status.Phase = v1alpha1.PodGroupFailed
	}
	return &api.Group{PodGroup: g}, nil
}

// schedulerPluginsStatus writes phase and counts as the controller of scheduler-plugins does. The status has no place for
// a reason: it is in the conditions of the pods and in an event.
func schedulerPluginsStatus(shown []byte, want *api.PodGroupReport, _ metav1.Time) (next []byte, urgent bool, err error) {
	next, err = change(shown, func(s *pluginsStatus) {
		phase := pluginsPhase(want)
		urgent = s.Phase != phase
		*s = pluginsStatus{Phase: phase, Running: want.Running, Succeeded: want.Succeeded, Failed: want.Failed}
	})
	return next, urgent, err
}

func pluginsPhase(want *api.PodGroupReport) string {
	switch want.Phase {
	case v1alpha1.PodGroupRunning:
		return pluginsRunning
	case v1alpha1.PodGroupUnknown:
		return pluginsUnknown
	case v1alpha1.PodGroupFinished:
		return pluginsFinished
	case v1alpha1.PodGroupFailed:
		return pluginsFailed
	}
	if want.Pending == 0 || want.Reason == v1alpha1.ReasonNotEnoughPods {
		return pluginsPending
	}
	return pluginsScheduling
}

// schedulerPluginsShown reads phase and counts. The API has no condition.
func schedulerPluginsShown(status []byte) (v1alpha1.PodGroupStatus, error) {
	var s pluginsStatus
	err := json.Unmarshal(status, &s)
	shown := v1alpha1.PodGroupStatus{Running: s.Running, Succeeded: s.Succeeded, Failed: s.Failed}
	switch s.Phase {
	case "":
	case pluginsRunning:
		shown.Phase = v1alpha1.PodGroupRunning
	case pluginsUnknown:
		shown.Phase = v1alpha1.PodGroupUnknown
	case pluginsFinished:
		shown.Phase = v1alpha1.PodGroupFinished
	case pluginsFailed:
		shown.Phase = v1alpha1.PodGroupFailed
	default:
		shown.Phase = v1alpha1.PodGroupPending
	}
	return shown, err
}
