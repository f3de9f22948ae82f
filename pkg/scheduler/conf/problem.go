// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"fmt"
	"strings"
)

// Error is everything that is wrong with one configuration, in the order of its lines.
type Error struct {
	// Source is the path of the file, or DefaultSource.
	Source   string
	Problems []Problem
}

// Error returns one line for every problem, in the form source:line: path: text.
func (e *Error) Error() string {
	lines := make([]string, 0, len(e.Problems))
	for _, p := range e.Problems {
		lines = append(lines, describe(e.Source, p.Line, p.Path, p.Text))
	}
	return strings.Join(lines, "\n")
}

// Problem is one reason to reject a configuration.
type Problem struct {
	Line int    // counted from 1
	Path string // of the field, such as tiers[0].plugins[1].name; empty for the file as a whole
	Text string
}

// Warning is something in a configuration that is valid and probably a mistake.
type Warning struct {
	Source string
	Line   int    // counted from 1
	Path   string // of the field; empty for the file as a whole
	Text   string
}

// String returns the warning in the form source:line: path: text.
func (w Warning) String() string {
	return describe(w.Source, w.Line, w.Path, w.Text)
}

func describe(source string, line int, path, text string) string {
	if path == "" {
		return fmt.Sprintf("%s:%d: %s", source, line, text)
	}
	return fmt.Sprintf("%s:%d: %s: %s", source, line, path, text)
}
