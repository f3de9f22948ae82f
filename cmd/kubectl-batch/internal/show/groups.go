// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package show renders PodGroups and Queues as tables.
package show

import (
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/batch-scheduler/batch-scheduler/internal/text"
	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
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
	// Sources adds a column with the source of PodGroups.
	Sources bool
	// Queues are the queues by name, for the positions of PodGroups; nil if they could not be read.
	Queues map[string]*v1alpha1.Queue
}

// DefaultQueue is the queue of PodGroups that name none, unless a flag of the scheduler sets another one.
const DefaultQueue = "default"

// Group is a PodGroup of any API.
type Group struct {
	v1alpha1.PodGroup
	Source api.GroupSource
	Raw    *unstructured.Unstructured // the object of another API; nil for a PodGroup of this scheduler
}

// Document returns the object as the API server has it.
func (g *Group) Document() runtime.Object {
	if g.Raw != nil {
		return g.Raw
	}
	return &g.PodGroup
}

// SeveralSources reports whether the PodGroups are those of several APIs.
func SeveralSources(list []Group) bool {
	return slices.ContainsFunc(list, func(g Group) bool { return g.Source != list[0].Source })
}

// Groups returns a table with a row for each PodGroup.
func Groups(list []Group, o Options) text.Table {
	t := text.Table{
		Titles: []string{"NAME", "QUEUE", "PHASE", "RUN", "PEND", "MIN", "REASON", "AGE"},
		Right:  []bool{false, false, false, true, true, true, false, false},
	}
	for i := range list {
		g := &list[i]
		row := text.Row{Cells: []string{
			g.Name, dash(g.Spec.Queue), dash(string(g.Status.Phase)), g.running(), g.pending(), strconv.Itoa(int(g.Spec.MinMember)),
			"-", duration.HumanDuration(o.Now.Sub(g.CreationTimestamp.Time)),
		}}
		if c := scheduledCondition(&g.PodGroup); c != nil {
			row.Cells[6] = c.Reason
			if o.Wide {
				row.Note = c.Message + positionNote(&g.PodGroup, o.Queues) + evictedNote(&g.PodGroup)
			}
		}
		if o.Sources {
			row.Cells = slices.Insert(row.Cells, 1, g.Source.String())
		}
		if o.Namespaces {
			row.Cells = slices.Insert(row.Cells, 0, g.Namespace)
		}
		t.Rows = append(t.Rows, row)
	}
	if o.Sources {
		t.Titles, t.Right = slices.Insert(t.Titles, 1, "SOURCE"), slices.Insert(t.Right, 1, false)
	}
	if o.Namespaces {
		t.Titles, t.Right = slices.Insert(t.Titles, 0, "NAMESPACE"), slices.Insert(t.Right, 0, false)
	}
	return o.widened(t)
}

// running returns how many pods run, as far as the API has a field for it.
func (g *Group) running() string {
	if !g.Source.ShowsPhase() {
		return "-"
	}
	return strconv.Itoa(int(g.Status.Running))
}

// pending returns how many pods are pending, as far as the API has a field for it.
func (g *Group) pending() string {
	if g.Source != api.SourceOwn {
		return "-"
	}
	return strconv.Itoa(int(g.Status.Pending))
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
		"SOURCE": len(api.SourceSchedulerPlugins),
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
