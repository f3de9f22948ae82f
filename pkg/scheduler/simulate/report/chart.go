// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/replay"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/results"
)

// bins is how many points a curve has.
const bins = 240

// The size of the plane of a chart. The page stretches it, and draws all text beside it.
const (
	planeWidth  = 1000
	planeHeight = 200
)

// chart is a plane with curves or areas above a time axis.
type chart struct {
	Title  string
	Curves []curve
	X      []tick // of the time axis
	Y      []tick
	Area   bool // whether the curves are borders of stacked areas, the top one first
}

// curve is a path in the plane.
type curve struct {
	Name  string
	Color int
	Path  string
}

// tick is a label beside the plane.
type tick struct {
	Text string
	At   float64 // percent of the width from the left, or of the height from the top
}

// step is a value from a time on.
type step struct {
	at    float64 // seconds
	value float64
}

// averages returns the mean of a step function in each bin from begin to end.
func averages(steps []step, begin, end float64) []float64 {
	means := make([]float64, bins)
	width := (end - begin) / bins
	if width <= 0 {
		return means
	}
	for i, s := range steps {
		until := end
		if i+1 < len(steps) {
			until = min(end, steps[i+1].at)
		}
		from := max(begin, s.at)
		for bin := max(0, int((from-begin)/width)-1); bin < bins && from < until; bin++ { // from the bin before, if the division rounds up
			if to := min(until, begin+float64(bin+1)*width); to > from {
				means[bin] += s.value * (to - from) / width
				from = to
			}
		}
	}
	return means
}

// span returns when the first job of the runs is submitted and when the last one ends.
func span(runs []*results.Run) (begin, end float64) {
	begin = math.Inf(1)
	for _, r := range runs {
		if len(r.Record.Cluster) > 0 {
			begin = min(begin, r.Record.Cluster[0].At.Seconds())
			end = max(end, r.Record.Cluster[len(r.Record.Cluster)-1].At.Seconds())
		}
	}
	return begin, end
}

// utilisationChart draws the utilisation of the main resource; nil if the nodes have none.
func utilisationChart(runs []*results.Run) *chart {
	main := runs[0].Record.Main
	if main < 0 {
		return nil
	}
	c := clusterChart(runs, "Utilisation of "+string(runs[0].Record.Resources[main]), func(r *results.Run, i int) float64 {
		if s := &r.Record.Cluster[i]; s.Usable[main] > 0 {
			return s.Held[main] / s.Usable[main]
		}
		return 0
	}, 1)
	if c != nil {
		c.Y = []tick{{"100 %", 0}, {"50 %", 50}, {"0 %", 100}}
	}
	return c
}

// waitingChart draws the number of pending jobs.
func waitingChart(runs []*results.Run) *chart {
	pending := func(r *results.Run, i int) float64 { return float64(r.Record.Cluster[i].Pending) }
	most := 1.0
	for _, r := range runs {
		for i := range r.Record.Cluster {
			most = max(most, pending(r, i))
		}
	}
	return clusterChart(runs, "Pending jobs", pending, most)
}

// freeDomainsChart draws the number of whole free domains of a topology level.
func freeDomainsChart(runs []*results.Run, level int) *chart {
	most := 1
	for _, r := range runs {
		most = max(most, r.Summary.Levels[level].Domains)
	}
	l := &runs[0].Summary.Levels[level]
	return clusterChart(runs, "Whole free domains of "+l.Topology+"/"+l.Level, func(r *results.Run, i int) float64 {
		return float64(r.Record.Cluster[i].FreeDomains[level])
	}, float64(most))
}

// clusterChart draws a curve for each run of a value from 0 to most.
func clusterChart(runs []*results.Run, title string, value func(r *results.Run, i int) float64, most float64) *chart {
	begin, end := span(runs)
	if !(end > begin) {
		return nil
	}
	c := &chart{Title: title, X: timeTicks(begin, end), Y: []tick{{amount(most), 0}, {amount(most / 2), 50}, {"0", 100}}}
	for k, r := range runs {
		steps := make([]step, len(r.Record.Cluster))
		for i := range steps {
			steps[i] = step{r.Record.Cluster[i].At.Seconds(), value(r, i)}
		}
		c.Curves = append(c.Curves, curve{Name: r.Name, Color: k, Path: line(averages(steps, begin, end), most)})
	}
	return c
}

// amount words a label of the vertical axis.
func amount(x float64) string { return strconv.FormatFloat(math.Round(x*10)/10, 'f', -1, 64) }

// mostQueues is how many queues have an area of their own.
const mostQueues = 7

