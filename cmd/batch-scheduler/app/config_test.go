// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// TestConfigCheckOfBrokenInput: what could be read before the error is not taken for a policy.
func TestConfigCheckOfBrokenInput(t *testing.T) {
	cmd := NewSchedulerCommand()
	var out, errs bytes.Buffer
	cmd.SetIn(io.MultiReader(strings.NewReader("actions: allocate\n"), iotest.ErrReader(errors.New("the pipe broke"))))
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	cmd.SetArgs([]string{"config", "check", "-"})
	code := Execute(cmd)
	const want = "error: reading the scheduler configuration: the pipe broke\n"
	if code != 1 || out.String() != "" || errs.String() != want {
		t.Errorf("exit code %d, stdout %q, stderr %q, want 1, nothing and %q", code, out.String(), errs.String(), want)
	}
}
