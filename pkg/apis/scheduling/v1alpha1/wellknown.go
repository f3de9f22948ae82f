// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Labels and annotations that users put on pods.
const (
	// LabelPodGroup on a pod names its PodGroup, which is in the pod's namespace.
	LabelPodGroup = GroupName + "/pod-group"
	// AnnotationGroupName on a pod names its PodGroup as in kube-batch and Volcano. LabelPodGroup takes precedence.
	AnnotationGroupName = "scheduling.k8s.io/group-name"
	// AnnotationGroupMinMember on a pod without a PodGroup is the number of pods of its controller that start together.
	AnnotationGroupMinMember = "scheduling.k8s.io/group-min-member"
	// AnnotationGroupKey on pods without a PodGroup makes those with one key, in one namespace and queue, a gang,
	// whatever their controllers are. AnnotationMinMember is then required.
	AnnotationGroupKey = GroupName + "/group-key"
	// AnnotationMinMember is the number of pods with one AnnotationGroupKey that start together. It is the same on all of
	// them.
	AnnotationMinMember = GroupName + "/min-member"
	// AnnotationMaximumExecutionTime on a pod, or on a PodGroup of another API, is what
	// spec.maximumExecutionTimeSeconds of a PodGroup is.
	AnnotationMaximumExecutionTime = GroupName + "/max-exec-time-seconds"
	// AnnotationTopologyRequired and AnnotationTopologyPreferred on a PodGroup, or on the pods of a gang without PodGroup, are
	// what requiredTopologyLevel and preferredTopologyLevel of spec.topologyConstraint are. AnnotationTopology is the name of
	// the Topology.
	AnnotationTopologyRequired  = GroupName + "/topology-required"
	AnnotationTopologyPreferred = GroupName + "/topology-preferred"
	AnnotationTopology          = GroupName + "/topology"
	// LabelSubGroup on a pod of a PodGroup names the subgroup that it belongs to.
	LabelSubGroup = GroupName + "/subgroup"
	// LabelQueue on a pod without a PodGroup names its queue. Without it the pod is in the default queue.
	LabelQueue = GroupName + "/queue"
	// LabelDefaultQueue on a namespace names the queue of PodGroups of other APIs there that neither name a queue
	// themselves nor by the labels of their pods.
	LabelDefaultQueue = GroupName + "/default-queue"
)

// AnnotationUnavailableFrom on a node is the time, in the format of RFC 3339, from which the node is not available, for
// example for maintenance: only pods that are over by then are placed there.
const AnnotationUnavailableFrom = GroupName + "/unavailable-from"

// LabelNodeWeight on a node is its weight, a whole number from 0 to MaxNodeWeight: nodes with lower weights are preferred if
// the policy says so. A node without the label has the weight 0.
const (
	LabelNodeWeight = GroupName + "/weight"
	MaxNodeWeight   = 100
)

// Annotations that the scheduler sets on the Binding; the API server merges them into the pod. For a bound pod they
// determine queue and PodGroup, not what users write to the pod.
const (
	// AnnotationQueue is the queue of a bound pod.
	AnnotationQueue = GroupName + "/queue"
	// AnnotationPodGroupUID is the UID of the PodGroup that a bound pod is a member of.
	AnnotationPodGroupUID = GroupName + "/pod-group-uid"
	// AnnotationEvictedFor, on an evicted pod, is the preemptor: the PodGroup for which the scheduler evicted the pod, as
	// namespace/name.
	AnnotationEvictedFor = GroupName + "/evicted-for"
)

// ConditionPodGroupScheduled is the condition of a PodGroup that is True if at least minMember of its pods have a
// node; otherwise its reason and message state the cause.
const ConditionPodGroupScheduled = "PodGroupScheduled"

