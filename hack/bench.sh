#!/usr/bin/env bash
# SPDX-FileCopyrightText: The batch-scheduler Authors
# SPDX-License-Identifier: Apache-2.0
#
# Measures how fast the scheduler decides, without a cluster, and then the scheduler on local clusters: how fast it
# binds 5,000 and 20,000 pending pods, how soon a gang starts, the throughput of arriving and ending gangs, how fast
# it evicts, and the memory. All figures are in _artifacts/bench.json and in the table at the end. Fails if a figure exceeds its bound.
#
#   hack/bench.sh [-short] [-profiles] [FLAGS]
#
# -short omits the 20,000 pods and shortens long measurements. -profiles writes profiles of the scheduler and of the
# cluster into _artifacts/profiles. FLAGS are passed to test/perf/decide.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

figures=_artifacts/bench.json
short=() profiles=() pairs=(7 5) # of the drains of 5,000 and of 20,000 pods
while [[ $# -gt 0 ]]; do
	case $1 in
	-short) short=(-short) pairs=(1) ;;
	-profiles) profiles=(-profiles _artifacts/profiles) ;;
	*) break ;;
	esac
	shift
done

# drain NODES GANGS PAIRS measures the binding of gangs of 50.
drain() {
	go run ./test/perf/drain -nodes "$1" -gangs "$2" -size 50 -repeat "$3" -at-least 0.85 -json "$figures" "${profiles[@]}"
}

rm -f "$figures"
status=0
go run ./test/perf/decide -json "$figures" "$@" || status=1
drain 500 100 "${pairs[0]}" || status=1
if [[ ${#short[@]} -eq 0 ]]; then
	drain 2000 400 "${pairs[1]}" || status=1
fi
go run ./test/perf/live "${short[@]}" -json "$figures" "${profiles[@]}" || status=1
exit $status
