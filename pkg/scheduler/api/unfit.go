package api

import "fmt"

// UnfitReason is why a node cannot take a task.
type UnfitReason int8

const (
	Insufficient                UnfitReason = iota // Unfit.Detail is the resource
	InsufficientWithForeignPods                    // the same, and the task would fit without pods that belong to no queue
	NodeNotReady
	NodeUnschedulable
	NodePressure // Detail is the condition
	NodeSelector // Detail is the requirement, if it is known
	Taint        // Detail is the taint
	HostPortTaken
	PodAffinity // Detail is upstream's reason
	TopologySpread
	VolumeUnfit
	ClaimUnfit
	Reserved
	OtherUnfit
)

// Unfit says why a node cannot take a task. It is a refusal, not an error: shared between
// tasks and nodes, made once, compared by value.
type Unfit struct {
	Reason UnfitReason
	Detail string
	// Fixed refusals are about the node itself, although others for this reason may be about pods on it.
	Fixed bool
}

// Message words the refusal, as part of "N of M nodes: …".
func (u *Unfit) Message() string {
	switch u.Reason {
	case Insufficient:
		return "not enough " + u.Detail
	case InsufficientWithForeignPods:
		return "not enough " + u.Detail + " beside pods of other schedulers"
	case NodeNotReady:
		return "not ready"
	case NodeUnschedulable:
		return "cordoned"
	case NodePressure:
		return "under " + u.Detail
	case NodeSelector:
		if u.Detail == "" {
			return "node selector or affinity"
		}
	case Taint:
		return "taint " + u.Detail
	case HostPortTaken:
		return "host port taken"
	case Reserved:
		return "set aside for a job that goes first"
	}
	return u.Detail
}

// Resolvable reports whether the refusal is about pods on the node rather than about the
// node itself: it may end when pods end, and another node of the kind would help.
func (u *Unfit) Resolvable() bool {
	if u.Fixed {
		return false
	}
	switch u.Reason {
	case Insufficient, InsufficientWithForeignPods, HostPortTaken, PodAffinity, TopologySpread, Reserved:
		return true
	}
	return false
}

func (u *Unfit) String() string { return fmt.Sprintf("%d(%s)", u.Reason, u.Detail) }
