// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import "syscall"

// apart puts the child in its own process group, so that Ctrl-C at a terminal reaches only this process, which then
// stops its children in order. It also makes the kernel end the child when its parent dies: with SIGTERM if gently,
// else with SIGKILL.
func apart(gently bool) *syscall.SysProcAttr {
	signal := syscall.SIGKILL
	if gently {
		signal = syscall.SIGTERM
	}
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: signal}
}
