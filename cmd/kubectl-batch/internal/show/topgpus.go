// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package show

import (
	"fmt"
	"strconv"

	"github.com/batch-scheduler/batch-scheduler/internal/text"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/fragmentation"
)

// TopGPUs returns a row for each model. If the models are too long for one line, each has a heading above its row instead.
func TopGPUs(list *GPUUsageList) []string {
	t := text.Table{
		Titles: []string{"MODEL", "NODES", "GPUS", "FREE"},
		Right:  []bool{false, true, true, true},
	}
	for _, size := range fragmentation.PodSizes() {
		t.Titles, t.Right = append(t.Titles, fmt.Sprint("FIT", size)), append(t.Right, true)
	}
	t.Titles, t.Right = append(t.Titles, "STRANDED", "FRAG"), append(t.Right, true, true)
	for i := range list.Items {
		u := &list.Items[i]
		cells := []string{dash(u.Model), strconv.Itoa(u.Nodes), fmt.Sprint(u.Total), fmt.Sprint(u.Free)}
		for _, fit := range u.Fit {
			cells = append(cells, fmt.Sprint(fit.Pods))
		}
		stranded, frag := "-", "-"
		if u.Stranded != nil {
			stranded, frag = fmt.Sprint(*u.Stranded), text.Amount(*u.Fragmentation)
		}
		t.Rows = append(t.Rows, text.Row{Cells: append(cells, stranded, frag)})
	}
	width := -len("  ")
	for _, column := range t.Widths(nil) {
		width += len("  ") + column
	}
	if width <= Width {
		return t.Lines(Width, 0)
	}
	t.Titles, t.Right = t.Titles[1:], t.Right[1:]
	for i := range t.Rows {
		t.Rows[i].Cells = t.Rows[i].Cells[1:]
	}
	body := t.Lines(Width, 0)
	lines := []string{"  " + body[0]}
	for i := range list.Items {
		lines = append(lines, dash(list.Items[i].Model), "  "+body[i+1])
	}
	return lines
}
