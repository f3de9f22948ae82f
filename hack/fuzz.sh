#!/usr/bin/env bash
# SPDX-FileCopyrightText: The batch-scheduler Authors
# SPDX-License-Identifier: Apache-2.0
#
# Fuzzes one target after the other, for 30 s each or for FUZZTIME. Inputs that make a target fail are written to
# testdata/fuzz of its package. Commit them: "make test" runs them too.
#
#   hack/fuzz.sh [PATTERN]    only the targets whose names match
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

pattern=${1:-.}
status=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# endOfTime reports whether a target failed only because its time was over, which Go before 1.27 sometimes reports as
# a failure on a busy machine (go.dev/issue/75804). Inputs that make a target fail are always written.
endOfTime() {
	grep -q '^    context deadline exceeded$' "$log" && ! grep -qiE 'failing input|panic|seed corpus' "$log"
}

while IFS=: read -r file target; do
	[[ $target =~ $pattern ]] || continue
	echo "--- $target in $(dirname "$file")"
	go test -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-30s}" -fuzzminimizetime 1s "./$(dirname "$file")" |
		tee "$log" || endOfTime || status=1
done < <(grep -rno --include='*_test.go' '^func Fuzz[A-Za-z]*' cmd internal pkg test | sed -E 's/^([^:]+):[0-9]+:func (.*)$/\1:\2/')
exit $status
