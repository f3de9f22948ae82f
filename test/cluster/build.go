// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Build builds the command with the given import path and returns the path of the binary. With race it is a build for
// tests: with the race detector and the tag invariants, with which the scheduler audits its model after every cycle.
// The package must be in the module of the working directory.
//
// The binary is in the user's cache directory, one per source tree. Test packages and programs that run at the same
// time share it: the first one builds, the others wait, and an unchanged tree is not linked again. With an empty
// build cache localcluster takes minutes, so build it before tests with a timeout.
func Build(ctx context.Context, importPath string, race bool) (string, error) {
	binary, err := build(ctx, importPath, race)
	if err != nil {
		return "", fmt.Errorf("building %s: %w", importPath, err)
	}
	return binary, nil
}

func build(ctx context.Context, importPath string, race bool) (string, error) {
	module, err := golang(ctx, "list", "-m", "-f", "{{.Dir}}")
	if err != nil {
		return "", err
	}
	dir, err := cacheDir(module)
	if err != nil {
		return "", err
	}
	binary := filepath.Join(dir, path.Base(importPath))
	if race {
		binary += "-race"
	}
	flags, err := linkFlags(ctx)
	if err != nil {
		return "", err
	}
	unlock, err := lock(binary + ".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	args := []string{"-o", binary}
	if race { // for tests: with audits
		args = append(args, "-race", "-tags=invariants")
	}
	command := exec.CommandContext(ctx, filepath.Join(module, "hack", "build.sh"), append(args, importPath)...)
	command.Env = append(os.Environ(), "LDFLAGS="+flags)
	_, err = output(command)
	return binary, err
}

// linkFlags stamp the version of Kubernetes, which an API server reports.
func linkFlags(ctx context.Context) (string, error) {
	version, err := golang(ctx, "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes")
	if err != nil {
		return "", err
	}
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(parts) != 3 {
		return "", fmt.Errorf("version %q of k8s.io/kubernetes has no minor version", version)
	}
	const variables = "k8s.io/component-base/version."
	return strings.Join([]string{
		"-X " + variables + "gitVersion=" + version,
		"-X " + variables + "gitMajor=" + parts[0],
		"-X " + variables + "gitMinor=" + parts[1],
	}, " "), nil
}

// golang runs the go command and returns its output.
func golang(ctx context.Context, args ...string) (string, error) {
	return output(exec.CommandContext(ctx, "go", args...))
}

// output runs the command and returns what it prints.
func output(command *exec.Cmd) (string, error) {
	name := filepath.Base(command.Path) + " " + command.Args[1]
	out, err := command.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return "", fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(string(exit.Stderr)))
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// cacheDir returns the directory for the binaries of the source tree at the given path.
func cacheDir(module string) (string, error) {
	user, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(module))
	dir := filepath.Join(user, "batch-scheduler", "bin", hex.EncodeToString(sum[:8]))
	return dir, os.MkdirAll(dir, 0o700)
}

// lock waits for an exclusive lock on the file. The kernel releases it when the process ends.
func lock(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() { _ = file.Close() }, nil
}
