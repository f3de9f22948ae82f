// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/batch-scheduler/batch-scheduler/test/cluster"
)

// TestCtrlCReachesNoChild checks the process group, because a terminal signals a whole group: a child that receives
// the signal of the terminal and that of its parent would treat the second one as an urgent request.
func TestCtrlCReachesNoChild(t *testing.T) {
	t.Parallel()
	output := filepath.Join(t.TempDir(), "group")
	p, err := cluster.StartProcess(cluster.ProcessOptions{
		Path:   "/bin/sh",
		Args:   []string{"-c", "cut -d' ' -f5 /proc/self/stat"}, // the process group of cut, which is that of the shell
		Output: output,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = p.Wait(); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(output)
	if err != nil {
		t.Fatal(err)
	}
	if group := strings.TrimSpace(string(got)); group == strconv.Itoa(syscall.Getpgrp()) {
		t.Errorf("the child is in process group %s, which is that of its parent", group)
	}
}
