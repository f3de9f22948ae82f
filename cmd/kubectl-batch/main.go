// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Command kubectl-batch is a plugin of kubectl, "kubectl batch": it says why groups wait and what queues have,
// and submits and cancels gangs. Under the name kubectl_complete-batch it completes words for kubectl.
package main

import (
	"os"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/batch-scheduler/batch-scheduler/cmd/kubectl-batch/app"
)

func main() {
	os.Exit(app.Execute(os.Args, genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}))
}
