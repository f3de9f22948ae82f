// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package show renders PodGroups and Queues as tables.
package show

import (
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/batch-scheduler/batch-scheduler/internal/text"
	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// Width is how wide a terminal is taken to be.
const Width = 80

// Options select the columns of PodGroups and Queues.
type Options struct {
	Now time.Time
	// Wide adds a note to each row: of a PodGroup the message, of a queue its amounts.
	Wide bool
	// Namespaces adds a column with the namespace of PodGroups.
	Namespaces bool
	// Watch makes the columns wide enough for the usual values, because the rows of later changes use the same columns.
	Watch bool
	// Queues are the queues by name, for the positions of PodGroups; nil if they could not be read.
	Queues map[string]*v1alpha1.Queue
}

// DefaultQueue is the queue of PodGroups that name none, unless a flag of the scheduler sets another one.
const DefaultQueue = "default"

// Groups returns a table with a row for each PodGroup.
func Groups(list []v1alpha1.PodGroup, o Options) text.Table {
	t := text.Table{
		Titles: []string{"NAME", "QUEUE", "PHASE", "RUN", "PEND", "MIN", "REASON", "AGE"},
		Right:  []bool{false, false, false, true, true, true, false, false},
	}
	for i := range list {
		g := &list[i]
		row := text.Row{Cells: []string{
			g.Name, dash(g.Spec.Queue), dash(string(g.Status.Phase)),
			strconv.Itoa(int(g.Status.Running)), strconv.Itoa(int(g.Status.Pending)), strconv.Itoa(int(g.Spec.MinMember)),
			"-", duration.HumanDuration(o.Now.Sub(g.CreationTimestamp.Time)),
		}}
		if c := scheduledCondition(g); c != nil {
			row.Cells[6] = c.Reason
			if o.Wide {
				row.Note = c.Message + positionNote(g, o.Queues) + evictedNote(g)
			}
		}
		if o.Namespaces {
			row.Cells = append([]string{g.Namespace}, row.Cells...)
		}
		t.Rows = append(t.Rows, row)
	}
	if o.Namespaces {
		t.Titles, t.Right = append([]string{"NAMESPACE"}, t.Titles...), append([]bool{false}, t.Right...)
	}
	return o.widened(t)
}

// Queues returns a table with a row for each Queue and the number of PodGroups by phase.
func Queues(list []v1alpha1.Queue, o Options) text.Table {
	t := text.Table{
		Titles: []string{"NAME", "WEIGHT", "PEND", "RUN", "UNKNOWN", "FINISHED", "FAILED", "RECLAIMABLE", "AGE"},
		Right:  []bool{false, true, true, true, true, true, true, false, false},
	}
	for i := range list {
		q := &list[i]
		groups := q.Status.Groups
		row := text.Row{Cells: []string{
			q.Name, strconv.Itoa(int(q.Spec.Weight)), strconv.Itoa(int(groups.Pending)), strconv.Itoa(int(groups.Running)),
			strconv.Itoa(int(groups.Unknown)), strconv.Itoa(int(groups.Finished)), strconv.Itoa(int(groups.Failed)),
			strconv.FormatBool(q.Spec.Reclaimable == nil || *q.Spec.Reclaimable),
			duration.HumanDuration(o.Now.Sub(q.CreationTimestamp.Time)),
		}}
		if o.Wide {
			row.Note = Shares(q)
		}
		t.Rows = append(t.Rows, row)
	}
	return o.widened(t)
}

// widened sets the widths of a table whose rows change, so that the usual values fit.
func (o Options) widened(t text.Table) text.Table {
	if !o.Watch {
		return t
	}
	usual := map[string]int{
		"NAMESPACE": 12, "NAME": 12, "QUEUE": 10, "PHASE": len(v1alpha1.PodGroupFinished), "REASON": len(v1alpha1.ReasonNotEnoughResources), "AGE": 4,
	}
	for _, title := range t.Titles {
		t.Least = append(t.Least, usual[title])
	}
	return t
}

func scheduledCondition(g *v1alpha1.PodGroup) *metav1.Condition {
	return meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionPodGroupScheduled)
}

// positionNote describes where a PodGroup is in the order of its queue; empty if that is not known.
func positionNote(g *v1alpha1.PodGroup, queues map[string]*v1alpha1.Queue) string {
	if position := Position(g, queues[QueueName(g)]); position != "" {
		return "; position " + position
	}
	return ""
}

// QueueName returns the name of the queue of a PodGroup.
func QueueName(g *v1alpha1.PodGroup) string {
	if g.Spec.Queue == "" {
		return DefaultQueue
	}
	return g.Spec.Queue
}

// evictedNote describes the last eviction of a PodGroup; empty if there was none.
func evictedNote(g *v1alpha1.PodGroup) string {
	c := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionEvicted)
	if c == nil {
		return ""
	}
	return "; " + c.Reason + ": " + c.Message
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
