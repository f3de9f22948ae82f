// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package results

import (
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"text/tabwriter"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/replay"
)

// mostLosers is how many of the jobs that lose most a comparison lists.
const mostLosers = 10

// resamples is how many samples of jobs the interval of a mean is made of.
const resamples = 1000

// Comparison is the difference between the waits of the same jobs under two policies. Times are in seconds.
type Comparison struct {
	First  string `json:"first"`
	Second string `json:"second"`
	Jobs   int    `json:"jobs"`
	// Better are the jobs that wait less under the second policy.
	Better int `json:"better"`
	Same   int `json:"same"`
	Worse  int `json:"worse"`
	// MeanChange is that of the wait, negative if jobs wait less under the second policy. With a probability of 95 %, the mean
	// of as many jobs of this kind is between Low and High: a bootstrap interval over jobs.
	MeanChange float64 `json:"meanChangeSeconds"`
	Low        float64 `json:"lowSeconds"`
	High       float64 `json:"highSeconds"`
	// Losers are the jobs that wait longest in addition, by that time.
	Losers []Change `json:"losers"`
}

// Change is what changes for a job.
type Change struct {
	Job    string  `json:"job"`
	Queue  string  `json:"queue"`
	Size   int64   `json:"size"` // in the unit of Summary.SizeUnit
	First  float64 `json:"firstWaitSeconds"`
	Second float64 `json:"secondWaitSeconds"`
	Change float64 `json:"changeSeconds"`
	// Reason is the one with the longest part of the wait under the second policy, and Part how much of it, from 0 to 1.
	Reason string  `json:"reason"`
	Part   float64 `json:"part"`
}

// Compare compares the jobs of two replays of one trace. A job that has not started counts with its wait until the end of
// the replay. The seed chooses the samples of the interval.
func Compare(first, second *Run, seed uint64) *Comparison {
	c := &Comparison{First: first.Name, Second: second.Name, Losers: []Change{}}
	c.Jobs = min(len(first.Jobs), len(second.Jobs)) // one may have been interrupted earlier
	changes := make([]float64, c.Jobs)
	ends := [2]float64{first.Summary.Until, second.Summary.Until}
	for i := range changes {
		a, b := &first.Jobs[i], &second.Jobs[i]
		x := Change{
			Job: b.ID, Queue: b.Queue, Size: second.Summary.SizeOf(b), First: waitUntil(a, ends[0]), Second: waitUntil(b, ends[1]),
			Reason: b.Reason, Part: b.ReasonPart,
		}
		x.Change = x.Second - x.First
		changes[i] = x.Change
		switch {
		case x.Change < 0:
			c.Better++
		case x.Change > 0:
			c.Worse++
			c.Losers = append(c.Losers, x)
		default:
			c.Same++
		}
	}
	slices.SortStableFunc(c.Losers, func(a, b Change) int { return cmp.Or(-cmp.Compare(a.Change, b.Change), cmp.Compare(a.Job, b.Job)) })
	c.Losers = slices.Clone(c.Losers[:min(len(c.Losers), mostLosers)])
	c.MeanChange, c.Low, c.High = interval(changes, seed)
	return c
}

func waitUntil(j *replay.Job, end float64) float64 {
	if j.Runs == 0 && !j.State.Ended() {
		return end - j.Submit.Seconds()
	}
	return j.WaitUntil(0).Seconds()
}

// interval returns the mean of some values, and the interval that has 95 % of the means of samples of as many of them, drawn
// with replacement (Efron 1979, the percentile method).
func interval(values []float64, seed uint64) (mean, low, high float64) {
	if len(values) == 0 {
		return 0, 0, 0
	}
	for _, v := range values {
		mean += v
	}
	n := float64(len(values))
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:forbidigo // the seed decides
	means := make([]float64, resamples)
	for i := range means {
		for range values {
			means[i] += values[random.IntN(len(values))] //nolint:forbidigo // the seed decides
		}
		means[i] /= n
	}
	slices.Sort(means)
	return mean / n, means[resamples*25/1000], means[resamples*975/1000-1]
}

// WriteText writes the comparison for a terminal.
func (c *Comparison) WriteText(w io.Writer, sizeUnit string) error {
	fmt.Fprintf(w, "\n%s compared with %s: %d jobs wait less, %d as long, %d longer\n", c.Second, c.First, c.Better, c.Same, c.Worse)
	fmt.Fprintf(w, "Mean change of the wait: %s, 95 %% interval %s to %s\n", Signed(c.MeanChange), Signed(c.Low), Signed(c.High))
	if len(c.Losers) == 0 {
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "Lose most\tQueue\t%s\tWait before\tWait after\tReason\n", sizeUnit)
	for _, l := range c.Losers {
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\t%s\n", l.Job, l.Queue, l.Size, Span(l.First), Span(l.Second), l.Why())
	}
	return t.Flush()
}

// Why words the reason and its part.
func (c *Change) Why() string {
	if c.Reason == "" {
		return "not known"
	}
	return fmt.Sprintf("%s (%.0f %%)", c.Reason, 100*c.Part)
}

// Signed formats a change in seconds.
func Signed(seconds float64) string {
	if seconds > 0 {
		return "+" + Span(seconds)
	}
	return Span(seconds)
}
