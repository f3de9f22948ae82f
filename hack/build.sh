#!/usr/bin/env bash
# SPDX-FileCopyrightText: The batch-scheduler Authors
# SPDX-License-Identifier: Apache-2.0
#
# Builds programs: "go build" with the flags that all builds of this repository share. The Makefile, the tests (test/cluster),
# the demo, hack/image and the Dockerfile build with it, so that none of them compiles what another has compiled.
#
#   hack/build.sh [FLAGS of go build] PACKAGE...
#
#   RELEASE=1  leaves the paths of this machine out of the programs, so that two machines build the same bytes, and builds
#              without C. Everything is compiled separately for it.
#   LDFLAGS    are further flags for the linker
#   VERSION    is the version to stamp instead of the one that git describes
#
# It runs in the working directory, which is in this module.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")

# Symbol tables and DWARF are for debuggers alone. ("go build -ldflags= PACKAGE" keeps them.)
ldflags="-s -w ${LDFLAGS:-}"

# Programs of other modules have no version of ours, and localcluster is not shipped. They are not linked again for each commit.
module=github.com/batch-scheduler/batch-scheduler
package=${!#}
version=$("$here/version.sh")
if [[ -n $version && ($package == .* || $package == "$module"/*) && $package != */cmd/localcluster && $package != */test/operators/* ]]; then
	ldflags+=" -X $module/internal/version.stamped=$version"
fi

release=()
if [[ -n ${RELEASE:-} ]]; then
	export CGO_ENABLED=0
	release=(-trimpath)
fi
exec go build ${release[@]+"${release[@]}"} -ldflags="$ldflags" "$@"
