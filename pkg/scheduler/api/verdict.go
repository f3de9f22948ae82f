package api

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// Verdict is why tasks of a job wait: one primary reason with its numbers, kept as data. Which
// fields mean something depends on the reason. Message words it.
type Verdict struct {
	// Reason is one of the reasons of package v1alpha1.
	Reason string

	// NotEnoughPods: of Need pods that must start together Have exist; Gated more wait for a
	// scheduling gate.
	Need, Have, Gated int32

	// NotEnoughResources and Unschedulable: Missing more pods that ask for Request each must
	// start together; Startable of them would find room now.
	Missing, Startable int32
	Request            Resource
	Nodes              NodeCounts

	// Name is the group or queue that was not found, or the queue that is full.
	Name string

	// QueueFull: a claim of Asked would lift dimension Dimension of the queue from Held above
	// Limit.
	Dimension          int
	Limit, Held, Asked int64

	// Preempting: Victims pods are on their way out for the job; by Until the last of them should
	// be gone, zero if the API server has not said yet.
	Victims int32
	Until   time.Time

	// Reservation is not nil if the gang has waited so long that room is set aside for it.
	Reservation *StarvationReservation

	// Detail words the rare rest.
	Detail string
}

// StarvationReservation says what is set aside for a gang that has waited for longer than After: room on so many
// Nodes, where Startable of the Need pods would find it now.
type StarvationReservation struct {
	After           time.Duration
	Nodes           int
	Startable, Need int32
}

func (f *StarvationReservation) message() string {
	if f == nil {
		return ""
	}
	return fmt.Sprintf("; reserved: %d %s, because it has been pending for more than %s; %d of %d pods could start there now",
		f.Nodes, plural(f.Nodes, "node", "nodes"), f.After, f.Startable, f.Need)
}

// NodeCounts says how many nodes of the cluster have room for one task, and why the others
// cannot take it. Each node is counted once, so the numbers add up to Total.
type NodeCounts struct {
	Total, Available int
	Unfit            []UnfitCount // most frequent first, then by message

	// Nearest is not nil if no node has room, and some would have it were less taken there.
	Nearest *NearestNode
}

// NearestNode is the node that comes nearest to having room for a task, and what is missing there: in relation
// to what the task asks for it is the least.
type NearestNode struct {
	Node      string
	Shortfall Resource
}

// NearestMessage words the near miss, if there is one, to be put behind a message that tells how many nodes have no room.
func (v *Verdict) NearestMessage(dims *Dimensions) string {
	if v.Nodes.Nearest == nil {
		return ""
	}
	return fmt.Sprintf("; nearest: node %s lacks %s", v.Nodes.Nearest.Node, dims.Format(v.Nodes.Nearest.Shortfall))
}

// UnfitCount is a refusal with the number of nodes that give it.
type UnfitCount struct {
	Unfit
	Count int
}

// Count adds one node: unfit is nil if it has room.
func (c *NodeCounts) Count(unfit *Unfit) {
	c.Total++
	if unfit == nil {
		c.Available++
		return
	}
	for i := range c.Unfit {
		if c.Unfit[i].Unfit == *unfit {
			c.Unfit[i].Count++
			return
		}
	}
	c.Unfit = append(c.Unfit, UnfitCount{*unfit, 1})
}

// Sort brings the refusals into the order in which they are told.
func (c *NodeCounts) Sort() {
	slices.SortFunc(c.Unfit, func(a, b UnfitCount) int {
		if a.Count != b.Count {
			return b.Count - a.Count
		}
		return strings.Compare(a.Message(), b.Message())
	})
}

// Suitable tells whether some node would do if less stood on it.
func (c *NodeCounts) Suitable() bool {
	if c.Available > 0 {
		return true
	}
	for i := range c.Unfit {
		if c.Unfit[i].Resolvable() {
			return true
		}
	}
	return false
}

// maxUnfitReported bounds the length of messages; the rest is summed up.
const maxUnfitReported = 6

