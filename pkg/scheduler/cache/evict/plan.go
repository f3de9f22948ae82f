// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package evict

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// Plan is the evictions of one statement.
type Plan struct {
	// Preemptor is the job that gets the resources: namespace/name of its PodGroup, or of the owner
	// of its pods.
	Preemptor string
	// PodGroup is the PodGroup of the preemptor; nil for a job without PodGroup.
	PodGroup *v1.ObjectReference
	// PreemptorPod is a pod that is to use the resources; nil if it is not known. The plan is
	// dropped when this pod does not wait any more.
	PreemptorPod *v1.ObjectReference
	// Queue and Priority are those of the preemptor.
	Queue    string
	Priority int32

	Victims []*Victim // those of one job are adjacent
	// Jobs are the jobs of the victims, by Victim.Job.
	Jobs map[string]*Job
}

// Job is a job that loses pods by a plan.
type Job struct {
	Namespace, Name string
	// PodGroup is nil for a job without PodGroup.
	PodGroup *v1.ObjectReference
	Queue    string
	Priority int32
	// Announced gangs show that they are about to be evicted: those of an API that has a condition for that.
	Announced bool
	// Missing is how many pods the gang lacks after the plan; not positive if it continues to run.
	Missing int32
	// Frees is what the pods of the job in the plan request, as text.
	Frees string
}

// Victim is one pod to evict.
type Victim struct {
	Namespace, Name string
	UID             types.UID
	Job             string
	// BatchJob is the name of the Job (batch/v1) that controls the pod; empty if none does.
	BatchJob string
	Cause    api.EvictionCause
	// Budget is the name of a PodDisruptionBudget that selects the pod; empty if there is none.
	Budget string
}

func (v *Victim) reference() v1.ObjectReference {
	return v1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: v.Namespace, Name: v.Name, UID: v.UID}
}

// budget returns namespace/name of the PodDisruptionBudget.
func (v *Victim) budget() string { return v.Namespace + "/" + v.Budget }

func (v *Victim) ref() klog.ObjectRef { return klog.KRef(v.Namespace, v.Name) }

// nextJob returns the victims of the plan from the i-th on that are of the same job.
func (p *Plan) nextJob(i int) []*Victim {
	end := i + 1
	for end < len(p.Victims) && p.Victims[end].Job == p.Victims[i].Job {
		end++
	}
	return p.Victims[i:end]
}
