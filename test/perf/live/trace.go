// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/batch-scheduler/batch-scheduler/test/perf/testbed"
)

// request is a line of the audit log of the API server.
type request struct {
	Verb      string `json:"verb"`
	ObjectRef struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	Received time.Time `json:"requestReceivedTimestamp"`
	Answered time.Time `json:"stageTimestamp"`
	Stage    string    `json:"stage"`
}

// readRequests reads the audit log, in the order in which the requests were received.
func readRequests(file string) ([]request, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var list []request
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if r.Stage == "ResponseComplete" && r.Verb != "watch" {
			list = append(list, r)
		}
	}
	slices.SortStableFunc(list, func(a, b request) int { return a.Received.Compare(b.Received) })
	return list, lines.Err()
}

// trace is what the API server did between the creation of a gang and its last bind. Times are in milliseconds after
// the creation.
type trace struct {
	gang                        string
	total                       float64 // until the watch showed the last bind
	firstBind, lastBind         float64 // received
	lastAnswer                  float64 // to a bind
	medianDuration, maxDuration float64 // of binds
	binds                       int
	others                      map[string]int // requests in the same time, by verb and resource
}

// traceOf returns the trace of a gang, from the requests that were answered while it started.
func traceOf(gang string, s *start, requests []request) trace {
	t := trace{gang: gang, total: milliseconds(s.ended.Sub(s.complete)), others: map[string]int{}}
	var durations []float64
	first, _ := slices.BinarySearchFunc(requests, s.complete.Add(-time.Second), func(r request, at time.Time) int { return r.Received.Compare(at) })
	for _, r := range requests[first:] {
		if r.Received.After(s.ended) {
			break
		}
		if r.Answered.Before(s.complete) {
			continue
		}
		if r.ObjectRef.Subresource != "binding" || !strings.HasPrefix(r.ObjectRef.Name, gang+"-") {
			t.others[strings.TrimSuffix(r.Verb+" "+r.ObjectRef.Resource+"/"+r.ObjectRef.Subresource, "/")]++
			continue
		}
		t.binds++
		received, answered := milliseconds(r.Received.Sub(s.complete)), milliseconds(r.Answered.Sub(s.complete))
		if t.binds == 1 {
			t.firstBind = received
		}
		t.lastBind, t.lastAnswer = received, max(t.lastAnswer, answered)
		durations = append(durations, answered-received)
	}
	slices.Sort(durations)
	t.medianDuration, t.maxDuration = quantile(durations, 0.5), quantile(durations, 1)
	return t
}

func (t trace) String() string {
	others := make([]string, 0, len(t.others))
	for _, name := range slices.Sorted(maps.Keys(t.others)) {
		others = append(others, fmt.Sprintf("%d %s", t.others[name], name))
	}
	return fmt.Sprintf("%s: %.0f ms; binds received %.0f to %.0f, answered until %.0f, each %.0f (at most %.0f); also %s",
		t.gang, t.total, t.firstBind, t.lastBind, t.lastAnswer, t.medianDuration, t.maxDuration, strings.Join(others, ", "))
}

// traces returns the traces of all gangs, the slowest first.
func (s *starts) traces(requests []request) []trace {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []trace
	for gang, start := range s.gangs {
		if !start.complete.IsZero() && !start.ended.IsZero() {
			list = append(list, traceOf(gang, start, requests))
		}
	}
	slices.SortFunc(list, func(a, b trace) int { return cmp.Or(cmp.Compare(b.total, a.total), cmp.Compare(a.gang, b.gang)) })
	return list
}

// tracesShown is how many of the slowest gangs are shown, besides one of the middle.
const tracesShown = 3

// showTraces shows what the slowest gangs consist of, next to one of the middle.
func showTraces(say testbed.Progress, who string, list []trace) {
	for i, t := range list {
		if i < tracesShown {
			say("%s, %d. slowest %s", who, i+1, t)
		} else if i == len(list)/2 {
			say("%s, median %s", who, t)
		}
	}
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }
