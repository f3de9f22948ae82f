// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package ownerapi

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// kubeflowJobSpec are the fields of the jobs of the training operator that decide about gangs. Each kind has its own field
// with the replicas.
type kubeflowJobSpec struct {
	RunPolicy     kubeflowRunPolicy `json:"runPolicy"`
	ElasticPolicy *struct {
		MinReplicas *int32 `json:"minReplicas"`
	} `json:"elasticPolicy"`
	PyTorch map[string]kubeflowReplica `json:"pytorchReplicaSpecs"`
	TF      map[string]kubeflowReplica `json:"tfReplicaSpecs"`
	XGBoost map[string]kubeflowReplica `json:"xgbReplicaSpecs"`
	JAX     map[string]kubeflowReplica `json:"jaxReplicaSpecs"`
}

// kubeflowJobs make a gang of all replicas, or of as many as the scheduling policy of the job names. An elastic PyTorchJob
// needs its master and the least number of workers; other workers are added one by one.
func kubeflowJobs() []*API {
	var apis []*API
	for _, k := range [...][2]string{{"PyTorchJob", "pytorchjobs"}, {"TFJob", "tfjobs"}, {"XGBoostJob", "xgboostjobs"}, {"JAXJob", "jaxjobs"}} {
		apis = append(apis, &API{
			Name:      k[1],
			Kind:      k[0],
			Resources: []schema.GroupVersionResource{resource("kubeflow.org", "v1", k[1])},
			needed:    listed(api.KindKubeflow),
			ownerOf:   controllerOf("kubeflow.org", k[0]),
			gangs:     kubeflowGangs,
		})
	}
	return apis
}

func kubeflowGangs(u *unstructured.Unstructured) ([]api.OwnerGang, error) {
	spec, err := decode[kubeflowJobSpec](u)
	if err != nil {
		return nil, err
	}
	n := int32(0)
	for _, replicas := range []map[string]kubeflowReplica{spec.PyTorch, spec.TF, spec.XGBoost, spec.JAX} {
		for role, r := range replicas {
			count := atLeastZero(r.Replicas, 1)
			if role == "Worker" && spec.ElasticPolicy != nil && spec.ElasticPolicy.MinReplicas != nil {
				count = min(count, max(*spec.ElasticPolicy.MinReplicas, 0))
			}
			n += count
		}
	}
	return whole(spec.RunPolicy.minAvailable(n)), nil
}
