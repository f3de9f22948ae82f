// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SchedulerConfiguration is the policy of the scheduler: the actions of a scheduling cycle and the plugins, arranged in
// tiers. The policy file of kube-batch is a valid SchedulerConfiguration: it names neither apiVersion nor kind.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type SchedulerConfiguration struct {
	// apiVersion and kind may be omitted. Other values than the defaults are rejected.
	metav1.TypeMeta `json:",inline"`

	// actions that every scheduling cycle executes, in this order. At least one is required; each may be listed once.
	// Either a list, or one string with commas between the actions.
	Actions ActionList `json:"actions"`

	// tiers of plugins, in descending order of precedence.
	// +optional
	Tiers []Tier `json:"tiers,omitempty"`

	// starvationAfter is how long a gang is pending before the scheduler reserves resources for it: from then on,
	// resources that become free are kept for the gang until it fits. 0 disables such reservations.
	// +optional
	StarvationAfter *metav1.Duration `json:"starvationAfter,omitempty"`

	// expect is for how long after the start of a gang the scheduler reserves what spec.minResources of its PodGroup
	// requests besides the pods that exist: pods that come later, such as the executors that a driver creates, find
	// resources then. The gang starts only if these are available too. The default is 0: minResources reserves nothing.
	// +optional
	Expect *metav1.Duration `json:"expect,omitempty"`

	// reservations with a start time, for gangs that wait for pods whose end is known. Without it, gangs have no start time.
	// +optional
	Reservations *Reservations `json:"reservations,omitempty"`

	// groupSources are the APIs whose PodGroups the scheduler reads: own for those of scheduling.batch-scheduler.dev, which
	// are read whether listed or not, native for scheduling.k8s.io, scheduler-plugins for scheduling.x-k8s.io, volcano for
	// scheduling.volcano.sh, and kai for scheduling.run.ai. The default is own alone. Each other source needs a ClusterRole of
	// its own. The order has no meaning.
	// +optional
	GroupSources []string `json:"groupSources,omitempty"`

	// grouping makes gangs of pods without a PodGroup by the objects that create them.
	// +optional
	Grouping Grouping `json:"grouping,omitzero"`
}

// Reservations configures for which gangs the scheduler plans a start from the ends of the pods that run, and keeps
// resources. Jobs that end before the start may use them; others may use what the gang does not need. A gang whose start
// is not known is treated as starvationAfter says.
type Reservations struct {
	// depth is for how many gangs of each queue a start is planned, the first ones in the order of jobs that do not fit: 1,
	// the default, is EASY backfilling. -1 is for all of them, which is conservative backfilling. 0 is for none.
	// +optional
	Depth *int32 `json:"depth,omitempty"`

	// total is for how many gangs of all queues a start is planned at most. The default is 8.
	// +optional
	Total *int32 `json:"total,omitempty"`

	// window is how far ahead starts are planned. Nothing is reserved for a gang whose start is expected later, so other
	// jobs can delay it. The default is 24h.
	// +optional
	Window *metav1.Duration `json:"window,omitempty"`

	// after is how long a gang is pending before its start is planned. The default is 0: at once.
	// +optional
	After *metav1.Duration `json:"after,omitempty"`

	// margin is how long before the start of a gang other jobs have to end at the latest if they use its resources: nodes
	// and the scheduler may have different clocks. The default is 30s.
	// +optional
	Margin *metav1.Duration `json:"margin,omitempty"`

	// preemptionDelay is how soon the start of a gang has to be planned for, so that preempt and reclaim evict nothing for it:
	// the resources become free without evictions. The default is 30s, the usual grace period of pods, so that evictions would
	// not free them earlier.
	// +optional
	PreemptionDelay *metav1.Duration `json:"preemptionDelay,omitempty"`
}

// Grouping selects the objects that make gangs of their pods.
type Grouping struct {
	// kinds of objects: job, jobset, kubeflow (PyTorchJob, TFJob, XGBoostJob and JAXJob), kueue (its groups of pods),
	// leaderworkerset, mpijob, raycluster, sparkapplication, and trainjob. The default is none. The scheduler needs the
	// permission to read them. The order has no meaning.
	// +optional
	Kinds []string `json:"kinds,omitempty"`

	// job is how the pods of Jobs start if kinds contains job: indexed makes a gang of each indexed Job with as many
	// completions as parallelism, and with basic the pods of all Jobs start one by one.
	// +optional
	Job string `json:"job,omitempty"`
}

// Tier is a group of plugins. The plugins of a tier vote together on evictions; the next tier votes only if all of them
// abstain.
type Tier struct {
	// plugins of the tier, in descending order of precedence. A plugin may be configured once in all tiers.
	// +optional
	Plugins []Plugin `json:"plugins,omitempty"`
}

// Plugin configures one plugin. A plugin is active at all extension points that it implements, except for those with a
// switch that is false.
type Plugin struct {
	// name of the plugin.
	Name string `json:"name"`

	// arguments of the plugin, by key. A value is a string, a number or a boolean; quotes make no difference.
	// +optional
	Arguments Arguments `json:"arguments,omitempty"`

	// enableJobOrder lets the plugin order the jobs of a queue.
	// +optional
	EnableJobOrder *bool `json:"enableJobOrder,omitempty"`

	// enableJobReady lets the plugin decide whether a job has all that it needs to start.
	// +optional
	EnableJobReady *bool `json:"enableJobReady,omitempty"`

	// enableJobPipelined lets the plugin decide whether a job can start as soon as pods that are being deleted are
	// gone.
	// +optional
	EnableJobPipelined *bool `json:"enableJobPipelined,omitempty"`

	// enableTaskOrder lets the plugin order the pods of a job.
	// +optional
	EnableTaskOrder *bool `json:"enableTaskOrder,omitempty"`

	// enablePreemptable lets the plugin vote on whether a pod may be evicted for a job of the same queue.
	// +optional
	EnablePreemptable *bool `json:"enablePreemptable,omitempty"`

	// enableReclaimable lets the plugin vote on whether a pod may be evicted for a job of another queue.
	// +optional
	EnableReclaimable *bool `json:"enableReclaimable,omitempty"`

	// enableQueueOrder lets the plugin order the queues.
	// +optional
	EnableQueueOrder *bool `json:"enableQueueOrder,omitempty"`

	// enablePredicate lets the plugin reject nodes for a pod.
	// +optional
	EnablePredicate *bool `json:"enablePredicate,omitempty"`

	// enableNodeOrder lets the plugin score nodes for a pod.
	// +optional
	EnableNodeOrder *bool `json:"enableNodeOrder,omitempty"`
}
