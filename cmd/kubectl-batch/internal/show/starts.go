// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package show

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/batch-scheduler/batch-scheduler/internal/text"
	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// Starts returns a table with the run times and starts of PodGroups.
func Starts(list []Group, o Options) text.Table {
	t := text.Table{Titles: []string{"NAME", "QUEUE", "PHASE", "LIMIT", "START", "LATEST", "REASON"}, Right: make([]bool, 7)}
	for i := range list {
		g := &list[i]
		start, latest := g.Status.EstimatedStartTime, g.Status.LatestStartTime
		if g.Status.StartTime != nil {
			start, latest = g.Status.StartTime, nil
		}
		row := text.Row{Cells: []string{
			g.Name, dash(g.Spec.Queue), dash(string(g.Status.Phase)), limit(g.runTime(o.Queues)), relative(start, o.Now), relative(latest, o.Now), "-",
		}}
		if c := scheduledCondition(&g.PodGroup); c != nil {
			row.Cells[6] = c.Reason
			if o.Wide {
				row.Note = startNote(&g.PodGroup) + c.Message
			}
		}
		if o.Namespaces {
			row.Cells = slices.Insert(row.Cells, 0, g.Namespace)
		}
		t.Rows = append(t.Rows, row)
	}
	if o.Namespaces {
		t.Titles, t.Right = slices.Insert(t.Titles, 0, "NAMESPACE"), slices.Insert(t.Right, 0, false)
	}
	return o.widened(t)
}

// runTime returns what the PodGroup declares, and the limit of its queue if it declares none.
func (g *Group) runTime(queues map[string]*v1alpha1.Queue) api.RunTime {
	group := api.Group{PodGroup: &g.PodGroup}
	annotations, labels := g.Annotations, g.Labels
	if g.Raw != nil {
		annotations, labels = g.Raw.GetAnnotations(), g.Raw.GetLabels()
	}
	group.ReadRunTime(annotations, labels)
	run := group.RunTime
	if q := queues[QueueName(&g.PodGroup)]; q != nil && run.Maximum == 0 {
		run.Maximum, _ = api.ExecutionTimes(&q.Spec)
	}
	return run
}

func limit(run api.RunTime) string {
	if run.Maximum == 0 {
		return "-"
	}
	return api.FormatRun(run.Maximum)
}

// relative words a time as seen from now.
func relative(t *metav1.Time, now time.Time) string {
	switch {
	case t == nil:
		return "-"
	case t.After(now):
		return "in " + duration.HumanDuration(t.Sub(now))
	}
	return duration.HumanDuration(now.Sub(t.Time)) + " ago"
}

// startNote has the times that the columns have relative to now.
func startNote(g *v1alpha1.PodGroup) string {
	note := ""
	for _, of := range []struct {
		words string
		at    *metav1.Time
	}{{"started", g.Status.StartTime}, {"starts at about", g.Status.EstimatedStartTime}, {"at the latest at", g.Status.LatestStartTime}} {
		if of.at != nil {
			note += of.words + " " + of.at.UTC().Format(time.RFC3339) + "; "
		}
	}
	return note
}
