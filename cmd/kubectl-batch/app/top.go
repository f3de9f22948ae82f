// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

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
		Short:   "Show the resource usage of Queues",
		Example: `  kubectl batch top queues`,
		RunE:    oneOf("queues"),
	}
	top.AddCommand(&cobra.Command{
		Use:     "queues",
		Aliases: []string{"queue", "q"},
		Short:   "Show weight, guarantee, deserved, allocated and cap of each Queue",
		Long: `queues shows a row for each Queue and resource: the weight of the Queue, its
guarantee (GUAR), its deserved and allocated amounts (ALLOC), and its capability
(CAP). SHARE is allocated relative to deserved. In the bars, = is allocated and
deserved, + is allocated beyond deserved (borrowed), - is deserved and not
allocated, . is the rest up to the capability.`,
		Example: `  kubectl batch top queues`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return errors.New("top queues accepts no names; it shows all Queues")
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
				fmt.Fprintln(cmd.ErrOrStderr(), "No queues found. An administrator creates them: kubectl apply -f config/default/queue.yaml")
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