// Reasons of ConditionPodGroupScheduled. All but the first come with status False. The PodScheduled condition of the
// pending pods of the PodGroup has the same reasons.
const (
	// ReasonScheduled: at least minMember pods have a node.
	ReasonScheduled = "Scheduled"
	// ReasonNotEnoughPods: fewer than minMember pods exist and may be scheduled (gated pods may not).
	ReasonNotEnoughPods = "NotEnoughPods"
	// ReasonNotEnoughResources: the suitable nodes have insufficient free resources for the pods.
	ReasonNotEnoughResources = "NotEnoughResources"
	// ReasonExceedsClusterCapacity: the suitable nodes could not run the pods even if no other pods ran there.
	ReasonExceedsClusterCapacity = "ExceedsClusterCapacity"
	// ReasonUnschedulable: no node is suitable for the pods, however many resources are free.
	ReasonUnschedulable = "Unschedulable"
	// ReasonQueueNotFound: the queue of the PodGroup does not exist.
	ReasonQueueNotFound = "QueueNotFound"
	// ReasonQueueConflict: the PodGroup is of another API and names no queue, and its pods name different ones.
	ReasonQueueConflict = "QueueConflict"
	// ReasonNotSupported: the PodGroup is of another API and has a field that this scheduler does not support, or an annotation
	// about the topology cannot be honoured.
	ReasonNotSupported = "NotSupported"
	// ReasonInvalidSubGroups: spec.subGroups contradicts itself, for example in a cycle of parents.
	ReasonInvalidSubGroups = "InvalidSubGroups"
	// ReasonTopologyNotFound: the Topology that spec.topologyConstraint names, or the level in it, does not exist.
	ReasonTopologyNotFound = "TopologyNotFound"
	// ReasonQueueFull: the PodGroup would exceed the capability of its queue.
	ReasonQueueFull = "QueueFull"
	// ReasonExceedsQueueCapability: the PodGroup alone exceeds the capability of its queue.
	ReasonExceedsQueueCapability = "ExceedsQueueCapability"
	// ReasonExecutionTimeTooLong: the limit of its run time is above the maximum of its queue.
	ReasonExecutionTimeTooLong = "ExecutionTimeTooLong"
	// ReasonPreempting: the PodGroup has its nodes and waits until evicted pods there terminate.
	ReasonPreempting = "Preempting"
	// ReasonClaimsNotReady: the PodGroup has its nodes and waits until the claims of its pods are bound, or binding
	// a claim failed and the scheduler retries.
	ReasonClaimsNotReady = "ClaimsNotReady"
	// ReasonBindFailed: the PodGroup has its nodes, and binding one of its pods failed; the scheduler retries with
	// exponential backoff.
	ReasonBindFailed = "BindFailed"
	// ReasonGangDegraded: fewer than minMember pods have been running for longer than the grace period, and the
	// missing pods cannot be placed.
	ReasonGangDegraded = "GangDegraded"
	// ReasonFailed: no pod is pending or running, and some have failed.
	ReasonFailed = "Failed"
)

// ConditionEvicted is the condition of a PodGroup from which the scheduler has evicted pods. Its reason is the cause of
// the last eviction; its message states the number of pods, the action, the time and the preemptor. It is True while the
// gang does not run because of the eviction, and False if the gang runs again or has lost only surplus pods.
const ConditionEvicted = "Evicted"

// Reasons of ConditionEvicted, besides ReasonGangDegraded. The events on evicted pods and on their PodGroup have the
// same reasons.
const (
	// EvictedByPreemption: for a job of the same queue.
	EvictedByPreemption = "Preempted"
	// EvictedByReclaim: for a job of another queue, which deserves the resources.
	EvictedByReclaim = "Reclaimed"
	// EvictedByOverrun: it has exceeded its limit. Its onOverrun is Evict, or it is Yield and a gang was planned to start.
	EvictedByOverrun = "ExecutionTimeExceeded"
)

// EventEvictionRefused is the reason of the event on a PodGroup with onOverrun Evict whose pods cannot be evicted at its limit.
const EventEvictionRefused = "EvictionRefused"

// EventNameContested is the reason of the event on a pod that another client has bound although the pod names this
// scheduler.
const EventNameContested = "NameContested"

// EventAmbiguousGroup is the reason of the event on a pod that names two gangs.
const EventAmbiguousGroup = "AmbiguousGroup"

// EventInvalidRunTime is the reason of the event on a pod whose annotation or label declares a run time that cannot be read.
const EventInvalidRunTime = "InvalidRunTime"

// EventInvalidUnavailableFrom is the reason of the event on a node whose AnnotationUnavailableFrom cannot be read.
const EventInvalidUnavailableFrom = "InvalidUnavailableFrom"

// EventEvictionEndsJob is the reason of the event on a Job (batch/v1) that fails because its pods were evicted.
const EventEvictionEndsJob = "EvictionEndsJob"

// Reasons that only the PodScheduled condition of a pod may have.
const (
	// ReasonGroupNotFound: the pod names a PodGroup that does not exist.
	ReasonGroupNotFound = "GroupNotFound"
	// ReasonUnsupportedPodGroupAPI: the pod names a group of another API, such as that of scheduler-plugins or Volcano,
	// and no PodGroup of this scheduler.
	ReasonUnsupportedPodGroupAPI = "UnsupportedPodGroupAPI"
	// ReasonGroupConflict: the pods with one AnnotationGroupKey do not agree about AnnotationMinMember.
	ReasonGroupConflict = "GroupConflict"
	// ReasonOwnerUnknown: the policy makes a gang of the pods of an object that the scheduler has not read.
	ReasonOwnerUnknown = "OwnerUnknown"
	// ReasonGangPending: the pod is not one of the minMember pods, and the gang has not started.
	ReasonGangPending = "GangPending"
	// ReasonOverShare: the queue or the job already has its share.
	ReasonOverShare = "OverShare"
)
