// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Build builds the scheduler for Linux from the module of the working directory: without cgo, so that it
// needs no other files, and with -trimpath, so that the result is the same on every machine.
func Build(ctx context.Context, output, architecture string) error {
	script, err := scriptPath(ctx, "build.sh")
	if err != nil {
		return err
	}
	build := exec.CommandContext(ctx, script, "-o", output, "github.com/batch-scheduler/batch-scheduler/cmd/batch-scheduler")
	build.Env = append(os.Environ(), "RELEASE=1", "GOOS=linux", "GOARCH="+architecture)
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the scheduler for %s: %w: %s", architecture, err, out)
	}
	return nil
}

// Version returns the version of the source tree of the working directory, which Build stamps into the binary. It is
// empty outside of a git repository.
func Version(ctx context.Context) (string, error) {
	script, err := scriptPath(ctx, "version.sh")
	if err != nil {
		return "", err
	}
	out, err := exec.CommandContext(ctx, script).Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", script, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// scriptPath returns the path of a script in hack/ of the module of the working directory.
func scriptPath(ctx context.Context, name string) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	return filepath.Join(filepath.Dir(strings.TrimSpace(string(out))), "hack", name), nil
}
