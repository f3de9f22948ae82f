// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/batch-scheduler/batch-scheduler/cmd/kubectl-batch/internal/show"
	"github.com/batch-scheduler/batch-scheduler/internal/version"
)

// usageTemplate is the template of cobra without the flags that all commands share, which are those of kubectl: "options"
// prints them. Lines are as long as a terminal is wide.
func usageTemplate(template string) string {
	global := template[strings.Index(template, "{{if .HasAvailableInheritedFlags}}"):strings.Index(template, "{{if .HasHelpSubCommands}}")]
	template = strings.Replace(template, global, "", 1)
	template = strings.ReplaceAll(template, ".LocalFlags", ".LocalNonPersistentFlags")
	template = strings.ReplaceAll(template, ".FlagUsages", fmt.Sprint(".FlagUsagesWrapped ", show.Width))
	return template + "\nUse \"{{.Root.CommandPath}} options\" for the flags of all commands, such as --namespace.\n"
}

func newOptionsCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "options",
		Short:   "Print the flags that all commands have",
		Long:    "options prints the flags that all commands have. They are those of kubectl.",
		Example: "  kubectl batch options",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return errors.New("options accepts no arguments")
			}
			fmt.Fprint(cmd.OutOrStdout(), "All commands have these flags:\n\n", cmd.Root().PersistentFlags().FlagUsagesWrapped(show.Width))
			return nil
		},
	}
}

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of the plugin",
		Long:    "version prints the version, the commit and the version of Go of the plugin. It\nsends no request.",
		Example: "  kubectl batch version",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return errors.New("version accepts no arguments")
			}
			fmt.Fprintln(cmd.OutOrStdout(), cmd.Root().DisplayName(), "version", version.Describe())
			return nil
		},
	}
}