// shareChart draws what the queues of a run hold of the main resource, as stacked areas; nil if there is none.
func shareChart(r *results.Run) *chart {
	main := r.Record.Main
	begin, end := span([]*results.Run{r})
	if main < 0 || !(end > begin) {
		return nil
	}
	usable := 0.0
	for i := range r.Record.Cluster {
		usable = max(usable, r.Record.Cluster[i].Usable[main])
	}
	if usable == 0 {
		return nil
	}
	steps := map[string][]step{}
	for i := range r.Record.Queues {
		s := &r.Record.Queues[i]
		steps[s.Queue] = append(steps[s.Queue], step{s.At.Seconds(), s.Held[main]})
	}
	c := &chart{Title: "Allocated " + string(r.Record.Resources[main]), Area: true, X: timeTicks(begin, end), Y: []tick{{amount(usable), 0}, {amount(usable / 2), 50}, {"0", 100}}}
	queues := slices.Clone(r.Summary.Queues)
	slices.SortStableFunc(queues, func(a, b replay.QueueSummary) int { return cmp.Compare(b.HeldHours, a.HeldHours) })
	below := make([]float64, bins)
	for i, q := range queues {
		for k, mean := range averages(steps[q.Name], begin, end) {
			below[k] += mean
		}
		name := q.Name
		if i >= mostQueues {
			if i < len(queues)-1 {
				continue
			}
			name = fmt.Sprintf("%d other queues", len(queues)-mostQueues)
		}
		c.Curves = append(c.Curves, curve{Name: name, Color: min(i, mostQueues), Path: area(below, usable)})
	}
	slices.Reverse(c.Curves) // the highest area is drawn first
	return c
}

// line returns a path through values from 0 to most.
func line(values []float64, most float64) string {
	var path strings.Builder
	for i, v := range values {
		command := "L"
		if i == 0 {
			command = "M"
		}
		fmt.Fprintf(&path, "%s%s %s", command, coordinate((float64(i)+.5)*planeWidth/bins), coordinate(planeHeight*(1-min(1, v/most))))
	}
	return path.String()
}

// area returns the path around what is below a line.
func area(values []float64, most float64) string {
	return fmt.Sprintf("%sV%d H0 Z", line(values, most), planeHeight)
}

// coordinate formats a coordinate with at most one decimal.
func coordinate(x float64) string { return strconv.FormatFloat(math.Round(x*10)/10, 'f', -1, 64) }

// timeTicks returns labels below a time axis, at round times.
func timeTicks(begin, end float64) (ticks []tick) {
	const hour, day = 3600.0, 24 * 3600.0
	steps := []float64{1, 5, 15, 60, 300, 900, hour, 3 * hour, 6 * hour, 12 * hour, day, 2 * day, 7 * day, 14 * day, 28 * day, 91 * day, 364 * day, 10 * 364 * day}
	width := steps[len(steps)-1]
	for _, s := range slices.Backward(steps) {
		if (end-begin)/s < 5 {
			width = s
		}
	}
	for at := math.Ceil(begin/width) * width; at <= end; at += width {
		ticks = append(ticks, tick{timeText(at, width), 100 * (at - begin) / (end - begin)})
	}
	return ticks
}

// timeText words a time of the trace in the unit of the ticks.
func timeText(seconds, width float64) string {
	switch {
	case width >= 24*3600:
		return fmt.Sprintf("%.0f d", seconds/(24*3600))
	case width >= 3600:
		return fmt.Sprintf("%.0f h", seconds/3600)
	default:
		return (time.Duration(seconds) * time.Second).String()
	}
}

// pareto is the plot of a sweep: utilisation to the right, wait of gangs upwards.
type pareto struct {
	Points []paretoPoint
	X, Y   []tick
}

type paretoPoint struct {
	Value    string
	Best     bool
	X, Y     float64 // in the plane
	Left     float64 // percent
	Top      float64
	ToTheEnd bool // whether the label is on the left of the point
}

// Pareto returns the plot of the sweep.
func (p *Page) Pareto() pareto {
	low, high, most := 1.0, 0.0, 1.0
	for _, point := range p.Sweep.Points {
		low, high, most = min(low, point.Utilisation), max(high, point.Utilisation), max(most, point.GangWait)
	}
	low, high = math.Floor(low*20)/20, math.Ceil(high*20)/20
	if low == high {
		low, high = max(0, low-.05), min(1, high+.05)
	}
	plot := pareto{Y: []tick{{results.Span(most), 5}, {results.Span(most / 2), 50}, {"0s", 95}}}
	for i := range 3 {
		u := low + float64(i)*(high-low)/2
		plot.X = append(plot.X, tick{fmt.Sprintf("%.1f %%", 100*u), 5 + 45*float64(i)})
	}
	for _, point := range p.Sweep.Points {
		x, y := 5+90*(point.Utilisation-low)/(high-low), 95-90*point.GangWait/most
		plot.Points = append(plot.Points, paretoPoint{
			Value: point.Value, Best: point.Pareto, X: x / 100 * planeWidth, Y: y / 100 * planeHeight, Left: x, Top: y, ToTheEnd: x > 70,
		})
	}
	return plot
}
