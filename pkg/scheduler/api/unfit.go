// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

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
	Reserved            // Detail is the namespace/name of a job that the resources are reserved for; empty if it is of another namespace
	WithoutResource     // Detail is the resource, of which the node has none
	DevicesInUse        // Detail says which devices other pods use
	NodeUnavailableSoon // Detail is the time from which the node is unavailable
	OutsideDomain       // Detail is the topology domain that the node is not in
	OtherUnfit
)

// Refusers that are not plugins. They take the place of Unfit.Plugin and Verdict.Plugin.
const (
	RefusedByModel       = "model"       // the job is incomplete: its PodGroup, Queue or claims are missing
	RefusedByResources   = "resources"   // the resources of a node do not suffice
	RefusedByReservation = "reservation" // the resources of a node are reserved
	RefusedByTopology    = "topology"    // a node is not in the topology domain of the gang
)

// UnfitReasons returns all reasons.
func UnfitReasons() []UnfitReason {
	list := make([]UnfitReason, 0, OtherUnfit+1)
	for r := Insufficient; r <= OtherUnfit; r++ {
		list = append(list, r)
	}
	return list
}

// String returns the name of the reason in metrics and logs.
func (r UnfitReason) String() string {
	switch r {
	case Insufficient:
		return "InsufficientResources"
	case InsufficientWithForeignPods:
		return "InsufficientResourcesWithForeignPods"
	case NodeNotReady:
		return "NodeNotReady"
	case NodeUnschedulable:
		return "NodeUnschedulable"
	case NodePressure:
		return "NodePressure"
	case NodeSelector:
		return "NodeSelector"
	case Taint:
		return "Taint"
	case HostPortTaken:
		return "HostPort"
	case PodAffinity:
		return "PodAffinity"
	case TopologySpread:
		return "TopologySpread"
	case VolumeUnfit:
		return "Volume"
	case ClaimUnfit:
		return "ResourceClaim"
	case Reserved:
		return "Reserved"
	case WithoutResource:
		return "WithoutResource"
	case DevicesInUse:
		return "DevicesInUse"
	case NodeUnavailableSoon:
		return "NodeUnavailableSoon"
	case OutsideDomain:
		return "OutsideDomain"
	}
	return "Other"
}

// Unfit says why a node cannot take a task. It is a refusal, not an error: shared between
// tasks and nodes, made once, compared by value.
type Unfit struct {
	Reason UnfitReason
	Detail string
	// Fixed refusals are about the node itself, although others for this reason may be about pods on it.
	Fixed bool
	// Plugin is the name of the plugin that refuses, or one of RefusedByResources and RefusedByReservation. The framework
	// sets it if the plugin has not.
	Plugin string
}

// Attributed keeps refusals with the names of plugins, one for each distinct value. The zero value is ready to use.
type Attributed struct{ known map[Unfit]*Unfit }

// To returns the refusal with the name of the plugin: u itself if it has that name, else an equal one that has.
func (a *Attributed) To(plugin string, u *Unfit) *Unfit {
	if u == nil || u.Plugin == plugin {
		return u
	}
	key := *u
	key.Plugin = plugin
	known := a.known[key]
	if known == nil {
		if a.known == nil {
			a.known = map[Unfit]*Unfit{}
		}
		known = &Unfit{Reason: u.Reason, Detail: u.Detail, Fixed: u.Fixed, Plugin: plugin}
		a.known[*known] = known
	}
	return known
}

// Clear drops what To has kept. What it has returned stays valid.
func (a *Attributed) Clear() { clear(a.known) }

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
		return ReservedFor(u.Detail)
	case WithoutResource:
		return "without " + u.Detail
	case NodeUnavailableSoon:
		return "node(s) were unavailable from " + u.Detail + " on, before the pod is over"
	case OutsideDomain:
		return "node(s) were not in " + u.Detail
	}
	return u.Detail
}

// ReservedFor returns the text for resources that are reserved for a job of the same namespace, or of another one if the
// name is empty.
func ReservedFor(job string) string {
	if job == "" {
		return "reserved for another PodGroup"
	}
	return "reserved for another PodGroup (" + job + ")"
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
	case Insufficient, InsufficientWithForeignPods, HostPortTaken, PodAffinity, TopologySpread, Reserved, DevicesInUse:
		return true
	}
	return false
}

func (u *Unfit) String() string { return fmt.Sprintf("%s(%s)", u.Reason, u.Detail) }
