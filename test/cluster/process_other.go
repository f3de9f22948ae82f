//go:build !linux

package cluster

import "syscall"

func dieWithParent(bool) *syscall.SysProcAttr {
	return nil
}
