// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/batch-scheduler/batch-scheduler/internal/version"
)

// userAgent returns the name of the program in audit logs and field managers of the API server.
func userAgent() string {
	return fmt.Sprintf("batch-scheduler/%s (%s/%s)", version.Version(), runtime.GOOS, runtime.GOARCH)
}

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  exactly(0, ""),
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintf(cmd.OutOrStdout(), "%s %s\n", cmd.Root().Name(), version.Describe())
		},
	}
}
