// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package app

import "os"

// Stderr returns standard error.
func Stderr() *os.File {
	return os.Stderr
}

// redirectStderr does nothing: some components write a few lines to standard error.
func redirectStderr(*os.File) error {
	return nil
}
