// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"fmt"
	"strings"

	"github.com/batch-scheduler/batch-scheduler/cmd/demo/internal/verify"
	"github.com/batch-scheduler/batch-scheduler/internal/text"
)

// Verdict words the checks, each with its details below it.
func Verdict(v verify.Verdict, width int) []string {
	const margin = 10
	var lines []string
	for _, check := range v {
		lines = append(lines, fmt.Sprintf("  %-7s %s", check.State, check.Name))
		for _, detail := range check.Details {
			for _, line := range text.Wrap(detail, width-margin-2) {
				lines = append(lines, strings.Repeat(" ", margin+2)+line)
			}
		}
	}
	return lines
}
