// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Command reference generates a reference from the code and prints it: docs/metrics.md, docs/configuration.md or
// docs/reference/scheduling-v1alpha1.md.
//
//	go run ./hack/reference metrics|configuration|api
//
// It must run in the root of the module.
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 2 {
		fail("usage: reference metrics|configuration|api")
	}
	var err error
	switch os.Args[1] {
	case "metrics":
		writeMetrics()
	case "configuration":
		err = writeConfiguration(os.Stdout)
	case "api":
		err = writeAPI(os.Stdout)
	default:
		err = fmt.Errorf("there is no reference of %q", os.Args[1])
	}
	if err != nil {
		fail(err.Error())
	}
}

func fail(why string) {
	fmt.Fprintln(os.Stderr, why)
	os.Exit(1)
}
