package cluster

import "syscall"

// apart puts the child in a process group of its own, so that Ctrl-C at a terminal reaches this
// process alone, which then stops its children in order; and has the kernel end the child when
// its parent dies, however it dies: gently if the child can be trusted to end.
func apart(gently bool) *syscall.SysProcAttr {
	signal := syscall.SIGKILL
	if gently {
		signal = syscall.SIGTERM
	}
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: signal}
}
