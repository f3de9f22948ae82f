package app

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// buildVersion returns the version of the main module, the commit and the version of Go, as far as the build recorded
// them.
func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return unknownVersion
	}
	return describeBuild(info)
}

// unknownVersion is the version of a build that recorded none.
const unknownVersion = "unknown"

func describeBuild(info *debug.BuildInfo) string {
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
	return fmt.Sprintf("%s (%s)", moduleVersion(info), strings.Join(details, ", "))
}

// moduleVersion is a single word.
func moduleVersion(info *debug.BuildInfo) string {
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	return unknownVersion
}

// userAgent returns the name of the program in audit logs and field managers of the API server.
func userAgent() string {
	version := unknownVersion
	if info, ok := debug.ReadBuildInfo(); ok {
		version = moduleVersion(info)
	}
	return fmt.Sprintf("batch-scheduler/%s (%s/%s)", version, runtime.GOOS, runtime.GOARCH)
}

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  exactly(0, ""),
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintf(cmd.OutOrStdout(), "%s %s\n", cmd.Root().Name(), buildVersion())
		},
	}
}
