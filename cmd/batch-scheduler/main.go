// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Command batch-scheduler is a batch and gang scheduler for Kubernetes. It places the pods whose spec.schedulerName is
// its own and ignores all others.
package main

import (
	"os"

	"github.com/batch-scheduler/batch-scheduler/cmd/batch-scheduler/app"
)

func main() {
	os.Exit(app.Execute(app.NewSchedulerCommand()))
}
