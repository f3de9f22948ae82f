#!/usr/bin/env bash
# SPDX-FileCopyrightText: The batch-scheduler Authors
# SPDX-License-Identifier: Apache-2.0
#
# Runs golangci-lint with .golangci.yaml over the module. Its version is in hack/tools/go.mod, a module of its own, so that the
# dependencies of the linters are not those of the scheduler. It is compiled from the Go module proxy and kept in bin/.
#
#   hack/lint.sh [FLAGS] [PACKAGES]    by default ./...; --fix repairs what can be repaired
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

linter=$PWD/bin/golangci-lint
(cd hack/tools && go build -ldflags='-s -w' -o "$linter" github.com/golangci/golangci-lint/v2/cmd/golangci-lint)
exec "$linter" run --allow-parallel-runners "$@"
