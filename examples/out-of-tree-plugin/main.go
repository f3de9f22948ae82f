// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Command out-of-tree-plugin is a batch-scheduler with the plugin nodelabel; see docs/extending.md.
package main

import (
	"os"

	"github.com/batch-scheduler/batch-scheduler/cmd/batch-scheduler/app"
	"github.com/batch-scheduler/batch-scheduler/examples/out-of-tree-plugin/nodelabel"
)

func main() {
	os.Exit(app.Execute(app.NewSchedulerCommand(app.WithPlugin(nodelabel.Name, nodelabel.Spec()))))
}