func (c *NodeCounts) message() string {
	if c.Total == 0 {
		return "no nodes available to schedule pods"
	}
	told := make([]string, 0, maxUnfitReported+1)
	rest := 0
	for i := range c.Unfit {
		if i < maxUnfitReported {
			told = append(told, fmt.Sprintf("%d %s", c.Unfit[i].Count, c.Unfit[i].Message()))
		} else {
			rest += c.Unfit[i].Count
		}
	}
	if rest > 0 {
		told = append(told, fmt.Sprintf("%d for other reasons", rest))
	}
	text := fmt.Sprintf("%d/%d nodes are available", c.Available, c.Total)
	if len(told) > 0 {
		text += ": " + strings.Join(told, ", ")
	}
	return text
}

// Message words the verdict: what is missing, then the numbers behind it.
func (v *Verdict) Message(dims *Dimensions) string { return v.message(dims) + v.Reservation.message() }

func (v *Verdict) message(dims *Dimensions) string {
	switch v.Reason {
	case v1alpha1.ReasonNotEnoughPods:
		text := fmt.Sprintf("%d of %d pods that must start together exist", v.Have, v.Need)
		if v.Gated > 0 {
			text += fmt.Sprintf("; %d gated", v.Gated)
		}
		return text + v.detail()
	case v1alpha1.ReasonNotEnoughResources, v1alpha1.ReasonUnschedulable:
		if v.Missing == 0 {
			return v.Detail
		}
		text := fmt.Sprintf("needs %d more %s of %s", v.Missing, plural(int(v.Missing), "pod", "pods"), dims.Format(v.Request))
		if v.Startable > 0 {
			text += fmt.Sprintf(", %d of them could start now", v.Startable)
		}
		return text + "; " + v.Nodes.message() + v.detail()
	case v1alpha1.ReasonQueueFull:
		return fmt.Sprintf("queue %s is full: capability %s, allocated %s, needs %s", v.Name,
			dims.FormatOne(v.Dimension, v.Limit), amountText(v.Dimension, v.Held), amountText(v.Dimension, v.Asked)) + v.detail()
	case v1alpha1.ReasonQueueNotFound:
		return fmt.Sprintf("queue %q does not exist; create it or name another queue", v.Name)
	case v1alpha1.ReasonGroupNotFound:
		return fmt.Sprintf("PodGroup %q does not exist in the namespace of the pod; create it or correct the label %s", v.Name, v1alpha1.LabelPodGroup)
	case v1alpha1.ReasonPreempting:
		if v.Victims > 0 {
			return v.preempting()
		}
	}
	return v.Detail
}

func (v *Verdict) preempting() string {
	text := fmt.Sprintf("waiting for %d evicted %s to terminate", v.Victims, plural(int(v.Victims), "pod", "pods"))
	if !v.Until.IsZero() {
		text += ", expected by " + v.Until.UTC().Format(time.RFC3339)
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

// Admissible returns why no task of the job can be placed whatever its plugins say: its group or
// queue does not exist, its namespace is being deleted, or it is put off. Nil if it can.
func (c *Cluster) Admissible(j *JobInfo) *Verdict {
	switch {
	case j.GroupName != "" && j.Group == nil:
		return &Verdict{Reason: v1alpha1.ReasonGroupNotFound, Name: j.GroupName[len(j.Namespace)+1:]}
	case !j.QueueFound():
		return &Verdict{Reason: v1alpha1.ReasonQueueNotFound, Name: string(j.QueueName)}
	case c.Terminating(j.Namespace):
		return &Verdict{Reason: v1alpha1.ReasonNotEnoughPods, Need: j.MinMember, Have: j.ReadyCount(), Detail: "namespace " + j.Namespace + " is being deleted"}
	case j.backoff != "":
		return &Verdict{Reason: v1alpha1.ReasonClaimsNotReady, Detail: j.backoff}
	}
	return nil
}
