// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package replay runs the command "batch-scheduler simulate" for benchmarks, and draws a month of jobs on GPUs for it.
package replay

import (
	"bytes"
	"context"
	"fmt"

	"github.com/batch-scheduler/batch-scheduler/cmd/batch-scheduler/app"
)

// Run runs "batch-scheduler simulate" with these arguments, and returns its summary.
func Run(ctx context.Context, args ...string) (summary string, err error) {
	var written, said bytes.Buffer
	command := app.NewSchedulerCommand()
	command.SetContext(ctx)
	command.SetOut(&written)
	command.SetErr(&said)
	command.SetArgs(append([]string{"simulate"}, args...))
	if code := app.Execute(command); code != 0 {
		return "", fmt.Errorf("simulate: exit code %d: %s", code, said.String())
	}
	return written.String(), nil
}
