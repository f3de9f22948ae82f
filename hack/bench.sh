#!/usr/bin/env bash
# Measures how fast the scheduler decides, without a cluster, and then how fast it binds 5,000 waiting pods on a
# local one. All figures are in _artifacts/bench.json and in the table at the end. Fails if one is beyond its bound.
#
#   hack/bench.sh [FLAGS]    FLAGS go to test/perf/decide.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

figures=_artifacts/bench.json
rm -f "$figures"
status=0
go run ./test/perf/decide -json "$figures" "$@" || status=1
go run ./test/perf/drain -nodes 500 -gangs 100 -size 50 -at-least 600 -json "$figures" || status=1
exit $status
