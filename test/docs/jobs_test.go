// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/batch-scheduler/batch-scheduler/internal/jobfailure"
)

// TestEvictedJobsComeBackSoon reads all Jobs of the documentation and the samples: an eviction of their pods ends none of
// them, and the Job controller creates the pods again as soon as it can, also in Jobs of one pod, which are copied.
func TestEvictedJobsComeBackSoon(t *testing.T) {
	t.Parallel()
	all := texts(t)
	for _, pattern := range []string{"*.yaml", filepath.Join("workloads", "*.yaml")} {
		paths, err := filepath.Glob(filepath.Join(root, "config", "samples", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for document := range strings.SplitSeq(string(data), "\n---\n") {
				all = append(all, text{at: path, text: document})
			}
		}
	}
	jobs := 0
	for _, y := range all {
		var job batchv1.Job
		if err := yaml.Unmarshal([]byte(y.text), &job); err != nil || job.Kind != "Job" || job.APIVersion != batchv1.SchemeGroupVersion.String() {
			continue
		}
		jobs++
		pods := max(ptr.Deref(job.Spec.Parallelism, 1), 7)
		if why := jobfailure.OfEviction(&job, pods); why != "" {
			t.Errorf("%s: an eviction would end Job %s: %s", y.at, job.Name, why)
		}
		if slow := jobfailure.SlowReturn(&job, pods); slow != "" {
			t.Errorf("%s: %s", y.at, slow)
		}
	}
	if jobs < 25 {
		t.Errorf("only %d Jobs found", jobs)
	}
}
