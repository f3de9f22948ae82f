//go:build !linux

package cluster

import "syscall"

// apart puts the child in a process group of its own, so that Ctrl-C at a terminal reaches this
// process alone, which then stops its children in order.
func apart(bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
