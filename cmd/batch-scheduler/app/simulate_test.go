// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/simulate"
)

const little = `apiVersion: v1
kind: Node
metadata: {name: n1}
status: {capacity: {cpu: "1", memory: 1Gi, pods: "10"}}
---
apiVersion: scheduling.batch-scheduler.dev/v1alpha1
kind: Queue
metadata: {name: default}
---
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  schedulerName: batch-scheduler
  containers: [{name: main, image: busybox, resources: {requests: {cpu: "1"}}}]
`

func TestSimulate(t *testing.T) {
	objects := file(t, "objects.yaml", little)
	idle := file(t, "idle.yaml", "actions: backfill\ntiers: [{plugins: [{name: gang}, {name: predicates}]}]\n")
	for name, tc := range map[string]struct {
		given []string
		want  string // what stdout begins with
	}{
		"text":         {want: "built-in default: 2 cycles, 1 bound, 0 evicted, 0 pending\n"},
		"JSON":         {given: []string{"-o", "json"}, want: "{\n  \"configuration\": \"built-in default\",\n  \"cycles\": 2,\n"},
		"HTML":         {given: []string{"-o", "html"}, want: "<!DOCTYPE html>\n"},
		"two policies": {given: []string{"--compare", idle}, want: "First:  built-in default: 2 cycles, 1 bound, 0 evicted, 0 pending\nSecond: " + idle + ": 1 cycle, 0 bound, 0 evicted, 1 pending\n"},
		"other pods":   {given: []string{"--scheduler-name", "other"}, want: "built-in default: 1 cycle, 0 bound, 0 evicted, 0 pending\n"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := execute(nil, append([]string{"simulate", "--objects", objects}, tc.given...)...)
			if code != 0 || stderr != "" {
				t.Fatalf("exit code %d and stderr %q, want 0 and nothing", code, stderr)
			}
			if !strings.HasPrefix(stdout, tc.want) {
				t.Errorf("stdout is\n%s\nand should begin with\n%s", stdout, tc.want)
			}
		})
	}
}

// TestSimulateHasNoNulls checks that an empty list is never null in the JSON output.
func TestSimulateHasNoNulls(t *testing.T) {
	_, stdout, _ := execute(nil, "simulate", "--objects", file(t, "objects.yaml", little), "--compare", file(t, "same.yaml", "actions: allocate\n"), "-o", "json")
	var c simulate.Comparison
	if err := json.Unmarshal([]byte(stdout), &c); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(stdout, "null") {
		t.Error(stdout)
	}
}

func TestProgressIsPrintedOncePerSecond(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(time.Now())
	var b bytes.Buffer
	printf := oncePerSecond(clock, &b)
	for i := range 25 {
		printf("%d", i)
		clock.SetTime(clock.Now().Add(100 * time.Millisecond))
	}
	if diff := cmp.Diff("simulate: 10\nsimulate: 20\n", b.String()); diff != "" {
		t.Errorf("stderr (-want +got):\n%s", diff)
	}
}
