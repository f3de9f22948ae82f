// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Command out-of-tree-action is a batch-scheduler with the action single; see docs/extending.md.
package main

import (
	"os"

	"github.com/batch-scheduler/batch-scheduler/cmd/batch-scheduler/app"
	"github.com/batch-scheduler/batch-scheduler/examples/out-of-tree-action/single"
)

func main() {
	os.Exit(app.Execute(app.NewSchedulerCommand(app.WithAction(single.New()))))
}
