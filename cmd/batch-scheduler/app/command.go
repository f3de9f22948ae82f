// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package app is the batch-scheduler program: its command line, and the wiring of all components.
//
// A program with third-party plugins or actions has a main function like this one:
//
//	func main() {
//		os.Exit(app.Execute(app.NewSchedulerCommand(
//			app.WithPlugin("acme", framework.PluginSpec{New: acme.New}),
//		)))
//	}
package app

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	cliflag "k8s.io/component-base/cli/flag"
	logsapi "k8s.io/component-base/logs/api/v1"

	// The json value of --logging-format.
	_ "k8s.io/component-base/logs/json/register"

	"github.com/batch-scheduler/batch-scheduler/internal/text"
	"github.com/batch-scheduler/batch-scheduler/internal/version"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
)

const longHelp = `batch-scheduler places the pods of jobs on the nodes of a Kubernetes cluster: gangs
start together or not at all, and queues share the cluster in proportion to their weights.

It places only pods whose spec.schedulerName is its own, and runs beside other
schedulers. In a cluster, no flag is required; outside of a cluster, set --kubeconfig.
The policy (actions, tiers, plugins) is the file that --scheduler-conf names.`

// NewSchedulerCommand returns the command line of the scheduler with the given extensions.
func NewSchedulerCommand(extensions ...Option) *cobra.Command {
	program := newProgram(extensions)
	opts := NewOptions()
	cmd := &cobra.Command{
		Use:               "batch-scheduler",
		Short:             "A batch and gang scheduler for Kubernetes",
		Long:              longHelp,
		Version:           version.Describe(),
		Args:              noCommand,
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},

		SuggestionsMinimumDistance: maxTypos,

		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := opts.Validate(); err != nil {
				return usageError{cmd.CommandPath(), err}
			}
			if err := logsapi.ValidateAndApply(opts.Logging, nil); err != nil {
				return usageError{cmd.CommandPath(), err}
			}
			ctx, stop := signalContext(cmd.Context(), cmd.ErrOrStderr())
			defer stop()
			return program.run(ctx, opts)
		},
	}
	cmd.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{cmd.CommandPath(), err}
	})
	opts.AddFlags(cmd.Flags())
	cmd.Flags().SortFlags = false
	cmd.SetGlobalNormalizationFunc(cliflag.WordSepNormalizeFunc)
	cmd.AddCommand(newConfigCommand(program), newSimulateCommand(program), newVersionCommand())
	return cmd
}

// Execute runs the command with the arguments of the process and returns the exit code: 0, or 1 after an error. It
// prints the error to stderr: one line, preceded by a line for each problem if a configuration file is invalid.
func Execute(cmd *cobra.Command) int {
	err := cmd.Execute()
	if err == nil {
		return 0
	}
	var invalid *conf.Error
	if errors.As(err, &invalid) {
		fmt.Fprintln(cmd.ErrOrStderr(), invalid)
		err = fmt.Errorf("the scheduler configuration is refused: %s", text.Count(len(invalid.Problems), "problem", "problems"))
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "error: %s\n", strings.ReplaceAll(err.Error(), "\n", " "))
	return 1
}

// maxTypos is the greatest number of wrong letters for which cobra suggests a command.
const maxTypos = 2

// usageError is a mistake on the command line.
type usageError struct {
	command string
	err     error
}

// Error returns the text of the error and the command that prints the help text.
func (e usageError) Error() string {
	return fmt.Sprintf("%v; see %s --help", e.err, e.command)
}

// noCommand rejects arguments of a command that has subcommands and no arguments.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := ""
	if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
		hint = fmt.Sprintf("; did you mean %q?", similar[0])
	}
	return usageError{cmd.CommandPath(), fmt.Errorf("unknown command %q%s", args[0], hint)}
}
