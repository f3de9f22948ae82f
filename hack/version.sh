#!/usr/bin/env bash
# SPDX-FileCopyrightText: The batch-scheduler Authors
# SPDX-License-Identifier: Apache-2.0
#
# Prints the version of the source tree, which hack/build.sh stamps into programs and hack/image into the image: $VERSION
# if it is set, else what git describes (v0.1.0, v0.1.0-12-gabc1234, with -dirty if there are changes), before the first tag
# v0.0.0-gabc1234, and nothing outside of a git repository.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [[ -n ${VERSION:-} ]]; then
	echo "$VERSION"
	exit
fi
git describe --tags --match 'v[0-9]*' --dirty 2>/dev/null && exit
commit=$(git describe --always --dirty --exclude '*' 2>/dev/null) || exit 0
echo "v0.0.0-g$commit"
