// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/replay"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate/results"
)

// hostile is a name that must be shown as text.
const hostile = `<img src=x onerror=alert(1)>"'</title></style><script>alert(1)</script>{{.}}`

// hostilePage has hostile names everywhere, queues and samples in the given numbers, and every part of a page.
func hostilePage(runs, queues, samples int) *Page {
	p := &Page{Workload: hostile, Version: hostile, Nodes: 3}
	for n := range runs {
		s := replay.Summary{
			Jobs: 3, Until: 1e6, SizeUnit: "GPUs", GangSize: 8, Notes: []string{hostile},
			Utilisation: []replay.Utilisation{{Resource: hostile + "/gpu", Part: .5 + float64(n)/100}},
			Gangs:       replay.Wait{P95: 100 * float64(n+1)},
			Sizes:       []replay.SizeClass{{Least: 1, Most: 1, Jobs: 2, Started: 1, Wait: replay.Wait{P95: 50}}, {Least: 512, Jobs: 1}},
			Longest:     &replay.LongestWait{Job: hostile, Seconds: 50, Reason: hostile, Part: .5},
		}
		record := &replay.Record{Resources: []v1.ResourceName{hostile + "/gpu"}, Main: 0}
		for i := range queues {
			s.Queues = append(s.Queues, replay.QueueSummary{Name: fmt.Sprint(hostile, i), Resource: hostile, HeldHours: float64(i)})
		}
		for i := range samples {
			at := time.Duration(i) * time.Hour
			record.Cluster = append(record.Cluster, replay.ClusterSample{At: at, Held: []float64{float64(i % 5)}, Usable: []float64{8}, Pending: i})
			if queues > 0 {
				record.Queues = append(record.Queues, replay.QueueSample{At: at, Queue: fmt.Sprint(hostile, i%queues), Held: []float64{1}})
			}
		}
		run := &results.Run{Name: fmt.Sprint(hostile, n), Result: &replay.Result{Summary: s, Record: record}}
		run.Jobs = []replay.Job{{ID: hostile, Queue: hostile, Runs: 1, Start: time.Duration(n) * time.Hour, Reason: hostile}}
		p.Runs = append(p.Runs, run)
	}
	for _, run := range p.Runs[1:] {
		p.Comparisons = append(p.Comparisons, results.Compare(p.Runs[0], run, 1))
	}
	values := make([]string, runs)
	for i := range values {
		values[i] = fmt.Sprint(hostile, i)
	}
	p.Sweep = results.NewSweep(hostile, values, p.Runs)
	p.Replicas = []*results.Replicas{{Policy: hostile, Summaries: []*replay.Summary{&p.Runs[0].Summary}}}
	return p
}

func write(t *testing.T, p *Page) string {
	t.Helper()
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestPage asserts that elements are closed in order and known, that attributes are quoted and not there twice, and that
// nothing is loaded from elsewhere or run, whatever names are.
func TestPage(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]*Page{
		"all parts":       hostilePage(3, 12, 50),
		"one policy":      {Workload: "w", Runs: hostilePage(1, 1, 2).Runs},
		"nothing to draw": {Workload: "w", Runs: hostilePage(1, 0, 0).Runs},
		"many policies":   hostilePage(12, 2, 10),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			page := write(t, p)
			if err := wellFormed(page); err != nil {
				t.Error(err)
			}
			for _, bad := range []string{"<script", "<img", "<link", "<iframe", "@import", "url(", "src=", "href=", "ZgotmplZ", "NaN", "Inf"} {
				if strings.Contains(strings.ReplaceAll(page, "&lt;img src=x", ""), bad) {
					t.Errorf("the page has %q", bad)
				}
			}
			if regexp.MustCompile(`\son\w+=`).MatchString(strings.ReplaceAll(page, " onerror=alert(1)&gt;", "")) {
				t.Error("the page has a handler of an event")
			}
			for _, want := range []string{"prefers-color-scheme: dark", `name="viewport"`, `<html lang="en">`} {
				if !strings.Contains(page, want) {
					t.Errorf("the page has no %s", want)
				}
			}
		})
	}
}

// wellFormed parses a page as XML, apart from the elements without an end in HTML, and looks for elements that HTML has not.
func wellFormed(page string) error {
	body, ok := strings.CutPrefix(page, "<!DOCTYPE html>\n")
	if !ok {
		return errors.New("the page does not begin with its type")
	}
	body = regexp.MustCompile(`(<meta[^>]*)>`).ReplaceAllString(body, "$1/>")
	known := strings.Fields(`html head meta title style body main section h1 h2 h3 p b div table thead tbody tr th td span ul li figure figcaption svg path rect`)
	decoder := xml.NewDecoder(strings.NewReader(body))
	decoder.Entity = xml.HTMLEntity
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		start, isStart := token.(xml.StartElement)
		if !isStart {
			continue
		}
		if !slices.Contains(known, start.Name.Local) {
			return fmt.Errorf("there is an element %s", start.Name.Local)
		}
		seen := map[string]bool{}
		for _, a := range start.Attr {
			if seen[a.Name.Local] {
				return fmt.Errorf("an element %s has the attribute %s twice", start.Name.Local, a.Name.Local)
			}
			seen[a.Name.Local] = true
		}
	}
}

// TestPageIsSmall asserts that the size does not grow with the length of a trace, and is at most 2 MB.
func TestPageIsSmall(t *testing.T) {
	t.Parallel()
	if size := len(write(t, hostilePage(8, 300, 100_000))); size > 2<<20 {
		t.Errorf("the page has %d bytes", size)
	}
}

func TestAverages(t *testing.T) {
	t.Parallel()
	// 1 in the first half, 3 in the second.
	got := averages([]step{{0, 1}, {50, 3}}, 0, 100)
	for i, mean := range got {
		if want := 1 + 2*float64(i/(bins/2)); mean < want-1e-9 || mean > want+1e-9 {
			t.Fatalf("bin %d is %v, want %v", i, mean, want)
		}
	}
	// The area is kept, whatever the width of a bin is.
	for _, end := range []float64{1, 7, 1e6 / 3, 1e9 + 1} {
		steps, area := []step{}, 0.
		for i := range 1000 {
			steps = append(steps, step{end * float64(i) / 1000, float64(i % 7)})
			area += float64(i%7) * end / 1000
		}
		sum, most := 0., 0.
		for _, mean := range averages(steps, 0, end) {
			sum += mean * end / bins
			most = max(most, mean)
		}
		if math.Abs(sum/area-1) > 1e-9 || most > 6 {
			t.Errorf("the area until %v is %v, want %v; the highest mean is %v", end, sum, area, most)
		}
	}
}

func TestTimeTicks(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		begin, end float64
		want       string
	}{
		{0, 60, "0s 15s 30s 45s 1m0s"}, {0, 4 * 3600, "0 h 1 h 2 h 3 h 4 h"}, {86400 * 1.5, 86400 * 30, "7 d 14 d 21 d 28 d"},
	} {
		var words []string
		for _, tick := range timeTicks(tc.begin, tc.end) {
			words = append(words, tick.Text)
			if tick.At < 0 || tick.At > 100 {
				t.Errorf("%s is at %v %%", tick.Text, tick.At)
			}
		}
		if got := strings.Join(words, " "); got != tc.want {
			t.Errorf("from %v to %v: %s, want %s", tc.begin, tc.end, got, tc.want)
		}
	}
}
