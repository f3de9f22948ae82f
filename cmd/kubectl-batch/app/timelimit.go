// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// timeLimit is the value of a flag for a time: a duration of Go, which may begin with days, or a time in a format of
// Slurm.
type timeLimit time.Duration

// String implements pflag.Value.
func (l *timeLimit) String() string {
	if *l == 0 {
		return "" // no default
	}
	return time.Duration(*l).String()
}

// Type implements pflag.Value.
func (l *timeLimit) Type() string { return "duration" }

// Set implements pflag.Value.
func (l *timeLimit) Set(text string) error {
	d, err := parseTime(text)
	*l = timeLimit(d)
	return err
}

var (
	withDays  = regexp.MustCompile(`^(\d{1,5})d(.*)$`)
	slurmTime = regexp.MustCompile(`^(?:(\d{1,5})-)?(\d{1,8})(?::(\d{1,8}))?(?::(\d{1,8}))?$`)
)

const day = 24 * time.Hour

// parseTime reads a duration such as 90m or 1d12h, or a time as sbatch does: minutes, minutes:seconds,
// hours:minutes:seconds, and days-hours with or without minutes and seconds.
func parseTime(text string) (time.Duration, error) {
	if d, err := time.ParseDuration(text); err == nil {
		return d, nil
	}
	if m := withDays.FindStringSubmatch(text); m != nil {
		d, err := time.ParseDuration(m[2])
		if m[2] == "" || err == nil && d >= 0 {
			return number(m[1])*day + d, nil
		}
	}
	m := slurmTime.FindStringSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("%q is not a time; valid forms: 90m, 12h, 1d12h, and those of Slurm, such as 90 (minutes), 12:00:00 and 1-12:00:00", text)
	}
	first, second, third := number(m[2]), number(m[3]), number(m[4])
	switch {
	case m[1] != "":
		return number(m[1])*day + first*time.Hour + second*time.Minute + third*time.Second, nil
	case m[4] != "":
		return first*time.Hour + second*time.Minute + third*time.Second, nil
	}
	return first*time.Minute + second*time.Second, nil
}

// number returns the value of a few digits, and 0 for none.
func number(digits string) time.Duration {
	n, _ := strconv.Atoi(digits)
	return time.Duration(n)
}
