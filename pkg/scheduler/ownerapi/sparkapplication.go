// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package ownerapi

import (
	"strconv"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// Labels of the pods of a SparkApplication.
const (
	sparkOperatorName = "sparkoperator.k8s.io/app-name"
	sparkRole         = "spark-role"
	sparkApplication  = "spark-app-selector" // different in each run
)

// sparkBatch is the setting of how many executors a driver creates at once, and its least default.
const (
	sparkBatch        = "spark.kubernetes.allocation.batch.size"
	sparkBatchDefault = 5
)

// sparkApplicationSpec are the fields of a SparkApplication that decide about gangs.
type sparkApplicationSpec struct {
	Conf     map[string]string `json:"sparkConf"`
	Executor struct {
		Instances *int32 `json:"instances"`
	} `json:"executor"`
	DynamicAllocation *struct {
		Enabled      bool   `json:"enabled"`
		MinExecutors *int32 `json:"minExecutors"`
	} `json:"dynamicAllocation"`
}

// sparkApplications makes a gang of the executors of a run: of all, or with dynamic allocation of the least number. The
// driver starts by itself, because it creates the executors. Drivers of many versions of Spark create no further executors
// while some are pending, so the gang is at most one batch.
func sparkApplications() *API {
	return &API{
		Name:      "sparkapplication",
		Kind:      "SparkApplication",
		Resources: []schema.GroupVersionResource{resource("sparkoperator.k8s.io", "v1beta2", "sparkapplications")},
		needed:    listed(api.KindSparkApplication),
		ownerOf: func(pod *v1.Pod, controller *metav1.OwnerReference) (string, types.UID) {
			if controller.Kind != "Pod" || pod.Labels[sparkRole] != "executor" {
				return "", ""
			}
			return pod.Labels[sparkOperatorName], ""
		},
		gangs: func(u *unstructured.Unstructured) ([]api.OwnerGang, error) {
			spec, err := decode[sparkApplicationSpec](u)
			if err != nil {
				return nil, err
			}
			n := atLeastZero(spec.Executor.Instances, 1)
			if d := spec.DynamicAllocation; d != nil && d.Enabled {
				n = atLeastZero(d.MinExecutors, 1)
			}
			batch := int32(sparkBatchDefault)
			if set, err := strconv.ParseInt(spec.Conf[sparkBatch], 10, 32); err == nil && set > 0 {
				batch = int32(set)
			}
			return []api.OwnerGang{{KeyLabels: []string{sparkApplication}, MinMember: min(n, batch)}}, nil
		},
	}
}
