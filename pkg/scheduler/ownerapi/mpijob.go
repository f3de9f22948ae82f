// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package ownerapi

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// Labels of the pods of an MPIJob.
const (
	kubeflowJobName  = "training.kubeflow.org/job-name"
	kubeflowJobRole  = "training.kubeflow.org/job-role"
	kubeflowOperator = "training.kubeflow.org/operator-name"
)

// mpiJobSpec are the fields of an MPIJob that decide about gangs.
type mpiJobSpec struct {
	RunPolicy              kubeflowRunPolicy          `json:"runPolicy"`
	LauncherCreationPolicy string                     `json:"launcherCreationPolicy"`
	Replicas               map[string]kubeflowReplica `json:"mpiReplicaSpecs"`
}

type kubeflowRunPolicy struct {
	SchedulingPolicy *struct {
		MinAvailable *int32 `json:"minAvailable"`
	} `json:"schedulingPolicy"`
}

type kubeflowReplica struct {
	Replicas *int32 `json:"replicas"`
}

// minAvailable returns the size of the gang that the job itself names, or what it is by default.
func (p *kubeflowRunPolicy) minAvailable(byDefault int32) int32 {
	if p.SchedulingPolicy == nil || p.SchedulingPolicy.MinAvailable == nil {
		return byDefault
	}
	return *p.SchedulingPolicy.MinAvailable
}

// mpiJob makes a gang of the workers and the launcher, which is the pod of a Job. If the launcher is created when all workers
// are ready, the workers alone are the gang, and the launcher starts by itself.
func mpiJob() *API {
	return &API{
		Name: "mpijob",
		Kind: "MPIJob",
		Resources: []schema.GroupVersionResource{
			resource("kubeflow.org", "v2beta1", "mpijobs"),
			resource("kubeflow.org", "v1", "mpijobs"), // of the training operator
		},
		needed: listed(api.KindMPIJob),
		ownerOf: func(pod *v1.Pod, controller *metav1.OwnerReference) (string, types.UID) {
			switch {
			case isKind(controller, "kubeflow.org", "MPIJob"):
				return controller.Name, controller.UID
			case isKind(controller, "batch", "Job") && pod.Labels[kubeflowOperator] == "mpi-operator":
				return pod.Labels[kubeflowJobName], ""
			}
			return "", ""
		},
		gangs: func(u *unstructured.Unstructured) ([]api.OwnerGang, error) {
			spec, err := decode[mpiJobSpec](u)
			if err != nil {
				return nil, err
			}
			workers := int32(0)
			if w, found := spec.Replicas["Worker"]; found {
				workers = atLeastZero(w.Replicas, 1)
			}
			if spec.LauncherCreationPolicy != "WaitForWorkersReady" {
				return whole(spec.RunPolicy.minAvailable(workers + 1)), nil
			}
			return []api.OwnerGang{{
				Label: kubeflowJobRole, Values: []string{"worker"}, MinMember: min(spec.RunPolicy.minAvailable(workers), workers),
			}}, nil
		},
	}
}
