// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/batch-scheduler/batch-scheduler/test/perf/figures"
)

// The plot shows the sizes of clusters from left to right, each twice the previous one, and the cost per pod from
// bottom to top.
const (
	plotWidth, plotHeight = 480, 260
	plotMargin            = 50
)

// writePlot draws the figures of D6 to a file, if there are any.
func writePlot(file string, all []figures.Figure) error {
	costs := growthCosts(all)
	if file == "" || len(costs) == 0 {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(plot(costs)), 0o644)
}

func plot(costs []figures.Figure) string {
	most := 1.0
	for _, f := range costs {
		most = max(most, f.Value)
	}
	x := func(i int) float64 {
		return plotMargin + float64(i)*float64(plotWidth-2*plotMargin)/float64(max(len(costs)-1, 1))
	}
	y := func(value float64) float64 {
		return plotHeight - plotMargin - value/(1.2*most)*(plotHeight-2*plotMargin)
	}
	var line, marks strings.Builder
	for i, f := range costs {
		fmt.Fprintf(&line, "%.1f,%.1f ", x(i), y(f.Value))
		fmt.Fprintf(&marks, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\"/>\n", x(i), y(f.Value))
		fmt.Fprintf(&marks, "<text x=\"%.1f\" y=\"%.1f\">%.1f</text>\n", x(i), y(f.Value)-8, f.Value)
		fmt.Fprintf(&marks, "<text x=\"%.1f\" y=\"%d\">%s</text>\n", x(i), plotHeight-plotMargin+18, sizeOf(f))
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12" text-anchor="middle">
<rect width="100%%" height="100%%" fill="white"/>
<text x="%d" y="20">cost per pod in µs, by number of nodes</text>
<path d="M%d %d V%d H%d" fill="none" stroke="gray"/>
<polyline points="%s" fill="none" stroke="black"/>
%s</svg>
`, plotWidth, plotHeight, plotWidth/2, plotMargin, plotMargin, plotHeight-plotMargin, plotWidth-plotMargin, strings.TrimSpace(line.String()), marks.String())
}

// sizeOf returns the number of nodes in the name of a figure.
func sizeOf(f figures.Figure) string {
	var nodes int
	if _, err := fmt.Sscanf(f.Name, "D6/%d-nodes", &nodes); err != nil {
		return f.Name
	}
	return fmt.Sprint(nodes)
}
