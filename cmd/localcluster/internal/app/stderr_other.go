//go:build !linux

package app

import "os"

// Stderr returns standard error.
func Stderr() *os.File {
	return os.Stderr
}

// redirectStderr leaves standard error alone: some parts will write a few lines there.
func redirectStderr(*os.File) error {
	return nil
}
