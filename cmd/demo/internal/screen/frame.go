// Package screen words scenes for people: as a frame that is drawn again and again on a
// terminal, or as lines about what has changed.
package screen

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/batch-scheduler/batch-scheduler/cmd/demo/internal/scene"
	"github.com/batch-scheduler/batch-scheduler/test/room"
)

// Size is that of a terminal, in characters.
type Size struct {
	Width, Height int
}

// Frame draws the scene within the size. What does not fit is told shorter: first the messages
// of waiting groups, then the groups that have ended; at last the frame is cut.
func Frame(s scene.Scene, elapsed time.Duration, size Size) []string {
	var lines []string
	for _, level := range []struct {
		noteLines int
		fold      bool
	}{{2, false}, {1, false}, {1, true}, {0, true}} {
		lines = frame(s, elapsed, size.Width, level.noteLines, level.fold)
		if len(lines) <= size.Height {
			return lines
		}
	}
	return lines[:max(0, size.Height)]
}

func frame(s scene.Scene, elapsed time.Duration, width, noteLines int, fold bool) []string {
	lines := []string{cut(headline(s, elapsed), width)}
	if noteLines > 0 {
		lines = append(lines, "")
	}
	lines = append(lines, groups(s.Groups, fold).lines(width, noteLines)...)
	if len(s.Work) > 0 {
		lines = append(lines, "")
		lines = append(lines, work(s.Work).lines(width, noteLines)...)
	}
	lines = append(lines, "")
	return append(lines, queues(s.Queues).lines(width, noteLines)...)
}

// headline sums up the nodes, in the resources of which pods hold any.
func headline(s scene.Scene, elapsed time.Duration) string {
	used, total := corev1.ResourceList{}, corev1.ResourceList{}
	for _, n := range s.Nodes {
		room.Add(used, n.Used)
		room.Add(total, n.Allocatable)
	}
	parts := []string{clock(elapsed), fmt.Sprintf("%d nodes", len(s.Nodes))}
	for _, name := range shared(total) {
		if name != corev1.ResourceMemory {
			parts = append(parts, fmt.Sprintf("%s %s of %s in use", name, amount(used[name]), amount(total[name])))
		}
	}
	return strings.Join(parts, "   ")
}

func groups(list []scene.Group, fold bool) table {
	t := table{
		titles: []string{"GROUP", "QUEUE", "PHASE", "BOUND", "MIN", "ALL", "WAITS BECAUSE"},
		right:  []bool{false, false, false, true, true, true, false},
	}
	folded := 0
	for _, g := range list {
		if fold && g.Phase == "Finished" {
			folded++
			continue
		}
		t.rows = append(t.rows, row{
			cells: []string{g.Name, g.Queue, g.Phase, strconv.Itoa(g.Bound), strconv.Itoa(g.Min), strconv.Itoa(g.Members), g.Reason},
			note:  g.Message,
		})
	}
	if folded > 0 {
		t.rows = append(t.rows, row{cells: []string{fmt.Sprintf("(%d more)", folded), "", "Finished", "", "", "", ""}})
	}
	return t
}

func work(list []scene.Work) table {
	t := table{titles: []string{"WITHOUT A GROUP", "QUEUE", "STATE"}, right: make([]bool, 3)}
	for _, w := range merge(list) {
		t.rows = append(t.rows, row{cells: []string{w.Kind + "/" + w.Name, w.Queue, state(w)}})
	}
	return t
}

// merge makes one line of the single pods of a queue whose names differ in what follows the
// last dash.
func merge(list []scene.Work) []scene.Work {
	var merged []scene.Work
	index := map[string]int{}
	for _, w := range list {
		if w.Kind != scene.Pod {
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

func state(w scene.Work) string {
	switch {
	case w.Kind == scene.Job && w.Done:
		return fmt.Sprintf("complete, %d of %d", w.Ended, w.Want)
	case w.Kind == scene.Job:
		return fmt.Sprintf("%d running, %d of %d complete", w.Running, w.Ended, w.Want)
	case w.Kind == scene.Deployment:
		return fmt.Sprintf("%d of %d available", w.Running, w.Want)
	case w.Ended > 0:
		return fmt.Sprintf("%d running, %d ended", w.Running, w.Ended)
	}
	return fmt.Sprintf("%d of %d running", w.Running, w.Want)
}

// queues shows allocated and deserved of each resource as "allocated / deserved".
func queues(list []scene.Queue) table {
	all := corev1.ResourceList{}
	for _, q := range list {
		room.Add(all, q.Deserved)
		room.Add(all, q.Allocated)
	}
	t := table{titles: []string{"QUEUE", "WEIGHT"}, right: []bool{false, true}}
	names := shared(all)
	for _, name := range names {
		t.titles = append(t.titles, strings.ToUpper(short(name))+" / DESERVED")
		t.right = append(t.right, true)
	}
	for _, q := range list {
		cells := []string{q.Name, strconv.Itoa(q.Weight)}
		for _, name := range names {
			cells = append(cells, share(q, name))
		}
		t.rows = append(t.rows, row{cells: cells})
	}
	return t
}

// share says what a queue has of a resource and what it deserves, or nothing if that is nothing.
func share(q scene.Queue, name corev1.ResourceName) string {
	allocated, deserved := q.Allocated[name], q.Deserved[name]
	if allocated.IsZero() && deserved.IsZero() {
		return "-"
	}
	return amount(allocated) + " / " + amount(deserved)
}

// short is the name of a resource without its domain.
func short(name corev1.ResourceName) string {
	return string(name[strings.LastIndex(string(name), "/")+1:])
}

// shared returns the resources of a list that queues share, in the order in which they are
// told: cpu, memory, the extended ones by name.
func shared(list corev1.ResourceList) []corev1.ResourceName {
	var names []corev1.ResourceName
	for _, name := range slices.Sorted(maps.Keys(list)) {
		if name == corev1.ResourceCPU || name == corev1.ResourceMemory || strings.Contains(string(name), "/") {
			names = append(names, name)
		}
	}
	slices.SortStableFunc(names, func(a, b corev1.ResourceName) int {
		return strings.Count(string(a), "/") - strings.Count(string(b), "/")
	})
	return names
}

// amount words a quantity with at most one decimal.
func amount(q resource.Quantity) string {
	value := q.AsApproximateFloat64()
	unit := ""
	if q.Format == resource.BinarySI {
		for _, next := range []string{"Ki", "Mi", "Gi", "Ti"} {
			if value < 1024 {
				break
			}
			value, unit = value/1024, next
		}
	}
	return strings.TrimSuffix(strconv.FormatFloat(value, 'f', 1, 64), ".0") + unit
}

// clock words a time as minutes and seconds.
func clock(d time.Duration) string {
	seconds := int(d.Seconds())
	return fmt.Sprintf("%d:%02d", seconds/60, seconds%60)
}
