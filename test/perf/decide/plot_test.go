// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/batch-scheduler/batch-scheduler/test/perf/figures"
)

func TestPlot(t *testing.T) {
	file := filepath.Join(t.TempDir(), "new", "growth.svg")
	all := []figures.Figure{
		{Name: "D1/gangs/cycle", Value: 200},
		{Name: "D6/01000-nodes/cost", Value: 2},
		{Name: "D6/16000-nodes/cost", Value: 4},
	}
	all = append(all, growth(all)...)
	if err := writePlot(file, all); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for _, want := range []string{">1000<", ">16000<", ">2.0<", ">4.0<", `points="50.0,143.3 430.0,76.7"`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing in\n%s", want, text)
		}
	}
	for decoder := xml.NewDecoder(strings.NewReader(text)); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestGrowth(t *testing.T) {
	for name, test := range map[string]struct {
		given []float64
		want  string
		ok    bool
	}{
		"one size is not compared":    {given: []float64{3}},
		"the largest to the smallest": {[]float64{2, 9, 4}, "2.00 times", true},
		"more than double":            {[]float64{2, 3, 5}, "2.50 times", false},
	} {
		t.Run(name, func(t *testing.T) {
			var list []figures.Figure
			for i, cost := range test.given {
				list = append(list, figures.Figure{Name: growthName(1000<<i) + "/cost", Value: cost})
			}
			got := growth(list)
			if test.want == "" {
				if len(got) > 0 {
					t.Errorf("got %v", got)
				}
				return
			}
			if len(got) != 1 || fmt.Sprintf("%.2f %s", got[0].Value, got[0].Unit) != test.want || got[0].OK != test.ok {
				t.Errorf("got %v", got)
			}
		})
	}
}
