// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// Verdict is why tasks of a job are pending: one primary reason with its numbers, kept as data. Which
// fields mean something depends on the reason. Message words it.
type Verdict struct {
	// Reason is one of the reasons of package v1alpha1.
	Reason string
	// Plugin is the name of the plugin that refuses the job, or RefusedByModel; empty if only nodes refuse its tasks (see
	// Nodes) and if it waits for pods to end. The framework sets it.
	Plugin string

	// NotEnoughPods: of Need pods that must start together Have exist; Gated more wait for a
	// scheduling gate. ExceedsClusterCapacity: of Need pods that must run together at most Have fit.
	Need, Have, Gated int32
	// SubGroup is the subgroup that the verdict is about; NotEnoughPods: it says what the subgroup lacks. Empty for most jobs.
	SubGroup string

	// NotEnoughResources, ExceedsClusterCapacity and Unschedulable: Missing more pods that ask for Request each must
	// start together; Startable of them would fit now. Nodes is about one of these pods.
	Missing, Startable int32
	Request            Resource
	Nodes              NodeCounts
	// Devices words what the claims of each of these pods request.
	Devices string
	// Others are the pods with other signatures that must start together with these.
	Others OtherPods

	// Domain is not nil if the gang must be in one topology domain: the one where the most pods could start now.
	Domain *DomainCount

	// Name is the group or queue that was not found, or the queue that is full.
	Name string

	// Group is how the pods name their group. UnsupportedPodGroupAPI: a group of another API. GroupNotFound: nil if a
	// pod names it by the label. NotSupported: the group itself.
	Group *GroupReference

	// QueueFull and OverShare: a claim of Asked would lift dimension Dimension of the queue from Held above Limit, which
	// is the capability or what the queue deserves. ExceedsQueueCapability: Asked alone is above Limit.
	Dimension          int // OverShare: negative if it is not known
	Limit, Held, Asked int64
	// OnePod: a pod alone exceeds what it may request: it requests Asked of Dimension, and the capability of the queue is
	// Limit, or for ExceedsClusterCapacity what the largest suitable node has.
	OnePod bool
	// Expected: the gang would fit, but not what spec.minResources requests besides its pods. NotEnoughResources: Asked of
	// Dimension, of which nodes have Held available.
	Expected bool
	// Borrowed: OverShare applies because the job was evicted from what its queue had borrowed, and not because the queue
	// cannot borrow.
	Borrowed bool
	// Yielding: it applies because another job of the queue does so, which was evicted for that reason and waits for
	// resources. Borrowed is then true.
	Yielding bool

	// Preempting: Victims pods are being evicted for the job; by Until the last of them should
	// have ended, zero if the API server has not shown it yet.
	Victims int32
	Until   time.Time
	// Awaited are the victims that have not ended.
	Awaited AwaitedPods

	// Reservation is not nil if the gang has been pending so long that resources are reserved for it.
	Reservation *StarvationReservation

	// Start is when the job is planned to start. The status of its PodGroup shows it.
	Start StartEstimate
	// Backfill is how the job could start now although resources are reserved for others.
	Backfill BackfillAdvice

	// Detail words the rare rest.
	Detail string
}

// StarvationReservation is what is reserved for a gang that has been pending for longer than After: resources of so many
// Nodes, where Startable of the Need pods would fit now.
type StarvationReservation struct {
	After           time.Duration
	Nodes           int
	Domain          DomainName // that has these nodes, if the gang must be in one domain; else it is empty
	Startable, Need int32
	// Awaited are the pods on nodes where the gang does not fit yet; some of them must end.
	Awaited AwaitedPods
	// Planned: it was reserved because the gang is one of those whose start is looked for, and not because of After.
	Planned bool
	// Unbounded are the pods there that declare no run time, if starts are planned.
	Unbounded AwaitedPods
}

// maxAwaited is how many pods a message names.
const maxAwaited = 3

// AwaitedPods are the pods that a job waits for: the names of the first ones in its namespace, and how many there are.
// Users learn nothing else about pods of other namespaces.
type AwaitedPods struct {
	Names []string // of pods in the namespace of the job
	Count int
}

// Add adds a pod that j waits for.
func (a *AwaitedPods) Add(t *TaskInfo, j *JobInfo) {
	if t.Pod.Namespace == j.Namespace && len(a.Names) < maxAwaited {
		a.Names = append(a.Names, t.Key)
	}
	a.Count++
}

// Full reports whether the message names no further pod, so that the order of further ones does not matter.
func (a *AwaitedPods) Full() bool { return len(a.Names) == maxAwaited }

