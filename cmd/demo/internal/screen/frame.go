// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package screen words scenes for people: as a frame that is drawn again and again on a
// terminal, or as lines about what has changed.
package screen

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/cmd/demo/internal/snapshot"
	"github.com/batch-scheduler/batch-scheduler/internal/text"
	"github.com/batch-scheduler/batch-scheduler/test/capacity"
)

// Size is that of a terminal, in characters.
type Size struct {
	Width, Height int
}

// Frame draws the snapshot within the size. If it does not fit, Frame shortens first the messages
// of pending PodGroups, then the PodGroups that have ended, and then cuts the frame.
func Frame(s snapshot.Snapshot, elapsed time.Duration, size Size) []string {
	var lines []string
	for _, level := range []struct {
		noteLines int
		fold      bool
	}{{4, false}, {3, false}, {2, false}, {1, false}, {1, true}, {0, true}} {
		lines = frame(s, elapsed, size.Width, level.noteLines, level.fold)
		if len(lines) <= size.Height {
			return lines
		}
	}
	return lines[:max(0, size.Height)]
}

func frame(s snapshot.Snapshot, elapsed time.Duration, width, noteLines int, fold bool) []string {
	lines := []string{text.Cut(headline(s, elapsed), width)}
	if noteLines > 0 {
		lines = append(lines, "")
	}
	lines = append(lines, rows(groups(s.Groups, fold), width, noteLines)...)
	if len(s.Work) > 0 {
		lines = append(lines, "")
		lines = append(lines, rows(work(s.Work), width, noteLines)...)
	}
	lines = append(lines, "")
	return append(lines, rows(queues(s.Queues), width, noteLines)...)
}

// headline sums up the nodes, in the resources of which pods hold any.
func headline(s snapshot.Snapshot, elapsed time.Duration) string {
	used, total := corev1.ResourceList{}, corev1.ResourceList{}
	for _, n := range s.Nodes {
		capacity.Add(used, n.Used)
		capacity.Add(total, n.Allocatable)
	}
	parts := []string{clock(elapsed), fmt.Sprintf("%d nodes", len(s.Nodes))}
	for _, name := range shared(total) {
		if name != corev1.ResourceMemory {
			parts = append(parts, fmt.Sprintf("%s %s of %s in use", name, text.Amount(used[name]), text.Amount(total[name])))
		}
	}
	return strings.Join(parts, "   ")
}

// rows returns the lines of a table, cut to the width.
func rows(t text.Table, width, noteLines int) []string {
	lines := t.Lines(width, noteLines)
	for i := range lines {
		lines[i] = text.Cut(lines[i], width)
	}
	return lines
}

func groups(list []snapshot.Group, fold bool) text.Table {
	t := text.Table{
		Titles: []string{"PODGROUP", "QUEUE", "PHASE", "BOUND", "MIN", "ALL", "REASON"},
		Right:  []bool{false, false, false, true, true, true, false},
	}
	folded := 0
	for _, g := range list {
		if fold && g.Phase == "Finished" {
			folded++
			continue
		}
		t.Rows = append(t.Rows, text.Row{
			Cells: []string{g.Name, g.Queue, g.Phase, strconv.Itoa(g.Bound), strconv.Itoa(g.Min), strconv.Itoa(g.Members), g.Reason},
			Note:  g.Message,
		})
	}
	if folded > 0 {
		t.Rows = append(t.Rows, text.Row{Cells: []string{fmt.Sprintf("(%d more)", folded), "", "Finished", "", "", "", ""}})
	}
	return t
}

func work(list []snapshot.Work) text.Table {
	t := text.Table{Titles: []string{"WITHOUT A PODGROUP", "QUEUE", "STATE"}, Right: make([]bool, 3)}
	for _, w := range merge(list) {
		t.Rows = append(t.Rows, text.Row{Cells: []string{w.Kind + "/" + w.Name, w.Queue, state(w)}})
	}
	return t
}

// merge makes one line of the single pods of a queue whose names differ in what follows the
// last dash.
func merge(list []snapshot.Work) []snapshot.Work {
	var merged []snapshot.Work
	index := map[string]int{}
	for _, w := range list {
		if w.Kind != snapshot.Pod {
			merged = append(merged, w)
			continue
		}
		if i := strings.LastIndex(w.Name, "-"); i > 0 {
			w.Name = w.Name[:i] + "-*"
		}
		key := w.Namespace + "/" + w.Name + "/" + w.Queue
		i, known := index[key]
		if !known {
			index[key] = len(merged)
			merged = append(merged, w)
			continue
		}
		sum := &merged[i]
		sum.Want, sum.Running, sum.Ended, sum.Done = sum.Want+w.Want, sum.Running+w.Running, sum.Ended+w.Ended, sum.Done && w.Done
	}
	return merged
}

func state(w snapshot.Work) string {
	switch {
	case w.Kind == snapshot.Job && w.Done:
		return fmt.Sprintf("complete, %d of %d", w.Ended, w.Want)
	case w.Kind == snapshot.Job:
		return fmt.Sprintf("%d running, %d of %d complete", w.Running, w.Ended, w.Want)
	case w.Kind == snapshot.Deployment:
		return fmt.Sprintf("%d of %d available", w.Running, w.Want)
	case w.Ended > 0:
		return fmt.Sprintf("%d running, %d ended", w.Running, w.Ended)
	}
	return fmt.Sprintf("%d of %d running", w.Running, w.Want)
}

// queues shows allocated and deserved of each resource as "allocated / deserved".
func queues(list []snapshot.Queue) text.Table {
	all := corev1.ResourceList{}
	for _, q := range list {
		capacity.Add(all, q.Deserved)
		capacity.Add(all, q.Allocated)
	}
	t := text.Table{Titles: []string{"QUEUE", "WEIGHT"}, Right: []bool{false, true}}
	names := shared(all)
	for _, name := range names {
		t.Titles = append(t.Titles, strings.ToUpper(short(name))+" / DESERVED")
		t.Right = append(t.Right, true)
	}
	for _, q := range list {
		cells := []string{q.Name, strconv.Itoa(q.Weight)}
		for _, name := range names {
			cells = append(cells, share(q, name))
		}
		t.Rows = append(t.Rows, text.Row{Cells: cells})
	}
	return t
}

// share says what a queue has of a resource and what it deserves, or nothing if that is nothing.
func share(q snapshot.Queue, name corev1.ResourceName) string {
	allocated, deserved := q.Allocated[name], q.Deserved[name]
	if allocated.IsZero() && deserved.IsZero() {
		return "-"
	}
	return text.Amount(allocated) + " / " + text.Amount(deserved)
}

// short is the name of a resource without its domain.
func short(name corev1.ResourceName) string {
	return string(name[strings.LastIndex(string(name), "/")+1:])
}

// shared returns the resources of a list that queues share, in the order of the columns.
func shared(list corev1.ResourceList) []corev1.ResourceName {
	return slices.DeleteFunc(text.Resources(list), func(name corev1.ResourceName) bool {
		return name != corev1.ResourceCPU && name != corev1.ResourceMemory && !strings.Contains(string(name), "/")
	})
}

// clock words a time as minutes and seconds.
func clock(d time.Duration) string {
	seconds := int(d.Seconds())
	return fmt.Sprintf("%d:%02d", seconds/60, seconds%60)
}
