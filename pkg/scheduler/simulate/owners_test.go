// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
)

// TestGangsOfOwners: a simulation reads the objects of the kinds that its policy lists. One node has the capacity for two pods.
func TestGangsOfOwners(t *testing.T) {
	const node = `apiVersion: v1
kind: Node
metadata: {name: node}
status: {allocatable: {cpu: "2", pods: "10"}}
---
apiVersion: scheduling.batch-scheduler.dev/v1alpha1
kind: Queue
metadata: {name: default}
---
`
	const template = `{schedulerName: batch-scheduler, containers: [{name: c, image: i, resources: {requests: {cpu: "1"}}}]}`
	set := func(size string) string {
		return "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: s, namespace: ns}\n" +
			"spec: {replicatedJobs: [{name: w, template: {spec: {parallelism: " + size + "}}}]}\n"
	}
	pods := ""
	for _, name := range []string{"a", "b"} {
		pods += "---\napiVersion: v1\nkind: Pod\nmetadata: {name: " + name + `, namespace: ns, labels: {jobset.sigs.k8s.io/jobset-name: s, jobset.sigs.k8s.io/replicatedjob-name: w},
  ownerReferences: [{apiVersion: batch/v1, kind: Job, name: s-w-0, uid: u, controller: true}]}` + "\nspec: " + template + "\n"
	}
	indexed := func(size string) string {
		return "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j, namespace: ns}\nspec: {completionMode: Indexed, completions: " + size + ", parallelism: " + size +
			", template: {spec: " + template + "}}\n"
	}
	for name, tc := range map[string]struct {
		objects, grouping string
		want              int // pods bound
		warning           string
	}{
		"JobSet":                {set("2") + pods, "{kinds: [jobset]}", 2, ""},
		"JobSet, too many":      {set("3") + pods, "{kinds: [jobset]}", 0, ""},
		"JobSet, not listed":    {set("3") + pods, "{kinds: [raycluster]}", 2, ""},
		"JobSet, not there":     {pods, "{kinds: [jobset]}", 2, "JobSet ns/s is not among the objects"},
		"JobSet of no TrainJob": {set("3") + pods, "{kinds: [trainjob]}", 2, ""},
		"indexed Job, too many": {indexed("3"), "{kinds: [job], job: indexed}", 0, ""},
		"indexed Job":           {indexed("2"), "{kinds: [job], job: indexed}", 2, ""},
		"indexed Job, basic":    {indexed("3"), "{kinds: [job], job: basic}", 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			objects, path := filepath.Join(dir, "objects.yaml"), filepath.Join(dir, "policy")
			for file, content := range map[string]string{objects: node + tc.objects, path: "grouping: " + tc.grouping + "\n" + conf.DefaultYAML()} {
				if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			result := run(t, snapshot(t, objects), path)
			if got := len(result.Bound); got != tc.want {
				t.Errorf("%d pods bound, want %d: %+v", got, tc.want, result.Waiting)
			}
			if warnings := strings.Join(result.Warnings, "\n"); strings.Contains(warnings, "not among the objects") != (tc.warning != "") || !strings.Contains(warnings, tc.warning) {
				t.Errorf("warnings %s, want %q", warnings, tc.warning)
			}
		})
	}
}
