#!/usr/bin/env bash
# Runs all tests that draw random cases with many more of them: 2,000 for each, of which 10,000 clusters for the test
# that evictions come to an end (it has five themes). Takes about five minutes on 2 cores. A failure is shrunk and written
# to testdata/rapid of its package, with how to repeat it.
#
#   hack/test-long.sh [FLAGS]    FLAGS go to go test; CHECKS=500 hack/test-long.sh makes fewer checks.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

checks=${CHECKS:-2000}
mapfile -t packages < <(go list -f '{{.ImportPath}} {{.TestImports}} {{.XTestImports}}' ./... | awk '/pgregory.net\/rapid/ {print $1}')
echo "--- $checks checks for each random test of ${#packages[@]} packages"
exec go test -count=1 -timeout 2h "$@" "${packages[@]}" -rapid.checks="$checks"
