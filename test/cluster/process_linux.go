package cluster

import "syscall"

// dieWithParent has the kernel end the child when its parent dies, however it dies: gently
// if the child can be trusted to end.
func dieWithParent(gently bool) *syscall.SysProcAttr {
	signal := syscall.SIGKILL
	if gently {
		signal = syscall.SIGTERM
	}
	return &syscall.SysProcAttr{Pdeathsig: signal}
}
