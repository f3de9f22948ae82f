// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// completionTimeout bounds the requests of a completion.
const completionTimeout = 3 * time.Second

func newCompletionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh",
		Short: "Print a shell completion script",
		Long: `completion prints a script that completes commands, flags, and the names of
PodGroups, Queues and namespaces after "kubectl-batch" in your shell.

To complete "kubectl batch", kubectl runs a program with the name
` + completer + ` from the PATH. The plugin is that program if it
is linked under that name:

  ln -s "$(command -v kubectl-batch)" ~/.local/bin/` + completer,
		Example: `  source <(kubectl batch completion bash)   # in ~/.bashrc
  kubectl batch completion zsh > "${fpath[1]}/_kubectl-batch"`,
		ValidArgs: []string{"bash", "zsh"},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case slices.Equal(args, []string{"bash"}):
				return cmd.Root().GenBashCompletionV2(cmd.OutOrStdout(), true)
			case slices.Equal(args, []string{"zsh"}):
				return cmd.Root().GenZshCompletion(cmd.OutOrStdout())
			}
			return errors.New("completion requires the name of a shell: bash or zsh")
		},
	}
}

// names lists what a word may be.
type names func(ctx context.Context, c cluster) ([]string, error)

// complete completes every argument.
func complete(c cluster, list names) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		all, err := list(ctx, c)
		if err != nil {
			cobra.CompDebugln(err.Error(), true)
			return nil, cobra.ShellCompDirectiveError
		}
		fit := slices.DeleteFunc(all, func(name string) bool {
			return !strings.HasPrefix(name, begun) || slices.Contains(args, name)
		})
		return fit, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeFirst completes the first argument; there are no more.
func completeFirst(c cluster, list names) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(c, list)(cmd, args, begun)
	}
}

func queueNames(ctx context.Context, c cluster) ([]string, error) {
	connected, err := c.connect()
	if err != nil {
		return nil, err
	}
	return namesOf(connected.batch.SchedulingV1alpha1().Queues().List(ctx, fromCache()))
}

func namespaceNames(ctx context.Context, c cluster) ([]string, error) {
	connected, err := c.connect()
	if err != nil {
		return nil, err
	}
	return namesOf(connected.core.CoreV1().Namespaces().List(ctx, fromCache()))
}

func fromCache() metav1.ListOptions { return metav1.ListOptions{ResourceVersion: "0"} }

func namesOf(list runtime.Object, err error) ([]string, error) {
	if err != nil {
		return nil, err
	}
	var found []string
	err = meta.EachListItem(list, func(object runtime.Object) error {
		found = append(found, object.(metav1.Object).GetName())
		return nil
	})
	return found, err
}
