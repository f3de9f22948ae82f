// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/batch-scheduler/batch-scheduler/cmd/demo/internal/screen"
	"github.com/batch-scheduler/batch-scheduler/cmd/demo/internal/snapshot"
	"github.com/batch-scheduler/batch-scheduler/cmd/demo/internal/verify"
)

// Widths of what is printed.
const (
	lineWidth = 80  // where it is not known
	maxWidth  = 120 // longer lines are hard to read
)

// output prints for people: to a terminal, where it may redraw, or line by line.
type output struct {
	out      io.Writer
	fd       int
	terminal bool
}

func newOutput(file *os.File) output {
	fd := int(file.Fd())
	return output{out: file, fd: fd, terminal: term.IsTerminal(fd) && os.Getenv("TERM") != "dumb"}
}

func (o output) step(format string, args ...any) { fmt.Fprintf(o.out, format+"\n", args...) }

func (o output) detail(format string, args ...any) { fmt.Fprintf(o.out, "  "+format+"\n", args...) }

func (o output) blank() { fmt.Fprintln(o.out) }

// endLine begins a new line on a terminal, which has printed ^C or may have a line of progress.
func (o output) endLine() {
	if o.terminal {
		o.blank()
	}
}

// size is that of the terminal, or a usual one.
func (o output) size() screen.Size {
	if o.terminal {
		if width, height, err := term.GetSize(o.fd); err == nil && width > 0 && height > 1 {
			return screen.Size{Width: min(width, maxWidth), Height: height - 1} // the cursor is on the last line
		}
	}
	return screen.Size{Width: lineWidth, Height: 24 - 1}
}

// progress says now and then that something is still going on, until stop is called.
func (o output) progress(what string) (stop func()) {
	period := 30 * time.Second
	if o.terminal {
		period = time.Second
	}
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		start := time.Now()
		ticker := time.NewTicker(period)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				if o.terminal {
					fmt.Fprint(o.out, "\r\x1b[K")
				}
				return
			case <-ticker.C:
				text := fmt.Sprintf("  %s, %s", what, time.Since(start).Round(time.Second))
				if o.terminal {
					fmt.Fprint(o.out, "\r\x1b[K"+text)
				} else {
					fmt.Fprintln(o.out, text)
				}
			}
		}
	})
	return func() { close(done); running.Wait() }
}

// view returns a function that shows a scene: it redraws a frame on a terminal, and prints
// what has changed elsewhere.
func (o output) view() func(snapshot.Snapshot, time.Duration) {
	if !o.terminal {
		return o.changes(snapshot.Snapshot{})
	}
	drawn := 0
	return func(s snapshot.Snapshot, elapsed time.Duration) {
		lines := screen.Frame(s, elapsed, o.size())
		var b strings.Builder
		if drawn > 0 {
			fmt.Fprintf(&b, "\x1b[%dA", drawn) // up to where the last frame began
		}
		for _, line := range lines {
			b.WriteString(line + "\x1b[K\n") // what the last frame had there is erased
		}
		b.WriteString("\x1b[J")
		fmt.Fprint(o.out, b.String())
		drawn = len(lines)
	}
}

// changes returns a function that prints what has changed since the given scene.
func (o output) changes(since snapshot.Snapshot) func(snapshot.Snapshot, time.Duration) {
	changes := &screen.Changes{}
	changes.Lines(since, 0, lineWidth)
	return func(s snapshot.Snapshot, elapsed time.Duration) {
		for _, line := range changes.Lines(s, elapsed, o.size().Width) {
			fmt.Fprintln(o.out, line)
		}
	}
}

// summary prints the verdict.
func (o output) summary(v verify.Verdict, elapsed time.Duration) {
	fmt.Fprintf(o.out, "\nAfter %s:\n", elapsed.Round(time.Second))
	for _, line := range screen.Verdict(v, o.size().Width) {
		fmt.Fprintln(o.out, line)
	}
	if v.Right() {
		fmt.Fprintln(o.out, "The outcome is right.")
	}
}

// invite says what can be done now.
func (o output) invite(kubeconfig, log string) {
	fmt.Fprintf(o.out, `
The cluster runs until Ctrl-C. In another terminal:
  export KUBECONFIG=%s
  kubectl get podgroups -n batch-samples -o wide
  kubectl get queues
  kubectl describe podgroup too-big -n batch-samples
The scheduler logs to %s.
What changes from now on is printed here.
`, kubeconfig, log)
}
