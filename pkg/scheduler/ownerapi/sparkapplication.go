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

// Settings of Spark.
const (
	sparkInstances    = "spark.executor.instances"
	sparkDynamic      = "spark.dynamicAllocation.enabled"
	sparkMinExecutors = "spark.dynamicAllocation.minExecutors"
	sparkBatch        = "spark.kubernetes.allocation.batch.size" // how many executors a driver creates at once
	sparkBatchDefault = 5                                        // the least default of all versions
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
			n := min(spec.executors(), spec.number(sparkBatch, sparkBatchDefault))
			return []api.OwnerGang{{KeyLabels: []string{sparkApplication}, MinMember: n}}, nil
		},
	}
}

// executors returns how many executors the application needs. The fields of the spec precede the settings.
func (s *sparkApplicationSpec) executors() int32 {
	switch d := s.DynamicAllocation; {
	case d != nil && d.Enabled:
		return atLeastZero(d.MinExecutors, s.number(sparkMinExecutors, 1))
	case s.Conf[sparkDynamic] == "true":
		return s.number(sparkMinExecutors, 1)
	}
	return atLeastZero(s.Executor.Instances, s.number(sparkInstances, 1))
}

// number returns a positive number of the settings, or what it is by default.
func (s *sparkApplicationSpec) number(key string, byDefault int32) int32 {
	if n, err := strconv.ParseInt(s.Conf[key], 10, 32); err == nil && n > 0 {
		return int32(n)
	}
	return byDefault
}
