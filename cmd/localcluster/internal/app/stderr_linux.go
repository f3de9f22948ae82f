package app

import (
	"os"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// Stderr returns a file that keeps writing to where standard error goes now, also when the
// parts of the cluster have theirs sent to the log. A panic goes there as well.
func Stderr() *os.File {
	descriptor, err := unix.FcntlInt(2, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return os.Stderr
	}
	kept := os.NewFile(uintptr(descriptor), "stderr")
	_ = debug.SetCrashOutput(kept, debug.CrashOptions{}) // else a panic is in the log alone
	return kept
}

// redirectStderr makes file descriptor 2 write to the file, for parts that log there
// whatever they are told.
func redirectStderr(file *os.File) error {
	return unix.Dup3(int(file.Fd()), 2, 0)
}
