// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package ownerapi

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// rayClusterSpec are the fields of a RayCluster that decide about gangs.
type rayClusterSpec struct {
	Autoscaling  bool             `json:"enableInTreeAutoscaling"`
	WorkerGroups []rayWorkerGroup `json:"workerGroupSpecs"`
}

type rayWorkerGroup struct {
	Replicas    *int32 `json:"replicas"`
	MinReplicas *int32 `json:"minReplicas"`
	MaxReplicas *int32 `json:"maxReplicas"`
	NumOfHosts  *int32 `json:"numOfHosts"`
	Suspend     bool   `json:"suspend"`
}

// rayCluster makes a gang of the head and the workers: all of them, or with autoscaling the least number of workers, to
// which others are added one by one. It counts the workers as the operator does. RayJobs and RayServices create RayClusters.
func rayCluster() *API {
	return &API{
		Name:      "raycluster",
		Kind:      "RayCluster",
		Resources: []schema.GroupVersionResource{resource("ray.io", "v1", "rayclusters")},
		needed:    listed(api.KindRayCluster),
		ownerOf:   controllerOf("ray.io", "RayCluster"),
		gangs: func(u *unstructured.Unstructured) ([]api.OwnerGang, error) {
			spec, err := decode[rayClusterSpec](u)
			if err != nil {
				return nil, err
			}
			n := int32(1) // the head
			for i := range spec.WorkerGroups {
				n += spec.WorkerGroups[i].workers(spec.Autoscaling)
			}
			return whole(n), nil
		},
	}
}

// workers returns how many pods of the group must start together.
func (g *rayWorkerGroup) workers(autoscaling bool) int32 {
	if g.Suspend {
		return 0
	}
	n := atLeastZero(g.MinReplicas, 0)
	if !autoscaling && g.Replicas != nil {
		n = max(n, *g.Replicas)
	}
	if g.MaxReplicas != nil {
		n = min(n, max(*g.MaxReplicas, 0))
	}
	return n * max(atLeastZero(g.NumOfHosts, 1), 1)
}
