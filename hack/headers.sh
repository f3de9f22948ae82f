#!/usr/bin/env bash
# SPDX-FileCopyrightText: The batch-scheduler Authors
# SPDX-License-Identifier: Apache-2.0
#
# Checks that all Go files and shell scripts begin with the licence header of hack/boilerplate.go.txt, and names those that do
# not. With --write it adds the header to them. In a script the header follows the first line.
#
#   hack/headers.sh [--write]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

header=$(sed '/^$/d' hack/boilerplate.go.txt)

# begin HEADER FILE adds the header and an empty line at the top of a file.
begin() {
	printf '%s\n\n' "$1" | cat - "$2"
}

# follow HEADER FILE adds the header after the first line.
follow() {
	head -n 1 "$2"
	printf '%s\n' "$1"
	[[ $(sed -n 2p "$2") == '#'* ]] && echo '#'
	tail -n +2 "$2"
}

# add FUNCTION HEADER FILE has begin or follow write the file, which keeps its mode. The new file replaces the old one, because
# this script is among them.
add() {
	local new=$3.new
	cp -p "$3" "$new"
	"$1" "$2" "$3" >"$new"
	mv "$new" "$3"
}

mapfile -t missing < <(find . \( -name .git -o -name bin -o -name _artifacts -o -name testdata \) -prune -o \
	-type f \( -name '*.go' -o -name '*.sh' -o -path ./.ci/run \) -print0 | sort -z |
	xargs -0 grep -LE '^(//|#) SPDX-License-Identifier: ')

if [[ ${1:-} != --write ]]; then
	((${#missing[@]} == 0)) || printf '%s has no licence header\n' "${missing[@]}"
	exit $((${#missing[@]} > 0))
fi
for file in "${missing[@]}"; do
	case $file in
	*.go) add begin "$header" "$file" ;;
	*) add follow "${header//\/\//#}" "$file" ;;
	esac
done
