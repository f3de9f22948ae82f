// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Command spark-operator runs the controllers of the Spark operator of Kubeflow as the command of that project does. It has
// no webhooks, whose setup does not compile with the version of controller-runtime that Kubernetes 1.36 needs.
package main

import (
	"log"

	"github.com/kubeflow/spark-operator/v2/cmd/operator/controller"
)

func main() {
	if err := controller.NewStartCommand().Execute(); err != nil {
		log.Fatal(err)
	}
}
