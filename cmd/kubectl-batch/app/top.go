package app

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/cmd/kubectl-batch/internal/show"
)

func newTopCommand(c cluster) *cobra.Command {
	top := &cobra.Command{
		Use:     "top",
		Short:   "Show what queues have of what they deserve",
		Example: `  kubectl batch top queues`,
		RunE:    oneOf("queues"),
	}
	top.AddCommand(&cobra.Command{
		Use:     "queues",
		Aliases: []string{"queue", "q"},
		Short:   "Show weight, guarantee, deserved, allocated and cap of each queue",
		Long: `queues shows a row for each queue and resource: its weight (WT), its guarantee,
what it deserves and holds, and its cap. SHARE is what is allocated of what is
deserved. In the bars = is allocated and deserved, + allocated beyond that,
which is borrowed, - deserved and not allocated, . the rest up to the cap.`,
		Example: `  kubectl batch top queues`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return errors.New("top queues shows all queues and takes no names")
			}
			connected, err := c.connect()
			if err != nil {
				return err
			}
			list, err := connected.batch.SchedulingV1alpha1().Queues().List(cmd.Context(), metav1.ListOptions{})
			if err != nil {
				return advised(err, "")
			}
			if len(list.Items) == 0 {
				fmt.Fprintln(cmd.ErrOrStderr(), "There are no queues. An administrator makes them: kubectl apply -f config/default/queue.yaml")
				return nil
			}
			for _, line := range show.Top(list.Items) {
				fmt.Fprintln(cmd.OutOrStdout(), line)
			}
			return nil
		},
	})
	return top
}
