// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	nodeTable = "sn,cpu_milli,memory_mib,gpu,model\nn1,8000,8192,2,T4\nn2,8000,8192,0,\n"
	podTable  = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\np1,1000,1024,1,500,T4\np2,1000,1024,1,1000,\n"
)

// files writes both tables and returns the flags that name them.
func files(t *testing.T, nodes, pods string) []string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"nodes.csv": nodes, "pods.csv": pods} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return []string{"-nodes", filepath.Join(dir, "nodes.csv"), "-pods", filepath.Join(dir, "pods.csv")}
}

func TestRun(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if err := run(append(files(t, nodeTable, podTable), "-seeds", "2"), &stdout, &stderr); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(stdout.String()), "\n")
	if len(lines) != 4 || !strings.HasPrefix(lines[3], "Mean") || stderr.Len() > 0 {
		t.Errorf("output:\n%s%s", stdout.String(), stderr.String())
	}
}

func TestWrongInput(t *testing.T) {
	for name, tc := range map[string]struct{ nodes, pods, want string }{
		"no GPUs":          {strings.Replace(nodeTable, ",2,T4", ",0,T4", 1), podTable, "there are 0 GPUs"},
		"a missing column": {strings.Replace(nodeTable, "gpu,", "gpus,", 1), podTable, "nodes.csv:2: gpu: there is no such column"},
		"no number":        {nodeTable, strings.Replace(podTable, "1024", "1Gi", 1), `pods.csv:2: memory_mib: "1Gi" is no number`},
		"too large a part": {nodeTable, strings.Replace(podTable, ",500,", ",1500,", 1), "pods.csv:2: gpu_milli: must be 1 to 1000"},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout bytes.Buffer
			err := run(files(t, tc.nodes, tc.pods), &stdout, &stdout)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}
