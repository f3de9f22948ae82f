package app

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/batch-scheduler/batch-scheduler/cmd/kubectl-batch/internal/explain"
)

func newWhyCommand(c cluster) *cobra.Command {
	var allEvents bool
	cmd := &cobra.Command{
		Use:   "why GROUP | pod/NAME",
		Short: "Say why a group waits, and what would unblock it",
		Long: `why says of a group, or of a pod without one, what the scheduler says it waits
for, with the node that comes nearest; what would unblock it; which members wait
for something else; and what has happened to it. It only reads, and little.`,
		Example: `  kubectl batch why train                 # a group
  kubectl batch why train --events        # with events, however long that takes
  kubectl batch why train -n research     # in another namespace
  kubectl batch why pod/notebook          # a pod without a group`,
		ValidArgsFunction: completeFirst(c, groupNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("why takes one group, or one pod as pod/NAME; kubectl batch get groups lists the groups")
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
				return fmt.Errorf("why explains groups and pods, not %q: say GROUP or pod/NAME", kind)
			}
			facts, err := read(cmd.Context(), name)
			if err != nil {
				return advised(err, namespace)
			}
			fmt.Fprint(cmd.OutOrStdout(), facts.Text())
			return nil
		},
	}
	cmd.Flags().BoolVar(&allEvents, "events", false, "wait for the events of the group, also where the API server takes long to find them")
	return cmd
}
