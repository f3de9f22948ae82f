// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/batch-scheduler/batch-scheduler/test/cluster"
)

// runTimeout is for a run that takes half a minute on an idle machine.
const runTimeout = 4 * time.Minute

// TestDemo runs the demo as "make demo ARGS=--exit" does, and in ways that cannot end well.
func TestDemo(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	binary, err := cluster.Build(t.Context(), "github.com/batch-scheduler/batch-scheduler/cmd/demo", false)
	if err != nil {
		t.Fatal(err)
	}
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(policy, []byte("actions: alocate\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args     []string
		stopAt   string // the test stops the demo after this line, with SIGTERM or the given signal
		signal   syscall.Signal
		wantCode int
		want     []string // in the output
	}{
		"all comes out right": {
			args: []string{"--exit"},
			want: []string{"The outcome is right.", "too-big never started", "train-late started only after train-early"},
		},
		"the scheduler refuses its policy": {
			args: []string{"--exit", "--scheduler-conf=" + policy}, wantCode: 1,
			want: []string{"demo: the scheduler ended", `did you mean "allocate"?`},
		},
		"it is stopped after the summary": {
			stopAt: "What changes from now on is printed here.",
			want:   []string{"The outcome is right.", "Stopped\n"},
		},
		"it is stopped on the way": {
			stopAt: "Submitting config/samples", wantCode: 1,
			want: []string{`demo: stopped by the signal "terminated"`},
		},
		"Ctrl-C on the way": {
			stopAt: "Submitting config/samples", signal: syscall.SIGINT, wantCode: -1, // it ends by SIGINT
			want: []string{"demo: interrupted"},
		},
		"Ctrl-C after the summary": {
			stopAt: "What changes from now on is printed here.", signal: syscall.SIGINT,
			want: []string{"The outcome is right.", "Stopped\n"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			temporary := t.TempDir()
			code, output := run(t, binary, temporary, test.stopAt, cmp.Or(test.signal, syscall.SIGTERM), test.args...)
			if code != test.wantCode {
				t.Errorf("exit code %d, want %d", code, test.wantCode)
			}
			for _, want := range test.want {
				if !strings.Contains(output, want) {
					t.Errorf("the output does not contain %q", want)
				}
			}
			for line := range strings.Lines(output) {
				if width := utf8.RuneCountInString(strings.TrimRight(line, "\n")); width > 80 && code == 0 && !strings.Contains(line, temporary) {
					t.Errorf("%d columns: %s", width, line)
				}
			}
			left, err := filepath.Glob(filepath.Join(temporary, "*"))
			if err != nil || len(left) > 0 {
				t.Errorf("left behind: %q %v", left, err)
			}
			if t.Failed() {
				t.Logf("the output:\n%s", output)
			}
		})
	}
}

// run runs the demo to its end and returns its exit code and all that it printed.
func run(t *testing.T, binary, temporary, stopAt string, stop syscall.Signal, args ...string) (code int, output string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), runTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, binary, args...)
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = time.Minute
	command.Env = append(os.Environ(), "TMPDIR="+temporary)
	printed := &watchedBuffer{text: stopAt, found: func() { _ = command.Process.Signal(stop) }}
	command.Stdout, command.Stderr = printed, printed
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return command.ProcessState.ExitCode(), printed.buffer.String()
}

// watchedBuffer calls found once, when the text has been written to it. Both outputs of a
// command may share it, for os/exec writes to it from one goroutine then.
type watchedBuffer struct {
	buffer bytes.Buffer
	text   string
	found  func()
}

func (b *watchedBuffer) Write(p []byte) (int, error) {
	n, err := b.buffer.Write(p)
	if b.text != "" && strings.Contains(b.buffer.String(), b.text) {
		b.text = ""
		b.found()
	}
	return n, err
}
