// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/batch-scheduler/batch-scheduler/cmd/kubectl-batch/internal/explain"
)

func newWhyCommand(c cluster) *cobra.Command {
	var allEvents, verbose bool
	cmd := &cobra.Command{
		Use:     "why PODGROUP | pod/NAME",
		Aliases: []string{"explain"},
		Short:   "Explain why a PodGroup is pending, and what unblocks it",
		Long: `why explains the state of a PodGroup, or of a pod without a PodGroup: the reason
and message of the scheduler, the node with the smallest shortfall, advice, the
position in the order of the queue, the last eviction, pods with another reason,
and the history. It only reads. "explain" is an alias.`,
		Example: `  kubectl batch why train                 # a PodGroup
  kubectl batch explain train             # the same
  kubectl batch why train --events        # wait until all events are read
  kubectl batch why train -n research     # in another namespace
  kubectl batch why pod/notebook          # a pod without a PodGroup`,
		ValidArgsFunction: completeFirst(c, groupNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("why requires the name of one PodGroup, or pod/NAME; \"kubectl batch get podgroups\" lists the PodGroups")
			}
			connected, namespace, err := open(c)
			if err != nil {
				return err
			}
			reader := explain.Reader{Core: connected.core, Batch: connected.batch, Namespace: namespace, Now: c.now, AllEvents: allEvents}
			read := reader.Group
			kind, name, qualified := strings.Cut(args[0], "/")
			switch {
			case !qualified:
				name = args[0]
			case isAny(kind, "pod", "pods", "po"):
				read = reader.Pod
			case !isAny(kind, groupWords()...):
				return fmt.Errorf("unknown resource %q; use PODGROUP or pod/NAME", kind)
			}
			facts, err := read(cmd.Context(), name)
			if err != nil {
				return advised(err, namespace)
			}
			facts.Verbose = verbose
			fmt.Fprint(cmd.OutOrStdout(), facts.Text())
			return nil
		},
	}
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "also print the plugins of the scheduler for which a PodGroup waits")
	cmd.Flags().BoolVar(&allEvents, "events", false, "wait until all events are read, which can take long in a large namespace")
	return cmd
}
