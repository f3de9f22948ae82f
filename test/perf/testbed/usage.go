// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Usage is the resource usage of a process, as reported by Linux.
type Usage struct {
	CPU      time.Duration // user and system, since its start
	Resident int64         // bytes, now
	Peak     int64         // bytes, maximum since its start
}

// ticks per second of the times in /proc, the same on all systems that Go runs on.
const ticks = 100

// UsageOf reads the usage of a process.
func UsageOf(pid int) (Usage, error) {
	var u Usage
	dir := "/proc/" + strconv.Itoa(pid)
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return u, err
	}
	_, rest, _ := strings.Cut(string(stat), ") ") // the name before may contain any character
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return u, fmt.Errorf("%s/stat has %d fields", dir, len(fields))
	}
	for _, field := range fields[11:13] { // utime and stime
		n, malformed := strconv.Atoi(field)
		if malformed != nil {
			return u, fmt.Errorf("%s/stat: %w", dir, malformed)
		}
		u.CPU += time.Duration(n) * time.Second / ticks
	}
	status, err := os.ReadFile(dir + "/status")
	if err != nil {
		return u, err
	}
	u.Resident, u.Peak = kibibytes(string(status), "VmRSS:"), kibibytes(string(status), "VmHWM:")
	return u, nil
}

// kibibytes returns an amount from a list of names and amounts, in bytes.
func kibibytes(status, name string) int64 {
	for line := range strings.Lines(status) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == name {
			n, _ := strconv.ParseInt(fields[1], 10, 64) // written by the kernel
			return n * 1024
		}
	}
	return 0
}
