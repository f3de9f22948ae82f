package app

import (
	"os"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// redirectStderr makes file descriptor 2 write to the file, for parts that log there
// whatever they are told. os.Stderr keeps pointing to where standard error was, and a panic
// goes there too.
func redirectStderr(file *os.File) error {
	terminal, err := unix.FcntlInt(2, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return err
	}
	os.Stderr = os.NewFile(uintptr(terminal), "stderr")
	if err := debug.SetCrashOutput(os.Stderr, debug.CrashOptions{}); err != nil {
		return err
	}
	return unix.Dup3(int(file.Fd()), 2, 0)
}
