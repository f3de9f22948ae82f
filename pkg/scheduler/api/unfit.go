package api

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
)

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

// Message returns the text for one group of nodes in "0/M nodes are available: N …". It uses the words of
// kube-scheduler where that has the same reason.
func (u *Unfit) Message() string {
	switch u.Reason {
	case Insufficient:
		return "Insufficient " + u.Detail
	case InsufficientWithForeignPods:
		return "Insufficient " + u.Detail + " because of pods of other schedulers"
	case NodeNotReady:
		return "node(s) were not ready"
	case NodeUnschedulable:
		return "node(s) were unschedulable"
	case NodePressure:
		return "node(s) had " + pressureText(u.Detail)
	case NodeSelector:
		text := "node(s) didn't match Pod's node affinity/selector"
		if u.Detail != "" {
			text += " (" + u.Detail + ")"
		}
		return text
	case Taint:
		return "node(s) had untolerated taint {" + u.Detail + "}"
	case HostPortTaken:
		return "node(s) didn't have free ports for the requested pod ports"
	case Reserved:
		return "reserved for another PodGroup"
	}
	return u.Detail
}

// pressureText returns the words of kube-scheduler for a node condition.
func pressureText(condition string) string {
	switch v1.NodeConditionType(condition) {
	case v1.NodeMemoryPressure:
		return "memory pressure"
	case v1.NodeDiskPressure:
		return "disk pressure"
	case v1.NodePIDPressure:
		return "pid pressure"
	}
	return condition
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
