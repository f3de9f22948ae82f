// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// tailLines is the number of lines of output in errors.
const tailLines = 20

// ProcessOptions configure a process.
type ProcessOptions struct {
	// Path is the binary, Args its arguments without the name.
	Path string
	Args []string

	// Env is added to the environment of this process.
	Env []string

	// Output is the file for standard output and standard error. If it is empty, the output is discarded.
	Output string

	// Container isolates the process from this machine; nil: no isolation. It requires root.
	Container *Container

	stdout *os.File // instead of Output, for standard output
	leash  bool     // it exits when its standard input is closed, and so with this process
}

// Container is a root directory, a user and an environment for a process. Path is relative to the root, and Env is
// the whole environment.
type Container struct {
	Root     string
	UID, GID uint32
}

// Process is a child process. On Linux it does not outlive this process.
type Process struct {
	command *exec.Cmd
	output  string
	stdin   io.Closer
	done    chan struct{}
	err     error // of Wait; valid after done
}

// StartProcess starts a process. It runs until it exits, or until Stop or Kill.
func StartProcess(o ProcessOptions) (*Process, error) {
	p := &Process{command: exec.Command(o.Path, o.Args...), output: o.Output, done: make(chan struct{})}
	p.command.Env = append(os.Environ(), o.Env...)
	p.command.SysProcAttr = apart(o.leash)
	if c := o.Container; c != nil {
		p.command.Env, p.command.Dir = o.Env, "/"
		p.command.SysProcAttr.Chroot = c.Root
		p.command.SysProcAttr.Credential = &syscall.Credential{Uid: c.UID, Gid: c.GID}
	}
	if o.Output != "" {
		output, err := os.Create(o.Output)
		if err != nil {
			return nil, fmt.Errorf("starting %s: %w", o.Path, err)
		}
		defer output.Close() // the child has its own
		p.command.Stdout, p.command.Stderr = output, output
	}
	if o.stdout != nil {
		p.command.Stdout = o.stdout
	}
	if o.leash {
		stdin, err := p.command.StdinPipe()
		if err != nil {
			return nil, fmt.Errorf("starting %s: %w", o.Path, err)
		}
		p.stdin = stdin
	}
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("starting: %w", err)
	}
	go func() {
		p.err = p.command.Wait()
		close(p.done)
	}()
	return p, nil
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} {
	return p.done
}

// PID returns the process ID.
func (p *Process) PID() int {
	return p.command.Process.Pid
}

// Wait waits for the end of the process and returns its exit code, -1 if a signal ended it. The error is not nil if
// the code is not zero, and contains the last lines of the output.
func (p *Process) Wait() (int, error) {
	<-p.done
	code := p.command.ProcessState.ExitCode()
	if p.err != nil {
		return code, fmt.Errorf("%s: %w%s", p.command.Path, p.err, p.tail())
	}
	return code, nil
}

// State returns the state of the process after its end: exit code, times and memory. It is nil while the process
// runs.
func (p *Process) State() *os.ProcessState {
	select {
	case <-p.done:
		return p.command.ProcessState
	default:
		return nil
	}
}

// Signal sends a signal to the process. It does nothing after the process has ended.
func (p *Process) Signal(signal os.Signal) error {
	if err := p.command.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signalling %s: %w", p.command.Path, err)
	}
	return nil
}

// Stop sends SIGTERM and waits. After the timeout it kills the process. It returns an error if the process was
// killed, or ended with another code than zero, now or before.
func (p *Process) Stop(timeout time.Duration) error {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		p.Kill()
		<-p.done
		return fmt.Errorf("%s did not stop within %s and was killed%s", p.command.Path, timeout, p.tail())
	}
	_, err := p.Wait()
	return err
}

// Kill sends SIGKILL and does not wait.
func (p *Process) Kill() {
	_ = p.command.Process.Kill() // it fails only if the process has ended
}

// tail returns the last lines of the output for errors.
func (p *Process) tail() string {
	if p.output == "" {
		return ""
	}
	data, err := os.ReadFile(p.output)
	if err != nil || len(data) == 0 {
		return ""
	}
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	return ":\n  " + strings.Join(lines[max(0, len(lines)-tailLines):], "\n  ")
}
