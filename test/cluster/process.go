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

// tailLines is how many lines of output go with an error.
const tailLines = 20

// ProcessOptions say what process to start.
type ProcessOptions struct {
	// Path is the binary, Args its arguments without its own name.
	Path string
	Args []string

	// Env is added to the environment of this process.
	Env []string

	// Output is the file that receives what the process prints, on standard output and
	// standard error. Empty, it is thrown away.
	Output string

	// Container is what the process sees instead of this machine; nil, it sees all. Only root can start one.
	Container *Container

	stdout *os.File // instead of Output, for standard output
	leash  bool     // it stops by itself when its standard input ends, and so with this process
}

// Container is a process with a root directory, a user and an environment of its own. Path is below the root, and
// Env is all of the environment.
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
	err     error // of the wait; read it after done
}

// StartProcess starts a process. It runs until it ends by itself, or until Stop or Kill.
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

// PID returns the number by which the system knows the process.
func (p *Process) PID() int {
	return p.command.Process.Pid
}

// Wait waits for the end of the process and returns its exit code, -1 if a signal ended it.
// The error is not nil if the code is not zero, and carries the last lines of the output.
func (p *Process) Wait() (int, error) {
	<-p.done
	code := p.command.ProcessState.ExitCode()
	if p.err != nil {
		return code, fmt.Errorf("%s: %w%s", p.command.Path, p.err, p.tail())
	}
	return code, nil
}

// State returns what the system tells about the process now that it has ended: its exit code,
// the time and memory that it took. It is nil while the process runs.
func (p *Process) State() *os.ProcessState {
	select {
	case <-p.done:
		return p.command.ProcessState
	default:
		return nil
	}
}

// Signal sends a signal to the process. To one that has ended it does nothing.
func (p *Process) Signal(signal os.Signal) error {
	if err := p.command.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signalling %s: %w", p.command.Path, err)
	}
	return nil
}

// Stop asks the process to end, with SIGTERM, and waits. If it has not ended after the given
// time it is killed. The error tells whether it had to be, or ended with another code than
// zero, now or before.
func (p *Process) Stop(patience time.Duration) error {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		p.Kill()
		<-p.done
		return fmt.Errorf("%s did not stop within %s and was killed%s", p.command.Path, patience, p.tail())
	}
	_, err := p.Wait()
	return err
}

// Kill ends the process at once, with SIGKILL, and does not wait.
func (p *Process) Kill() {
	_ = p.command.Process.Kill() // it fails only if the process has ended
}

// tail returns the last lines of the output, to be put behind an error.
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
