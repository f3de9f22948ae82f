// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Command demo shows batch-scheduler at work: it builds and starts a cluster of its own,
// runs the scheduler on it as a service account with the shipped role, submits
// config/samples, and shows what happens until all has come out right. See --help.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/batch-scheduler/batch-scheduler/cmd/demo/internal/app"
)

func main() {
	err := app.NewCommand(os.Stdout).Execute()
	if err == nil {
		return
	}
	fmt.Fprintf(os.Stderr, "demo: %v\n", err)
	if errors.Is(err, app.ErrInterrupted) {
		interrupt()
	}
	os.Exit(1)
}

// interrupt ends the process by SIGINT, as Ctrl-C ends a program that does not handle it: then a shell ends its script,
// and make does not report an error of the demo.
func interrupt() {
	signal.Reset(os.Interrupt)
	if syscall.Kill(os.Getpid(), syscall.SIGINT) == nil {
		time.Sleep(time.Second) // the signal ends the process meanwhile
	}
}
