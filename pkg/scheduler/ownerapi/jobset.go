// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package ownerapi

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// Labels of the pods of a JobSet.
const (
	jobSetName          = "jobset.sigs.k8s.io/jobset-name"
	jobSetUID           = "jobset.sigs.k8s.io/jobset-uid"
	jobSetReplicatedJob = "jobset.sigs.k8s.io/replicatedjob-name"
	jobSetAttempt       = "jobset.sigs.k8s.io/restart-attempt"
)

// jobSetSpec are the fields of a JobSet that decide about gangs.
type jobSetSpec struct {
	StartupPolicy *struct {
		Order string `json:"startupPolicyOrder"`
	} `json:"startupPolicy"`
	ReplicatedJobs []replicatedJob `json:"replicatedJobs"`
}

type replicatedJob struct {
	Name     string `json:"name"`
	Replicas *int32 `json:"replicas"`
	Template struct {
		Spec jobSpec `json:"spec"`
	} `json:"template"`
	DependsOn []struct {
		Name   string `json:"name"`
		Status string `json:"status"`
	} `json:"dependsOn"`
}

// jobSet makes one gang of the pods of all replicatedJobs that the controller creates at the same time: those without
// dependsOn, and those that depend on the same others. With the startup policy InOrder it creates them one after the other,
// and each is a gang. A JobSet of driver(1 Job of 1 pod) and workers(2 Jobs of 4 pods) is a gang of 9.
//
// When the JobSet restarts, its new pods are another gang than those of the attempts before.
func jobSet() *API {
	return &API{
		Name:      "jobset",
		Kind:      "JobSet",
		Resources: []schema.GroupVersionResource{resource("jobset.x-k8s.io", "v1alpha2", "jobsets")},
		needed:    listed(api.KindJobSet),
		ownerOf: func(pod *v1.Pod, controller *metav1.OwnerReference) (string, types.UID) {
			if !isKind(controller, "batch", "Job") {
				return "", ""
			}
			return pod.Labels[jobSetName], types.UID(pod.Labels[jobSetUID])
		},
		gangs: jobSetGangs,
	}
}

func jobSetGangs(u *unstructured.Unstructured) ([]api.OwnerGang, error) {
	spec, err := decode[jobSetSpec](u)
	if err != nil {
		return nil, err
	}
	inOrder := spec.StartupPolicy != nil && spec.StartupPolicy.Order == "InOrder"
	var gangs []api.OwnerGang
	for i := range spec.ReplicatedJobs {
		r := &spec.ReplicatedJobs[i]
		stage := r.stage()
		if inOrder {
			stage = r.Name
		}
		at := slices.IndexFunc(gangs, func(g api.OwnerGang) bool { return g.Stage == stage })
		if at < 0 {
			at = len(gangs)
			gangs = append(gangs, api.OwnerGang{Stage: stage, Label: jobSetReplicatedJob, KeyLabels: []string{jobSetAttempt}})
		}
		gangs[at].Values = append(gangs[at].Values, r.Name)
		gangs[at].MinMember += atLeastZero(r.Replicas, 1) * r.Template.Spec.atOnce()
	}
	return gangs, nil
}

// stage returns what replicatedJobs have in common that are created at the same time; empty for those that depend on none.
func (r *replicatedJob) stage() string {
	var after []string
	for _, d := range r.DependsOn {
		after = append(after, d.Name+"="+d.Status)
	}
	slices.Sort(after)
	return strings.Join(after, ",")
}

// atLeastZero returns n, or what it is by default.
func atLeastZero(n *int32, byDefault int32) int32 {
	if n == nil {
		return byDefault
	}
	return max(*n, 0)
}
