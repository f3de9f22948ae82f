// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package cluster

import "syscall"

// apart puts the child in its own process group, so that Ctrl-C at a terminal reaches only this process, which then
// stops its children in order.
func apart(bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
