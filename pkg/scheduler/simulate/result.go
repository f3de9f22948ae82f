// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Result is the prediction of a simulation. Its JSON is the output of "simulate --output json". All lists are sorted,
// and none is null.
type Result struct {
	// Configuration is the policy file, or "built-in default".
	Configuration string `json:"configuration"`
	// Cycles is the number of sessions; the last one decided nothing, unless a warning reports otherwise.
	Cycles int `json:"cycles"`
	// Nodes is the number of nodes.
	Nodes int `json:"nodes"`
	// Totals are sums over all nodes.
	Totals []Total `json:"totals"`
	Queues []Queue `json:"queues"`
	// Bound, Evicted and Waiting are sorted by group, then pod.
	Bound   []Binding  `json:"bound"`
	Evicted []Eviction `json:"evicted"`
	Waiting []Waiting  `json:"waiting"`
	// Warnings concern the configuration, objects, and ignored input.
	Warnings []string `json:"warnings"`
}

// Total is the capacity of a resource and how much of it pods hold, including pods of other schedulers.
type Total struct {
	Resource   v1.ResourceName   `json:"resource"`
	Capacity   resource.Quantity `json:"capacity"`
	UsedBefore resource.Quantity `json:"usedBefore"`
	UsedAfter  resource.Quantity `json:"usedAfter"`
}

// Queue is the result for a queue. Missing amounts are zero; missing amounts of the capability are unlimited.
type Queue struct {
	Name   string `json:"name"`
	Weight int64  `json:"weight"`
	// Deserved is the share at the end; empty if no plugin computes shares.
	Deserved        v1.ResourceList `json:"deserved"`
	AllocatedBefore v1.ResourceList `json:"allocatedBefore"`
	AllocatedAfter  v1.ResourceList `json:"allocatedAfter"`
	// Requested is the sum of the requests of its running and pending pods before the first decision.
	Requested  v1.ResourceList `json:"requested"`
	Capability v1.ResourceList `json:"capability"`
}

// Binding is a pod that the scheduler binds.
type Binding struct {
	// Pod is namespace/name.
	Pod string `json:"pod"`
	// Group is namespace/name of the PodGroup; of pods without one, that of their controller, else of the pod itself.
	Group string `json:"group"`
	Queue string `json:"queue"`
	Node  string `json:"node"`
	// Cycle is the number of the session that decides this, from 1.
	Cycle int `json:"cycle"`
	// Again is set for pods that were evicted and created again.
	Again bool `json:"again,omitempty"`
}

// Eviction is a pod that the scheduler evicts.
type Eviction struct {
	Pod   string `json:"pod"`
	Group string `json:"group"`
	Queue string `json:"queue"`
	Node  string `json:"node"`
	// For is the group of the preemptor, and Cause is preempted, reclaimed or gang-degraded.
	For   string `json:"for"`
	Cause string `json:"cause"`
	Cycle int    `json:"cycle"`
	// ComesBack is set if a controller creates the pod again.
	ComesBack bool `json:"comesBack"`
	// JobFails is why the eviction makes the Job of the pod fail; empty if it does not, or the Job is not known.
	JobFails string `json:"jobFails,omitempty"`
}

// Waiting is why pods of a group are pending. A group has several entries if its pods wait for different reasons.
type Waiting struct {
	Group string `json:"group"`
	Queue string `json:"queue"`
	// Pods is the number of pods that wait for this reason; 0 if the group has no pods.
	Pods int `json:"pods"`
	// Reason is a reason of the condition PodGroupScheduled, or NotTried.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Plugins are those that refuse the group or nodes for the pods, sorted.
	Plugins []string `json:"plugins,omitempty"`
	// LimitSeconds and ExpectedSeconds are the run time that the group declares, or its queue for it; 0 if none is declared.
	LimitSeconds    int64 `json:"limitSeconds,omitempty"`
	ExpectedSeconds int64 `json:"expectedSeconds,omitempty"`
	// EstimatedStart and LatestStart are when the group is planned to start; nil if that is not known.
	EstimatedStart *metav1.Time `json:"estimatedStart,omitempty"`
	LatestStart    *metav1.Time `json:"latestStart,omitempty"`
}
