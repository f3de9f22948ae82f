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
	Victims      []*Victim // those of one job are adjacent
}

// Victim is one pod to evict.
type Victim struct {
	Namespace, Name string
	UID             types.UID
	Job             string
	Cause           api.EvictionCause
}

func (v *Victim) reference() v1.ObjectReference {
	return v1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: v.Namespace, Name: v.Name, UID: v.UID}
}

func (v *Victim) ref() klog.ObjectRef { return klog.KRef(v.Namespace, v.Name) }

// beginsJob reports whether the i-th victim is the first one of its job.
func (p *Plan) beginsJob(i int) bool { return i == 0 || p.Victims[i].Job != p.Victims[i-1].Job }
