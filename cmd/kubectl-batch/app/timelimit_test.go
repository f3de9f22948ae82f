// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"testing"
	"time"
)

func TestParseTime(t *testing.T) {
	t.Parallel()
	const hour, minute, second = time.Hour, time.Minute, time.Second
	for text, want := range map[string]time.Duration{
		"90m": 90 * minute, "1h30m": 90 * minute, "2d": 48 * hour, "1d12h": 36 * hour, "0": 0,
		"90": 90 * minute, "90:30": 90*minute + 30*second, "12:00:01": 12*hour + second,
		"1-12": 36 * hour, "1-12:30": 36*hour + 30*minute, "1-12:30:05": 36*hour + 30*minute + 5*second, "0-00:00:10": 10 * second,
	} {
		if got, err := parseTime(text); err != nil || got != want {
			t.Errorf("%s: got %s and the error %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "12h30", "2d-1h", "1-", "-5", "1:2:3:4", "1 day", "1d1x", "2w", "9999999999"} {
		if got, err := parseTime(text); err == nil && got >= 0 {
			t.Errorf("%q: got %s, want an error", text, got)
		}
	}
}
