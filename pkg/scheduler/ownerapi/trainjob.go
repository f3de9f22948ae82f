// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package ownerapi

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// trainJob is the rule of JobSets, for those that a TrainJob has created. Initializers are stages of these JobSets. If the
// policy lists JobSets, the rule is not needed.
func trainJob() *API {
	a := jobSet()
	a.Name = "trainjob"
	a.needed = func(g api.Grouping) bool { return g.Kinds.Has(api.KindTrainJob) && !g.Kinds.Has(api.KindJobSet) }
	a.gangs = func(u *unstructured.Unstructured) ([]api.OwnerGang, error) {
		if controller := metav1.GetControllerOf(u); controller == nil || !isKind(controller, "trainer.kubeflow.org", "TrainJob") {
			return nil, nil
		}
		return jobSetGangs(u)
	}
	return a
}
