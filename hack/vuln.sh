#!/usr/bin/env bash
# SPDX-FileCopyrightText: The batch-scheduler Authors
# SPDX-License-Identifier: Apache-2.0
#
# Checks the module's dependencies for known vulnerabilities. Exit codes: 0 if there are none or the database is
# unreachable, which is reported; 1 if the tool is unavailable or fails; the code of govulncheck on findings.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tool=golang.org/x/vuln/cmd/govulncheck@v1.1.4
database=${GOVULNDB:-https://vuln.go.dev}

if [[ $database == http* ]]; then
	code=0
	curl --silent --show-error --fail --max-time 20 --output /dev/null "$database/index/db.json" || code=$?
	case $code in
	0) ;;
	5 | 6 | 7 | 28) # no such host, no connection, no answer
		echo "skipped: the vulnerability database $database cannot be reached, so nothing was looked for" >&2
		exit 0
		;;
	*)
		echo "the vulnerability database $database does not answer as it should" >&2
		exit 1
		;;
	esac
fi
exec go run "$tool" -db "$database" "$@" ./...
