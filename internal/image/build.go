// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Build builds the scheduler for Linux from the module whose root is the working directory: without cgo, so that it
// needs no other files, and with -trimpath, so that the result is the same on every machine.
func Build(ctx context.Context, output, architecture string) error {
	build := exec.CommandContext(ctx, "hack/build.sh", "-o", output, "github.com/batch-scheduler/batch-scheduler/cmd/batch-scheduler")
	build.Env = append(os.Environ(), "RELEASE=1", "GOOS=linux", "GOARCH="+architecture)
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the scheduler for %s: %w: %s", architecture, err, out)
	}
	return nil
}

// Version returns the version of the source tree of which the working directory is the root, which Build stamps into the
// binary. It is empty outside of a git repository.
func Version(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "hack/version.sh").Output()
	if err != nil {
		return "", fmt.Errorf("hack/version.sh: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}
