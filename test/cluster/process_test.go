// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/batch-scheduler/batch-scheduler/test/cluster"
)

func TestProcess(t *testing.T) {
	const long = time.Minute
	for name, test := range map[string]struct {
		given       string // a shell script; it is stopped after it has printed "up"
		waitTimeout time.Duration
		code        int
		want        string // part of the error of Stop; empty: no error
	}{
		"ends with code 0 on SIGTERM":   {`trap 'exit 0' TERM; echo up; while :; do sleep 0.01; done`, long, 0, ""},
		"ends with an error on SIGTERM": {`trap 'echo broken; exit 3' TERM; echo up; while :; do sleep 0.01; done`, long, 3, "exit status 3:\n  up\n  broken"},
		"is ended by the signal":        {`echo up; exec sleep 60`, long, -1, "signal: terminated"},
		"does not end, and is killed":   {`trap '' TERM; echo up; while :; do sleep 0.01; done`, time.Millisecond, -1, "did not stop within 1ms and was killed:\n  up"},
		"has ended before, with code 0": {`echo up`, long, 0, ""},
		"has ended before, with error":  {`echo up; echo no such file >&2; exit 1`, long, 1, "exit status 1:\n  up\n  no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			output := filepath.Join(t.TempDir(), "output")
			process, err := cluster.StartProcess(cluster.ProcessOptions{Path: "/bin/sh", Args: []string{"-c", test.given}, Output: output})
			if err != nil {
				t.Fatal(err)
			}
			waitForOutput(t, output, "up")
			if strings.HasPrefix(name, "has ended") {
				<-process.Done()
			}
			err = process.Stop(test.waitTimeout)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want %q", err, test.want)
			}
			if code, _ := process.Wait(); code != test.code {
				t.Errorf("got code %d, want %d", code, test.code)
			}
		})
	}
}

func TestProcessErrorContainsTail(t *testing.T) {
	process, err := cluster.StartProcess(cluster.ProcessOptions{
		Path:   "/bin/sh",
		Args:   []string{"-c", `for i in $(seq 100); do echo line $i $WORD; done; exit 1`},
		Env:    []string{"WORD=over"},
		Output: filepath.Join(t.TempDir(), "output"),
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = process.Wait()
	if err == nil {
		t.Fatal("no error")
	}
	lines := strings.Split(err.Error(), "\n")
	got := []string{lines[1], lines[len(lines)-1]}
	if diff := cmp.Diff([]string{"  line 81 over", "  line 100 over"}, got); diff != "" {
		t.Errorf("first and last line (-want +got):\n%s", diff)
	}
}

func TestStartProcessMissingBinary(t *testing.T) {
	_, err := cluster.StartProcess(cluster.ProcessOptions{Path: "/nowhere/binary"})
	if err == nil || !strings.Contains(err.Error(), "/nowhere/binary") {
		t.Errorf("got error %v, want one that names the binary", err)
	}
}

func waitForOutput(t *testing.T, path, word string) {
	t.Helper()
	eventually(t, word+" is in the output", func(context.Context) (bool, error) {
		data, err := os.ReadFile(path)
		return strings.Contains(string(data), word), err
	})
}
