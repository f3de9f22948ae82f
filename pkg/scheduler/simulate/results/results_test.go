// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package results

import (
	"bytes"
	"math"
	"math/rand"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/replay"
)

// runOf returns a run whose jobs a, b, c and so on are submitted at 0 and start after so many seconds, or never if negative.
func runOf(name string, until float64, starts ...int) *Run {
	r := &Run{Name: name, Result: &replay.Result{Summary: replay.Summary{Until: until, SizeUnit: "GPUs"}}}
	for i, start := range starts {
		j := replay.Job{ID: string(rune('a' + i)), Queue: "q", GPUs: int64(i), Reason: "NotEnoughResources", ReasonPart: .75}
		if start >= 0 {
			j.Runs, j.Start = 1, time.Duration(start)*time.Second
		}
		r.Jobs = append(r.Jobs, j)
	}
	return r
}

func TestCompare(t *testing.T) {
	t.Parallel()
	got := Compare(runOf("one", 100, 10, 20, 30, -1), runOf("two", 200, 10, 5, 90, -1), 1)
	if got.Low > got.MeanChange || got.High < got.MeanChange {
		t.Errorf("the mean %v is not in its interval, %v to %v", got.MeanChange, got.Low, got.High)
	}
	got.Low, got.High = 0, 0
	want := &Comparison{
		First: "one", Second: "two", Jobs: 4, Better: 1, Same: 1, Worse: 2, MeanChange: 36.25, // 0, -15, 60, 100
		Losers: []Change{
			{Job: "d", Queue: "q", Size: 3, First: 100, Second: 200, Change: 100, Reason: "NotEnoughResources", Part: .75},
			{Job: "c", Queue: "q", Size: 2, First: 30, Second: 90, Change: 60, Reason: "NotEnoughResources", Part: .75},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("comparison (-want +got):\n%s", diff)
	}
	var b bytes.Buffer
	if err := want.WriteText(&b, "GPUs"); err != nil {
		t.Fatal(err)
	}
	text := `
two compared with one: 1 jobs wait less, 1 as long, 2 longer
Mean change of the wait: +36.25s, 95 % interval 0s to 0s
Lose most  Queue  GPUs  Wait before  Wait after  Reason
d          q      3     1m40s        3m20s       NotEnoughResources (75 %)
c          q      2     30s          1m30s       NotEnoughResources (75 %)
`
	if diff := cmp.Diff(text, b.String()); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
}

func TestTenLosers(t *testing.T) {
	t.Parallel()
	first, second := make([]int, 26), make([]int, 26)
	for i := range second {
		second[i] = i + 1
	}
	got := Compare(runOf("one", 100, first...), runOf("two", 100, second...), 1)
	if len(got.Losers) != 10 || got.Losers[0].Job != "z" || got.Losers[9].Job != "q" {
		t.Errorf("losers are %v, want z to q", got.Losers)
	}
}

// TestInterval compares the interval with the one of a normal distribution, for many values.
func TestInterval(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewSource(3))
	values, sum, squares := make([]float64, 5000), 0., 0.
	for i := range values {
		values[i] = random.ExpFloat64() * 100
		sum, squares = sum+values[i], squares+values[i]*values[i]
	}
	n := float64(len(values))
	deviation := math.Sqrt(squares/n - sum/n*sum/n)
	mean, low, high := interval(values, 1)
	for name, c := range map[string]struct{ got, want float64 }{
		"mean": {mean, sum / n}, "low": {low, sum/n - 1.96*deviation/math.Sqrt(n)}, "high": {high, sum/n + 1.96*deviation/math.Sqrt(n)},
	} {
		if math.Abs(c.got-c.want) > .5 {
			t.Errorf("%s is %v, want about %v", name, c.got, c.want)
		}
	}
	if _, again, _ := interval(values, 1); again != low {
		t.Errorf("one seed gives %v and %v", low, again)
	}
	if _, other, _ := interval(values, 2); other == low {
		t.Error("another seed gives the same interval")
	}
}

func TestSweep(t *testing.T) {
	t.Parallel()
	point := func(utilisation, wait float64) *Run {
		return &Run{Result: &replay.Result{Summary: replay.Summary{
			Utilisation: []replay.Utilisation{{Resource: "cpu", Part: utilisation}, {Resource: "nvidia.com/gpu", Part: utilisation / 2}},
			Gangs:       replay.Wait{P95: wait},
		}}}
	}
	got := NewSweep("key", []string{"1", "2", "3", "4"}, []*Run{point(.8, 100), point(.9, 200), point(.8, 200), point(.9, 200)})
	for i, want := range []bool{true, true, false, true} {
		if p := got.Points[i]; p.Pareto != want || p.Utilisation > .45 {
			t.Errorf("the point of %s is %+v; best is %v, and the utilisation is that of GPUs", p.Value, p, want)
		}
	}
}

func TestSpan(t *testing.T) {
	t.Parallel()
	for seconds, want := range map[float64]string{0: "0s", 0.25: "250ms", 75: "1m15s", -75: "-1m15s", 100000: "1d3h46m"} {
		if got := Span(seconds); got != want {
			t.Errorf("%v seconds are %s, want %s", seconds, got, want)
		}
	}
}

func TestSize(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]replay.SizeClass{"0": {}, "1": {Least: 1, Most: 1}, "8-31": {Least: 8, Most: 31}, "512 or more": {Least: 512}} {
		if got := Size(c); got != want {
			t.Errorf("%+v is %s, want %s", c, got, want)
		}
	}
}
