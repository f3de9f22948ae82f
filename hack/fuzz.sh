#!/usr/bin/env bash
# Fuzzes one target after the other: 30 s each, or as long as FUZZTIME says. What makes a target fail is written to
# testdata/fuzz of its package, and belongs into the repository: from then on "make test" tries it too.
#
#   hack/fuzz.sh [PATTERN]    only the targets whose names match
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

pattern=${1:-.}
status=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# endOfTime tells whether a target failed for nothing but the end of its time, which Go before 1.27 now and then takes
# for a failure on a busy machine (go.dev/issue/75804). What makes a target fail is always written down.
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
