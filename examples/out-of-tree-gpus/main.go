// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Command out-of-tree-gpus is a batch-scheduler with the plugin gpucards; see docs/extending.md.
package main

import (
	"os"

	"github.com/batch-scheduler/batch-scheduler/cmd/batch-scheduler/app"
	"github.com/batch-scheduler/batch-scheduler/examples/out-of-tree-gpus/gpucards"
)

func main() {
	os.Exit(app.Execute(app.NewSchedulerCommand(app.WithPlugin(gpucards.Name, gpucards.Spec()))))
}
