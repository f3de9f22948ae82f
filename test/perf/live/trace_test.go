// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestTraces reads an audit log with two gangs, of which the second is the slower one, and other requests.
func TestTraces(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	at := func(ms int) time.Time { return noon.Add(time.Duration(ms) * time.Millisecond) }
	line := func(received, answered int, verb, resource, subresource, name, stage string) string {
		return fmt.Sprintf(`{"stage":%q,"verb":%q,"objectRef":{"resource":%q,"subresource":%q,"name":%q},"requestReceivedTimestamp":%q,"stageTimestamp":%q}`,
			stage, verb, resource, subresource, name, at(received).Format(time.RFC3339Nano), at(answered).Format(time.RFC3339Nano))
	}
	const complete = "ResponseComplete"
	log := strings.Join([]string{
		line(3, 20, "create", "pods", "binding", "a-1", complete),
		line(2, 12, "create", "pods", "binding", "a-0", complete),
		line(1, 2, "patch", "pods", "status", "a-0", "Panic"), // no response
		line(-5, -1, "create", "pods", "", "a-1", complete),   // before the gang was complete
		line(-3, 4, "create", "events", "", "", complete),
		line(5, 90, "watch", "pods", "", "", complete),
		line(55, 70, "create", "pods", "binding", "b-0", complete),
		line(56, 57, "update", "queues", "status", "q", complete),
		line(99, 100, "update", "queues", "status", "q", complete), // later
	}, "\n")
	file := filepath.Join(t.TempDir(), "audit.log")
	if err := os.WriteFile(file, []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	requests, err := readRequests(file)
	if err != nil {
		t.Fatal(err)
	}
	s := newStarts()
	s.gangs["a"] = &start{complete: at(0), ended: at(22)}
	s.gangs["b"] = &start{complete: at(50), ended: at(75)}
	s.gangs["waits"] = &start{complete: at(50)}
	var got []string
	for _, trace := range s.traces(requests) {
		got = append(got, trace.String())
	}
	want := []string{
		"b: 25 ms; binds received 5 to 5, answered until 20, each 15 (at most 15); also 1 update queues/status",
		"a: 22 ms; binds received 2 to 3, answered until 20, each 10 (at most 17); also 1 create events",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
