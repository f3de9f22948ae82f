//go:build !linux

package app

import "os"

// redirectStderr leaves standard error alone: some parts will write a few lines there.
func redirectStderr(*os.File) error {
	return nil
}
