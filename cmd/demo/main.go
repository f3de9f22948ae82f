// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Command demo shows batch-scheduler at work: it builds and starts a cluster of its own,
// runs the scheduler on it as a service account with the shipped role, submits
// config/samples, and shows what happens until all has come out right. See --help.
package main

import (
	"fmt"
	"os"

	"github.com/batch-scheduler/batch-scheduler/cmd/demo/internal/app"
)

func main() {
	if err := app.NewCommand(os.Stdout).Execute(); err != nil {
		fmt.Fprintf(os.Stderr, "demo: %v\n", err)
		os.Exit(1)
	}
}
