package simulate

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Result is what a simulation foretells. Its JSON is the output of "simulate --output json". All lists are sorted, and
// none is null.
type Result struct {
	// Configuration is the file of the policy, or "built-in default".
	Configuration string `json:"configuration"`
	// Cycles is how many sessions were run; the last one decided nothing, unless a warning says otherwise.
	Cycles int `json:"cycles"`
	// Nodes is how many nodes there are.
	Nodes int `json:"nodes"`
	// Totals are sums over all nodes.
	Totals []Total `json:"totals"`
	Queues []Queue `json:"queues"`
	// Bound, Evicted and Waiting are by group, then pod.
	Bound   []Binding  `json:"bound"`
	Evicted []Eviction `json:"evicted"`
	Waiting []Waiting  `json:"waiting"`
	// Warnings are about the configuration, about objects, and about what was left out.
	Warnings []string `json:"warnings"`
}

// Total is how much of a resource there is, and how much of it pods hold, those of other schedulers included.
type Total struct {
	Resource   v1.ResourceName   `json:"resource"`
	Capacity   resource.Quantity `json:"capacity"`
	UsedBefore resource.Quantity `json:"usedBefore"`
	UsedAfter  resource.Quantity `json:"usedAfter"`
}

// Queue is how a queue fares. Amounts that are not listed are zero, those of the capability unlimited.
type Queue struct {
	Name   string `json:"name"`
	Weight int64  `json:"weight"`
	// Deserved is the share at the end; empty if no plugin divides the cluster.
	Deserved        v1.ResourceList `json:"deserved"`
	AllocatedBefore v1.ResourceList `json:"allocatedBefore"`
	AllocatedAfter  v1.ResourceList `json:"allocatedAfter"`
	// Requested is what its pods hold and wait for before anything is decided.
	Requested  v1.ResourceList `json:"requested"`
	Capability v1.ResourceList `json:"capability"`
}

// Binding is a pod that gets a node.
type Binding struct {
	// Pod is namespace/name.
	Pod string `json:"pod"`
	// Group is namespace/name of the PodGroup; of pods without one, that of their controller, else of the pod itself.
	Group string `json:"group"`
	Queue string `json:"queue"`
	Node  string `json:"node"`
	// Cycle is in which session this is decided, from 1 on.
	Cycle int `json:"cycle"`
	// Again is set for pods that were evicted and have come back.
	Again bool `json:"again,omitempty"`
}

// Eviction is a pod that is evicted.
type Eviction struct {
	Pod   string `json:"pod"`
	Group string `json:"group"`
	Queue string `json:"queue"`
	Node  string `json:"node"`
	// For is the group for which the pod goes, and Cause is preempted, reclaimed or gang-degraded.
	For   string `json:"for"`
	Cause string `json:"cause"`
	Cycle int    `json:"cycle"`
	// ComesBack is set if a controller makes the pod again.
	ComesBack bool `json:"comesBack"`
}

// Waiting is why pods of a group are left waiting. A group has several if its pods wait for different reasons.
type Waiting struct {
	Group string `json:"group"`
	Queue string `json:"queue"`
	// Pods is how many wait for this reason; 0 if the group has no pods at all.
	Pods int `json:"pods"`
	// Reason is one of those of the condition PodGroupScheduled, or NotTried.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Plugins are those that refuse the group or nodes for the pods, sorted.
	Plugins []string `json:"plugins,omitempty"`
}
