// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"os"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// Stderr returns a file for the current standard error, which stays valid when the standard error of the components
// is redirected to the log. A panic is written there as well.
func Stderr() *os.File {
	descriptor, err := unix.FcntlInt(2, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return os.Stderr
	}
	kept := os.NewFile(uintptr(descriptor), "stderr")
	_ = debug.SetCrashOutput(kept, debug.CrashOptions{}) // otherwise only the log contains a panic
	return kept
}

// redirectStderr redirects file descriptor 2 to the file, for components that ignore the log configuration.
func redirectStderr(file *os.File) error {
	return unix.Dup3(int(file.Fd()), 2, 0)
}