// message is empty if no pod has a name that the owner of the job may know.
func (a *AwaitedPods) message() string {
	text := strings.Join(a.Names, ", ")
	if more := a.Count - len(a.Names); more > 0 && text != "" {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func (f *StarvationReservation) message() string {
	if f == nil {
		return ""
	}
	reason := fmt.Sprintf("because it has been pending for more than %s", f.After)
	if f.Planned {
		reason = "because it is the first of its queue that does not fit"
	}
	text := fmt.Sprintf("; reserved: %s, %s; %d of %d pods could start there now",
		nodesOf(f.Nodes, f.Domain), reason, f.Startable, f.Need)
	if awaited := f.Awaited.message(); awaited != "" {
		text += "; waiting for resources of pods there: " + awaited
	}
	return text + f.Unbounded.unbounded()
}

// DeviceDemand is what the claims of a task request, in words, and the node that has the fewest devices too few, if it
// was asked for and there is one.
type DeviceDemand struct {
	Text    string
	Nearest *NearestNode
}

// Plugins returns the names of the plugins that refuse the job or its tasks, sorted.
func (v *Verdict) Plugins() []string {
	var names []string
	if v.Plugin != "" {
		names = append(names, v.Plugin)
	}
	for i := range v.Nodes.Unfit {
		if name := v.Nodes.Unfit[i].Plugin; name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// NearestDomain returns the topology domain that the message is about: where resources are reserved for the gang, else where it
// is planned to start, else Domain; empty if there is none.
func (v *Verdict) NearestDomain() DomainName {
	switch {
	case v.Reservation != nil && v.Reservation.Domain != "":
		return v.Reservation.Domain
	case v.Start.Domain != "":
		return v.Start.Domain
	case v.Domain != nil:
		return v.Domain.Level.Domain(v.Domain.Path)
	}
	return ""
}

// NearestMessage words Nodes.Nearest, if there is one, as a suffix of the message about the counts of nodes.
func (v *Verdict) NearestMessage(dims *Dimensions) string {
	if v.Nodes.Nearest == nil {
		return ""
	}
	missing := v.Nodes.Nearest.Devices
	if missing == "" {
		missing = dims.Format(v.Nodes.Nearest.Shortfall)
	}
	return fmt.Sprintf("; nearest: node %s lacks %s", v.Nodes.Nearest.Node, missing)
}

// Message words the verdict: what is missing, then the numbers behind it.
func (v *Verdict) Message(dims *Dimensions) string {
	return v.message(dims) + v.Reservation.message() + v.Start.message() + v.Backfill.message()
}

func (v *Verdict) message(dims *Dimensions) string {
	switch v.Reason {
	case v1alpha1.ReasonNotEnoughPods:
		text := fmt.Sprintf("%d of %d pods that must start together exist", v.Have, v.Need)
		switch {
		case v.SubGroup != "" && v.Have >= v.Need:
			text = v.SubGroup
		case v.SubGroup != "":
			text += "; " + v.SubGroup
		}
		if v.Gated > 0 {
			text += fmt.Sprintf("; %d gated", v.Gated)
		}
		return text + v.detail()
	case v1alpha1.ReasonNotEnoughResources, v1alpha1.ReasonExceedsClusterCapacity, v1alpha1.ReasonUnschedulable:
		switch {
		case v.Expected:
			return fmt.Sprintf("the gang fits, but not the pods that are expected: spec.minResources requests %s for them, of which suitable nodes have %s available",
				dims.FormatOne(v.Dimension, v.Asked), amountText(v.Dimension, v.Held))
		case v.Missing == 0:
			return v.Detail
		}
		return v.inSubGroup() + v.needs(dims) + "; " + v.Nodes.message() + v.wouldNotFit(dims) + v.detail()
	case v1alpha1.ReasonQueueFull:
		return fmt.Sprintf("queue %s is full: capability %s, allocated %s, needs %s", v.Name,
			dims.FormatOne(v.Dimension, v.Limit), amountText(v.Dimension, v.Held), amountText(v.Dimension, v.Asked)) + v.detail()
	case v1alpha1.ReasonExceedsQueueCapability:
		verb := "needs"
		if v.OnePod {
			verb = "a pod requests"
		}
		return fmt.Sprintf("exceeds the queue's capability: %s %s, and queue %s has a capability of %s", verb,
			dims.FormatOne(v.Dimension, v.Asked), v.Name, amountText(v.Dimension, v.Limit)) + v.detail()
	case v1alpha1.ReasonOverShare:
		return v.overShare(dims)
	case v1alpha1.ReasonQueueNotFound:
		text := fmt.Sprintf("queue %q does not exist", v.Name)
		if v.Detail != "" {
			text += " (" + v.Detail + ")"
		}
		return text + "; create it or name another queue"
	case v1alpha1.ReasonGroupNotFound, v1alpha1.ReasonUnsupportedPodGroupAPI, v1alpha1.ReasonNotSupported:
		return v.groupMessage()
	case v1alpha1.ReasonPreempting:
		if v.Victims > 0 {
			return v.preempting()
		}
	}
	return v.Detail
}

// inSubGroup is a prefix of messages about pods of a subgroup.
func (v *Verdict) inSubGroup() string {
	if v.SubGroup == "" {
		return ""
	}
	return "subgroup " + v.SubGroup + ": "
}

func (v *Verdict) overShare(dims *Dimensions) string {
	text := fmt.Sprintf("queue %s cannot borrow (spec.reclaimable is false)", v.Name)
	switch {
	case v.Yielding:
		text = fmt.Sprintf("queue %s does not borrow while another of its gangs, which was evicted and may not borrow, waits for terminating pods", v.Name)
	case v.Borrowed:
		text = fmt.Sprintf("evicted because queue %s had borrowed resources that other queues deserve; starts again only within what the queue deserves", v.Name)
	}
	if v.Dimension >= 0 {
		text += fmt.Sprintf(": deserved %s, allocated %s, needs %s",
			dims.FormatOne(v.Dimension, v.Limit), amountText(v.Dimension, v.Held), amountText(v.Dimension, v.Asked))
	}
	return text + v.detail()
}

// groupMessage words a verdict about the group that the pods name.
func (v *Verdict) groupMessage() string {
	switch {
	case v.Group == nil && v.Detail != "": // of a tree of groups
		return v.Detail
	case v.Group == nil:
		return fmt.Sprintf("PodGroup %q does not exist in the namespace of the pod; create it or correct the label %s", v.Name, v1alpha1.LabelPodGroup)
	case v.Group.Name == "":
		return fmt.Sprintf("the pod has no %s, in which the pod-grouper of %s names its group", v.Group.Field, v.Group.API)
	case v.Reason == v1alpha1.ReasonNotSupported:
		return fmt.Sprintf("group %q of %s asks for what this scheduler does not support: %s", v.Group.Name, v.Group.API, v.Detail)
	case v.Group.API != "" && v.Reason == v1alpha1.ReasonGroupNotFound:
		return fmt.Sprintf("PodGroup %q of %s does not exist in the namespace of the pod; create it or correct the %s", v.Group.Name, v.Group.API, v.Group.Field)
	case v.Group.API == "":
		return fmt.Sprintf("PodGroup %q does not exist in the namespace of the pod; create it or correct the %s (PodGroups of kube-batch and Volcano do not count)",
			v.Group.Name, v.Group.Field)
	}
	return fmt.Sprintf("the %s names group %q of %s, which this scheduler does not support; create a PodGroup of %s and name it with the label %s",
		v.Group.Field, v.Group.Name, v.Group.API, v1alpha1.GroupName, v1alpha1.LabelPodGroup)
}

// wouldNotFit words why the pods can never start.
func (v *Verdict) wouldNotFit(dims *Dimensions) string {
	if v.Reason != v1alpha1.ReasonExceedsClusterCapacity {
		return ""
	}
	text := "; would not fit the empty nodes"
	if v.Domain != nil && v.Domain.Level.Topology != "" {
		text = v.Domain.wouldNotFit()
	}
	if v.Need > 1 {
		text += fmt.Sprintf(" (at most %d of %d pods)", v.Have, v.Need)
	}
	if v.OnePod {
		text += fmt.Sprintf(": a pod requests %s, the largest suitable node has %s", dims.FormatOne(v.Dimension, v.Asked), amountText(v.Dimension, v.Limit))
	}
	return text
}

func (v *Verdict) preempting() string {
	text := fmt.Sprintf("waiting for %d evicted %s to terminate", v.Victims, plural(int(v.Victims), "pod", "pods"))
	if !v.Until.IsZero() {
		text += ", expected by " + v.Until.UTC().Format(time.RFC3339)
	}
	if awaited := v.Awaited.message(); awaited != "" {
		text += ": " + awaited
	}
	return text
}

func (v *Verdict) detail() string {
	if v.Detail == "" {
		return ""
	}
	return "; " + v.Detail
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
