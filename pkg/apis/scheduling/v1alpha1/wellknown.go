package v1alpha1

// Labels and annotations that users put on pods.
const (
	// LabelPodGroup on a pod names its PodGroup, which is in the pod's namespace.
	LabelPodGroup = GroupName + "/pod-group"
	// AnnotationGroupName on a pod names its PodGroup as kube-batch and Volcano do. LabelPodGroup goes first.
	AnnotationGroupName = "scheduling.k8s.io/group-name"
	// AnnotationGroupMinMember on a pod without a PodGroup says how many pods of its controller start together.
	AnnotationGroupMinMember = "scheduling.k8s.io/group-min-member"
	// LabelQueue on a pod without a PodGroup names its queue. Without it the pod is in the default queue.
	LabelQueue = GroupName + "/queue"
)

// Annotations that the scheduler puts on the Binding, from where the API server merges them into the pod. For
// a bound pod they, and not what users write on it, say where it counts.
const (
	// AnnotationQueue names the queue that a bound pod counts in.
	AnnotationQueue = GroupName + "/queue"
	// AnnotationPodGroupUID is the UID of the PodGroup that a bound pod is a member of.
	AnnotationPodGroupUID = GroupName + "/pod-group-uid"
	// AnnotationEvictedFor names, on a pod that is evicted, the group for which it went, as namespace/name.
	AnnotationEvictedFor = GroupName + "/evicted-for"
)

// ConditionPodGroupScheduled is the condition of a PodGroup that is True when at least minMember of its pods
// have a node, and otherwise says in its reason and message why not.
const ConditionPodGroupScheduled = "PodGroupScheduled"

// Reasons of ConditionPodGroupScheduled. All but the first come with status False. The same words are the
// reasons of the PodScheduled condition of the group's waiting pods.
const (
	// ReasonScheduled: at least minMember pods have a node.
	ReasonScheduled = "Scheduled"
	// ReasonNotEnoughPods: fewer than minMember pods exist and may be scheduled (gated pods may not).
	ReasonNotEnoughPods = "NotEnoughPods"
	// ReasonNotEnoughResources: the nodes that suit the pods have too little room.
	ReasonNotEnoughResources = "NotEnoughResources"
	// ReasonUnschedulable: no node suits the pods, whatever its room.
	ReasonUnschedulable = "Unschedulable"
	// ReasonQueueNotFound: the group's queue does not exist.
	ReasonQueueNotFound = "QueueNotFound"
	// ReasonQueueFull: the group would exceed the capability of its queue.
	ReasonQueueFull = "QueueFull"
	// ReasonPreempting: the group has its nodes and waits for the pods there to end.
	ReasonPreempting = "Preempting"
	// ReasonClaimsNotReady: the group has its nodes, and waits for claims of its pods to be bound there, or one
	// was not, and it is tried again soon.
	ReasonClaimsNotReady = "ClaimsNotReady"
	// ReasonBindFailed: the group has its nodes, and the API server does not take the binding of one of its pods; it is
	// tried again with growing pauses.
	ReasonBindFailed = "BindFailed"
	// ReasonGangDegraded: fewer than minMember pods have been running for a while, and the missing ones find
	// no room.
	ReasonGangDegraded = "GangDegraded"
)

// Reasons that only the PodScheduled condition of a pod may have.
const (
	// ReasonGroupNotFound: the pod names a PodGroup that does not exist.
	ReasonGroupNotFound = "GroupNotFound"
	// ReasonGangPending: the pod is above its group's minMember, and the group has not started.
	ReasonGangPending = "GangPending"
	// ReasonOverShare: the queue or the job already has its share, and others are served first.
	ReasonOverShare = "OverShare"
)
