// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

// Package app is the kubectl plugin: its commands, each a thin layer over a package in internal.
package app

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"

	"github.com/batch-scheduler/batch-scheduler/internal/version"
)

const long = `kubectl batch works with the PodGroups and Queues of batch-scheduler.

get, why, top and record only read. submit creates a Job with its PodGroup, and
cancel deletes them; no other command changes the cluster. convert translates
files.`

// completer is the name under which kubectl looks for a program that completes words after "kubectl batch".
const completer = "kubectl_complete-batch"

// NewCommand returns the command line. Nothing is connected before a command runs.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	flags := genericclioptions.NewConfigFlags(true)
	c := &configured{flags}
	cmd := newCommand(streams, c)
	flags.AddFlags(cmd.PersistentFlags())
	utilruntime.Must(cmd.RegisterFlagCompletionFunc("namespace", complete(c, namespaceNames)))
	return cmd
}

// newCommand returns the command line for a cluster, without the flags that say which.
func newCommand(streams genericiooptions.IOStreams, c cluster) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "kubectl-batch",
		Annotations:       map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl batch"},
		Short:             "Work with PodGroups and Queues of batch-scheduler",
		Long:              long,
		Version:           version.Describe(),
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	cmd.SetUsageTemplate(usageTemplate(cmd.UsageTemplate()))
	cmd.SetIn(streams.In)
	cmd.SetOut(streams.Out)
	cmd.SetErr(streams.ErrOut)
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
	})
	cmd.AddCommand(
		newGetCommand(c), newWhyCommand(c), newTopCommand(c),
		newSubmitCommand(c), newCancelCommand(c), newRecordCommand(c), newConvertCommand(), newCompletionCommand(), newOptionsCommand(), newVersionCommand(),
	)
	return cmd
}

// Execute runs the command line of a process and returns its exit code: 0, or 1 after an error, which is then
// on stderr in one line.
func Execute(args []string, streams genericiooptions.IOStreams) int {
	klog.SetLogger(logr.Discard()) // commands return errors, and the log of client-go would be mixed with the output
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cmd := NewCommand(streams)
	cmd.SetArgs(args[1:])
	if filepath.Base(args[0]) == completer {
		cmd.SetArgs(append([]string{cobra.ShellCompRequestCmd}, args[1:]...))
	}
	if err := cmd.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(streams.ErrOut, "error:", oneLine(err))
		return 1
	}
	return 0
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// oneOf requires a subcommand.
func oneOf(commands string) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return fmt.Errorf("%s: unknown resource %q; valid resources: %s", cmd.CommandPath(), args[0], commands)
		}
		return fmt.Errorf("%s requires a resource: %s; %s --help shows examples", cmd.CommandPath(), commands, cmd.CommandPath())
	}
}
