// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
)

// TestBasicJobsTwin: Jobs of independent pods, in random numbers and with random requests, priorities and queues. Policies
// with grouping make the same decisions as one without, with "job: basic" about all Jobs, and with "job: indexed" about
// Jobs that are not indexed (IG8).
func TestBasicJobsTwin(t *testing.T) {
	dir := t.TempDir()
	objects := filepath.Join(dir, "objects.yaml")
	all := "[" + strings.Join(api.OwnerKindNames(), ", ") + "]"
	policies := map[string]string{}
	for name, grouping := range map[string]string{
		"off": "", "job": "grouping: {kinds: [job], job: basic}\n", "all": "grouping: {kinds: " + all + ", job: basic}\n",
		"indexed": "grouping: {kinds: " + all + ", job: indexed}\n",
	} {
		policies[name] = filepath.Join(dir, name)
		if err := os.WriteFile(policies[name], []byte(grouping+conf.DefaultYAML()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rapid.Check(t, func(r *rapid.T) {
		indexed := rapid.Bool().Draw(r, "indexed")
		if err := os.WriteFile(objects, []byte(drawJobs(r, indexed)), 0o600); err != nil {
			t.Fatal(err)
		}
		cluster := snapshot(t, objects)
		want := run(t, cluster, policies["off"])
		for _, name := range []string{"job", "all", "indexed"} {
			if name == "indexed" && indexed {
				continue // these are gangs
			}
			got := run(t, cluster, policies[name])
			if diff := cmp.Diff(fmt.Sprint(want.Bound, want.Evicted, want.Waiting), fmt.Sprint(got.Bound, got.Evicted, got.Waiting)); diff != "" {
				r.Errorf("policy %s (-off +got):\n%s", name, diff)
			}
		}
	})
}

// drawJobs returns nodes, queues and Jobs. Many do not fit.
func drawJobs(t *rapid.T, indexed bool) string {
	text := &strings.Builder{}
	for i := range rapid.IntRange(1, 4).Draw(t, "nodes") {
		fmt.Fprintf(text, "apiVersion: v1\nkind: Node\nmetadata: {name: n%d}\nstatus: {allocatable: {cpu: %q, pods: \"10\"}}\n---\n", i, fmt.Sprint(rapid.IntRange(1, 6).Draw(t, "cpu")))
	}
	for _, name := range []string{"default", "q"} {
		fmt.Fprintf(text, "apiVersion: scheduling.batch-scheduler.dev/v1alpha1\nkind: Queue\nmetadata: {name: %s}\n---\n", name)
	}
	for i := range rapid.IntRange(1, 5).Draw(t, "jobs") {
		size := rapid.IntRange(1, 5).Draw(t, "size")
		mode := "NonIndexed"
		if indexed {
			mode = "Indexed"
		}
		fmt.Fprintf(text, `apiVersion: batch/v1
kind: Job
metadata: {name: j%d, namespace: ns}
spec:
  completionMode: %s
  completions: %d
  parallelism: %d
  template:
    metadata: {labels: {scheduling.batch-scheduler.dev/queue: %s}}
    spec: {schedulerName: batch-scheduler, priority: %d, containers: [{name: c, image: i, resources: {requests: {cpu: %q}}}]}
---
`, i, mode, size, size, rapid.SampledFrom([]string{"default", "q"}).Draw(t, "queue"), rapid.IntRange(0, 2).Draw(t, "priority"), fmt.Sprint(rapid.IntRange(1, 3).Draw(t, "request")))
	}
	return text.String()
}
