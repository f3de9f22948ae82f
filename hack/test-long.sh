#!/usr/bin/env bash
# SPDX-FileCopyrightText: The batch-scheduler Authors
# SPDX-License-Identifier: Apache-2.0
#
# Runs all randomized tests with many more cases: 2,000 for each, 10,000 clusters for the test that evictions converge
# (it has five variants), and 20 million pairs of pod and node for the comparison with kube-scheduler. Takes about
# half an hour on 2 cores. A failure is shrunk and written to testdata/rapid of its package, with the command that
# repeats it.
#
#   hack/test-long.sh [FLAGS]    FLAGS go to go test; CHECKS=500 PAIRS=1000000 hack/test-long.sh does less.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

checks=${CHECKS:-2000}
pairs=${PAIRS:-20000000}
mapfile -t packages < <(go list -f '{{.ImportPath}} {{.TestImports}} {{.XTestImports}}' ./... | awk '/pgregory.net\/rapid/ {print $1}')
echo "--- $checks checks for each random test of ${#packages[@]} packages"
status=0
go test -count=1 -timeout 2h "$@" "${packages[@]}" -rapid.checks="$checks" || status=1
echo "--- $pairs pairs of pod and node"
go test -count=1 -timeout 2h -v -run VerdictsEqual "$@" ./test/oracle -pairs="$pairs" || status=1
exit $status
