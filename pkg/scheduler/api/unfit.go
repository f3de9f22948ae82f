package api

import "fmt"

// UnfitReason is why a node cannot take a task.
type UnfitReason int8

const (
	NoRoom UnfitReason = iota // Unfit.Detail is the resource
	NodeNotReady
	NodeUnschedulable
	NodePressure // Detail is the condition
	NodeSelector
	Taint // Detail is the taint
	HostPortTaken
	PodAffinity // Detail is upstream's reason
	TopologySpread
	VolumeUnfit
	ClaimUnfit
	SetAside
	OtherUnfit
)

// Unfit says why a node cannot take a task. It is a refusal, not an error: shared between
// tasks and nodes, made once, compared by value.
type Unfit struct {
	Reason UnfitReason
	Detail string
}

// Message words the refusal for people, as part of "N of M nodes: …".
func (u *Unfit) Message() string {
	switch u.Reason {
	case NoRoom:
		return "not enough " + u.Detail
	case NodeNotReady:
		return "not ready"
	case NodeUnschedulable:
		return "cordoned"
	case NodePressure:
		return "under " + u.Detail
	case NodeSelector:
		return "node selector or affinity"
	case Taint:
		return "taint " + u.Detail
	case HostPortTaken:
		return "host port taken"
	case SetAside:
		return "set aside for a job that goes first"
	}
	return u.Detail
}

// Resolvable tells whether the refusal is about what stands on the node rather than about the
// node itself: it may pass when pods end, and another node of the kind would help.
func (u *Unfit) Resolvable() bool {
	switch u.Reason {
	case NoRoom, HostPortTaken, PodAffinity, TopologySpread, SetAside:
		return true
	}
	return false
}

func (u *Unfit) String() string { return fmt.Sprintf("%d(%s)", u.Reason, u.Detail) }
