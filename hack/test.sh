#!/usr/bin/env bash
# SPDX-FileCopyrightText: The batch-scheduler Authors
# SPDX-License-Identifier: Apache-2.0
#
# Vets and tests the module. Arguments are passed to "go test".
#
# The race detector checks the code of this module. Packages that link an API server are tested without it: compiling
# all of Kubernetes a second time takes long and would only detect races in Kubernetes.
#
# Test results are never cached: the cache does not include the binaries that tests build and run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

server='k8s\.io/(kubernetes/cmd/kube-apiserver/|apiextensions-apiserver/pkg/registry/)'
packages=$(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{join .Deps " "}} {{join .TestImports " "}} {{join .XTestImports " "}}{{end}}' ./...)
plain=$(grep -E "$server" <<<"$packages" | cut -d' ' -f1 || true)
raced=$(grep -vE "$server|^$" <<<"$packages" | cut -d' ' -f1)

go vet ./...
status=0
# shellcheck disable=SC2086 # lists of packages are words
if [[ -n $plain ]]; then
	go test -count=1 -timeout 45m "$@" $plain || status=1
fi
# shellcheck disable=SC2086
go test -race -count=1 -timeout 45m "$@" $raced || status=1
exit $status
