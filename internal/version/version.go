// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package version names the build of a program.
package version

import (
	"fmt"
	"runtime/debug"
	"strings"
)

// Unknown is the version of a build that recorded none.
const Unknown = "unknown"

// stamped is what hack/build.sh writes into a program. It is empty after "go run" and "go install".
var stamped string //nolint:gochecknoglobals // only the linker sets it

// Version returns the version of this program as one word: the stamped one, else the one of the main module that the go
// command recorded, else Unknown.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return choose(stamped, info)
}

// Describe returns the version, the commit and the version of Go, as far as the build recorded them.
func Describe() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return Version()
	}
	return describe(stamped, info)
}

func describe(stamp string, info *debug.BuildInfo) string {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	var details []string
	if revision := settings["vcs.revision"]; revision != "" {
		if settings["vcs.modified"] == "true" {
			revision += " with changes"
		}
		details = append(details, "commit "+revision)
	}
	details = append(details, info.GoVersion)
	return fmt.Sprintf("%s (%s)", choose(stamp, info), strings.Join(details, ", "))
}

func choose(stamp string, info *debug.BuildInfo) string {
	if stamp != "" {
		return stamp
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	return Unknown
}
