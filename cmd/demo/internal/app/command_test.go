// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/batch-scheduler/batch-scheduler/cmd/demo/internal/verify"
)

func TestWrongFlags(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		given []string
		want  string // beginning of the error
	}{
		"no such flag":          {[]string{"--exti"}, "unknown flag: --exti (see go run ./cmd/demo --help)"},
		"an argument":           {[]string{"exit"}, `unknown command "exit" for "demo"`},
		"no nodes":              {[]string{"--nodes=0"}, "--nodes: 0 is not in 1 to 1000"},
		"too many nodes":        {[]string{"--nodes=1001"}, "--nodes: 1001 is not in 1 to 1000"},
		"no time":               {[]string{"--timeout=0s"}, "--timeout: 0s is not more than zero"},
		"a policy that is not":  {[]string{"--scheduler-conf=/none"}, "--scheduler-conf: stat /none: no such file or directory"},
		"a number that is none": {[]string{"--nodes=many"}, `invalid argument "many" for "--nodes" flag`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command := NewCommand(os.Stdout)
			command.SetArgs(test.given)
			command.SetOut(io.Discard)
			err := command.Execute()
			if err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("got error %v, want %s", err, test.want)
			}
		})
	}
}

func TestOutsideOfTheSourceTree(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	_, err := moduleRoot()
	if want := "is not in the source tree of batch-scheduler: run the demo from there"; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got error %v, want %s", err, want)
	}
}

func TestDeepInTheSourceTree(t *testing.T) {
	want, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	got, err := moduleRoot()
	if err != nil || got != want {
		t.Errorf("got %s and error %v, want %s", got, err, want)
	}
}

func TestHowARunEnds(t *testing.T) {
	t.Parallel()
	failure := errors.New("it broke")
	killed := exec.CommandContext(t.Context(), "sh", "-c", "kill -INT $$").Run()
	for name, test := range map[string]struct {
		cause error // of the end of the context, if that has ended
		err   error
		want  string
	}{
		"well":                         {want: ""},
		"badly":                        {err: failure, want: "it broke"},
		"by Ctrl-C, after the summary": {cause: ErrInterrupted, want: ""},
		"by Ctrl-C, in the middle":     {cause: ErrInterrupted, err: context.Canceled, want: "interrupted"},
		"by Ctrl-C, and badly":         {cause: ErrInterrupted, err: failure, want: "it broke"},
		"by Ctrl-C, in a build":        {err: fmt.Errorf("building: %w", killed), want: "interrupted"},
		"because the caller has ended": {cause: errors.New("the caller is gone"), err: context.Canceled, want: "the caller is gone"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			if test.cause != nil {
				cancel(test.cause)
			}
			got := ""
			if err := explainEnd(ctx, test.err); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestTheExitCodeIsTheVerdict(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		given verify.Verdict
		want  bool
	}{
		"all passed":       {verify.Verdict{{State: verify.Passed}, {State: verify.Passed}}, true},
		"one is open":      {verify.Verdict{{State: verify.Passed}, {State: verify.Open}}, false},
		"one has failed":   {verify.Verdict{{State: verify.Failed}, {State: verify.Passed}}, false},
		"one of each kind": {verify.Verdict{{State: verify.Failed}, {State: verify.Open}, {State: verify.Passed}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := wrong(test.given); (err == nil) != test.want {
				t.Errorf("got error %v, want none: %v", err, test.want)
			}
		})
	}
}

func TestAnEndedProcessEndsTheDemo(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	f := &follower{endings: []ending{{"the scheduler", ended, func() (int, error) { return 1, errors.New("exit status 1") }}}, start: time.Now()}
	if err := f.ended(t.Context()); err != nil {
		t.Errorf("while it runs: %v", err)
	}
	close(ended)
	if err := f.ended(t.Context()); err == nil || err.Error() != "the scheduler ended: exit status 1" {
		t.Errorf("got error %v", err)
	}
}
