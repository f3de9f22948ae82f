// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package results

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"text/tabwriter"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/replay"
)

// Measure is one number of a summary.
type Measure struct {
	Name string
	Of   func(*replay.Summary) float64
	// Word formats a value for people.
	Word func(float64) string
}

// Measures are those by which policies are compared; the whole free domains are those of the levels of a summary.
func Measures(s *replay.Summary) []Measure {
	percent := func(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) }
	count := func(x float64) string { return strconv.FormatFloat(math.Round(10*x)/10, 'f', -1, 64) }
	list := []Measure{
		{"Utilisation", func(s *replay.Summary) float64 { return replay.Main(s.Utilisation).Part }, percent},
		{"Goodput", func(s *replay.Summary) float64 { return replay.Main(s.Goodput).Part }, percent},
		{"Mean wait", func(s *replay.Summary) float64 { return s.Wait.Mean }, Span},
		{"p95 wait", func(s *replay.Summary) float64 { return s.Wait.P95 }, Span},
		{"p95 wait of gangs", func(s *replay.Summary) float64 { return s.Gangs.P95 }, Span},
		{"Longest wait", func(s *replay.Summary) float64 { return s.Wait.Max }, Span},
		{"Mean bounded slowdown", func(s *replay.Summary) float64 { return s.MeanBoundedSlowdown }, func(x float64) string { return fmt.Sprintf("%.1f", x) }},
		{"Completed jobs", func(s *replay.Summary) float64 { return float64(s.Completed) }, count},
		{"Pending jobs", func(s *replay.Summary) float64 { return float64(s.Pending) }, count},
		{"Evicted pods", func(s *replay.Summary) float64 { return float64(s.Evictions) }, count},
	}
	for i := range s.Levels {
		l := &s.Levels[i]
		list = append(list, Measure{"Whole free " + l.Topology + "/" + l.Level, func(s *replay.Summary) float64 { return s.Levels[i].MeanFree }, count})
	}
	return list
}

// WriteMeasures writes the measures of runs side by side.
func WriteMeasures(w io.Writer, runs []*Run) error {
	names := make([]string, len(runs))
	for i, r := range runs {
		names[i] = r.Name
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	writeMeasures(t, &runs[0].Summary, names, func(m Measure, i int) string { return m.Word(m.Of(&runs[i].Summary)) })
	fmt.Fprintf(t, "\nGangs have %d %s or more.\n", runs[0].Summary.GangSize, runs[0].Summary.SizeUnit)
	return t.Flush()
}

// writeMeasures writes the names of columns and a row for each measure of a summary.
func writeMeasures(t *tabwriter.Writer, of *replay.Summary, columns []string, cell func(m Measure, column int) string) {
	for _, c := range columns {
		fmt.Fprintf(t, "\t%s", c)
	}
	fmt.Fprintln(t)
	for _, m := range Measures(of) {
		fmt.Fprint(t, m.Name)
		for i := range columns {
			fmt.Fprintf(t, "\t%s", cell(m, i))
		}
		fmt.Fprintln(t)
	}
}

// Sweep is what a key of the policy changes.
type Sweep struct {
	Key    string  `json:"key"`
	Points []Point `json:"points"`
}

// Point is the result for one value.
type Point struct {
	Value       string          `json:"value"`
	Utilisation float64         `json:"utilisation"`
	GangWait    float64         `json:"p95WaitOfGangsSeconds"`
	Pareto      bool            `json:"pareto"` // no other value is better in one of both and not worse in the other
	Summary     *replay.Summary `json:"-"`
}

// NewSweep returns the results for some values.
func NewSweep(key string, values []string, runs []*Run) *Sweep {
	s := &Sweep{Key: key}
	for i, r := range runs {
		s.Points = append(s.Points, Point{
			Value: values[i], Utilisation: replay.Main(r.Summary.Utilisation).Part, GangWait: r.Summary.Gangs.P95, Summary: &r.Summary,
		})
	}
	for i := range s.Points {
		s.Points[i].Pareto = true
		for k := range s.Points {
			if s.Points[k].dominates(&s.Points[i]) {
				s.Points[i].Pareto = false
			}
		}
	}
	return s
}

func (p *Point) dominates(other *Point) bool {
	return p.Utilisation >= other.Utilisation && p.GangWait <= other.GangWait && (p.Utilisation > other.Utilisation || p.GangWait < other.GangWait)
}

// WriteText writes the sweep for a terminal: a row for each value.
func (s *Sweep) WriteText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, s.Key)
	for _, m := range Measures(s.Points[0].Summary) {
		fmt.Fprintf(t, "\t%s", m.Name)
	}
	fmt.Fprintln(t, "\tBest")
	for _, p := range s.Points {
		fmt.Fprint(t, p.Value)
		for _, m := range Measures(p.Summary) {
			fmt.Fprintf(t, "\t%s", m.Word(m.Of(p.Summary)))
		}
		best := ""
		if p.Pareto {
			best = "*"
		}
		fmt.Fprintf(t, "\t%s\n", best)
	}
	fmt.Fprintf(t, "\nGangs have %d %s or more. No other value is better than one with *, both in utilisation and in their wait.\n",
		s.Points[0].Summary.GangSize, s.Points[0].Summary.SizeUnit)
	return t.Flush()
}

// Replicas are the summaries of one policy over several traces like the first one.
type Replicas struct {
	Policy    string
	Summaries []*replay.Summary
}

// Spread is a measure over replicas.
type Spread struct{ Mean, Min, Max float64 }

// Spread returns the spread of a measure.
func (r *Replicas) Spread(m Measure) Spread {
	var s Spread
	for i, summary := range r.Summaries {
		x := m.Of(summary)
		if i == 0 {
			s.Min, s.Max = x, x
		}
		s.Mean, s.Min, s.Max = s.Mean+x/float64(len(r.Summaries)), min(s.Min, x), max(s.Max, x)
	}
	return s
}

// WriteReplicas writes the spread of each measure, with a column for each policy.
func WriteReplicas(w io.Writer, list []*Replicas) error {
	policies := make([]string, len(list))
	for i, r := range list {
		policies[i] = r.Policy
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\nMean (least to most) of %d replicas", len(list[0].Summaries))
	writeMeasures(t, list[0].Summaries[0], policies, func(m Measure, i int) string { return list[i].Spread(m).Word(m) })
	return t.Flush()
}

// Word formats the spread of a measure for people.
func (s Spread) Word(m Measure) string {
	return fmt.Sprintf("%s (%s to %s)", m.Word(s.Mean), m.Word(s.Min), m.Word(s.Max))
}
