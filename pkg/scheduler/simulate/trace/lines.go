// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
)

// lines are the lines of a file, with their number for errors.
type lines struct {
	file    string
	number  int
	from    io.Reader
	scanner *bufio.Scanner
	skipped map[string]int // records that are left out, by reason
}

// longestLine is how many bytes a line may have.
const longestLine = 1 << 20

func newLines(file string, from io.Reader) *lines {
	scanner := bufio.NewScanner(from)
	scanner.Buffer(make([]byte, 0, 64<<10), longestLine)
	return &lines{file: file, from: from, scanner: scanner, skipped: map[string]int{}}
}

// next returns the next line that is not blank, and whether there is one.
func (l *lines) next() (string, bool) {
	for l.scanner.Scan() {
		l.number++
		if line := l.scanner.Text(); strings.TrimSpace(line) != "" {
			return line, true
		}
	}
	return "", false
}

// err returns why reading ended; nil at the end of the file.
func (l *lines) err() error {
	if err := l.scanner.Err(); err != nil {
		return fmt.Errorf("%s:%d: %w", l.file, l.number+1, err)
	}
	return nil
}

// errorf returns an error about the current line.
func (l *lines) errorf(format string, args ...any) error {
	return fmt.Errorf("%s:%d: %w", l.file, l.number, fmt.Errorf(format, args...))
}

// skip counts a record that is left out.
func (l *lines) skip(reason string) { l.skipped[reason]++ }

// notes returns what was left out, sorted.
func (l *lines) notes() []string {
	var notes []string
	for reason, n := range l.skipped {
		notes = append(notes, fmt.Sprintf("%d left out: %s", n, reason))
	}
	slices.Sort(notes)
	return notes
}

// longest is the largest number of seconds that a time may have: the clock of the simulation counts nanoseconds.
const longest = 100 * 365 * 24 * time.Hour

// seconds returns a time in seconds as a duration, in whole microseconds: a trace in another format has the same times.
func (l *lines) seconds(field string, value float64) (time.Duration, error) {
	switch {
	case !(value >= 0): // also NaN
		return 0, l.errorf("%s: must not be negative, but is %v", field, value)
	case value > longest.Seconds():
		return 0, l.errorf("%s: must be at most 100 years, but is %v seconds", field, value)
	}
	return time.Duration(math.Round(value*1e6)) * time.Microsecond, nil
}
