// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package ownerapi

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// jobSpec are the fields of a Job that decide about gangs.
type jobSpec struct {
	Parallelism    *int32 `json:"parallelism"`
	Completions    *int32 `json:"completions"`
	CompletionMode string `json:"completionMode"`
}

// atOnce returns how many pods of the Job run at the same time.
func (s *jobSpec) atOnce() int32 {
	n := atLeastZero(s.Parallelism, 1)
	if s.Completions != nil {
		n = min(n, max(*s.Completions, 0))
	}
	return n
}

// job makes a gang of an indexed Job with as many completions as pods at the same time: these pods know each other by their
// index. All other Jobs are queues of work, and their pods start one by one. With "job: basic" that holds for indexed Jobs
// too, and no Job is read.
func job() *API {
	return &API{
		Name:      "job",
		Kind:      "Job",
		Resources: []schema.GroupVersionResource{resource("batch", "v1", "jobs")},
		needed:    func(g api.Grouping) bool { return g.Kinds.Has(api.KindJob) && g.IndexedJobs },
		ownerOf:   controllerOf("batch", "Job"),
		gangs: func(u *unstructured.Unstructured) ([]api.OwnerGang, error) {
			spec, err := decode[jobSpec](u)
			if err != nil {
				return nil, err
			}
			n := atLeastZero(spec.Parallelism, 1)
			if spec.CompletionMode != "Indexed" || n < 2 || spec.Completions == nil || *spec.Completions != n {
				return nil, nil
			}
			return whole(n), nil
		},
	}
}
