// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

//go:build modules

// Package hack keeps modules in go.mod that no package of this module imports, but that commands run with "go run"
// need, or that k8s.io/kubernetes requires as v0.0.0: without them "go mod tidy" removes them, and then "go list -m
// all" fails.
package hack

import (
	_ "k8s.io/code-generator/pkg/namer"
	_ "k8s.io/cri-streaming/pkg/streaming"
	_ "k8s.io/kubectl/pkg/cmd" // of k8s.io/kubernetes/cmd/kubectl, which test/docs builds
	_ "k8s.io/sample-apiserver/pkg/apis/wardle"
)
