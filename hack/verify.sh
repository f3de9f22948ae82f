#!/usr/bin/env bash
# SPDX-FileCopyrightText: The batch-scheduler Authors
# SPDX-License-Identifier: Apache-2.0
#
# Fails if the tree differs from the output of the generators, gofmt, "go mod tidy" and "go vet". Writes no files; all
# checks run, and failed ones are listed at the end.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

failed=()

# check TITLE HINT COMMAND... runs the command and records the hint if it fails.
check() {
	local title=$1 hint=$2 start=$SECONDS
	shift 2
	if "$@"; then
		echo "ok    $title ($((SECONDS - start)) s)"
	else
		echo "FAIL  $title ($((SECONDS - start)) s)"
		failed+=("$title: $hint")
	fi
}

# generated runs the generators on a copy of their input and compares the result.
generated() {
	local copy
	copy=$(mktemp -d)
	# shellcheck disable=SC2064 # the directory of now
	trap "rm -rf '$copy'" RETURN
	mkdir "$copy/docs"
	cp -r go.mod go.sum hack config charts cmd internal pkg "$copy"
	hack/generate.sh "$copy" || return 1
	local same=true
	for path in pkg/apis pkg/client config/crd config/alerts charts docs/metrics.md docs/configuration.md docs/reference; do
		diff -r -u "$path" "$copy/$path" || same=false
	done
	$same
}

formatted() {
	local files
	files=$(gofmt -l .)
	if [[ -n $files ]]; then
		echo "$files"
		return 1
	fi
}

check "generated files" "run make generate" generated
check "gofmt" "run gofmt -w on the files above" formatted
check "licence headers" "run hack/headers.sh --write" hack/headers.sh
check "go.mod" "run go mod tidy" go mod tidy -diff
check "go vet" "see above" go vet ./...
check "chart" "see above; what it has in common with config/ is written by make generate" go test ./charts
check "architecture" "see above; the rules are in internal/architecture" go test ./internal/architecture

if ((${#failed[@]})); then
	echo
	printf 'verify: %s\n' "${failed[@]}" >&2
	exit 1
fi
