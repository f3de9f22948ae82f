// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/cmd/kubectl-batch/internal/show"
	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	client "github.com/batch-scheduler/batch-scheduler/pkg/client/clientset/versioned/typed/scheduling/v1alpha1"
)

func newTopTopologyCommand(c cluster) *cobra.Command {
	output := ""
	top := &cobra.Command{
		Use:     "topology [NAME]",
		Aliases: []string{"topologies"},
		Short:   "Show the domains of Topologies and which PodGroups use them",
		Long: `topology shows for each level of a Topology, or of all, how many domains it has
and how many of them are whole: no pod of a Queue runs on their nodes. Below is
a row for each domain: its nodes, how many of them such pods use, how much is
free of GPUs, or of cpu if no node has GPUs, and the PodGroups that hold the
most of it. Nodes that are cordoned or not ready have nothing free. What the
scheduler reserves for a gang that waits counts as free.

It reads the nodes, and the pods of all namespaces.`,
		Example: `  kubectl batch top topology
  kubectl batch top topology default -o json   # for programs`,
		ValidArgsFunction: completeFirst(c, topologyNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return errors.New("top topology accepts at most one name")
			}
			if err := checkOutput(output); err != nil {
				return err
			}
			usages, err := topologyUsages(cmd, c, args)
			if err != nil {
				return err
			}
			if structured(output) {
				return printDocument(cmd.OutOrStdout(), output, "TopologyUsageList", map[string][]show.TopologyUsage{"items": usages})
			}
			if len(usages) == 0 {
				fmt.Fprintln(cmd.ErrOrStderr(), "No topologies found. An administrator creates them, see config/samples.")
			}
			for i := range usages {
				if i > 0 {
					fmt.Fprintln(cmd.OutOrStdout())
				}
				for _, line := range show.TopTopology(&usages[i]) {
					fmt.Fprintln(cmd.OutOrStdout(), line)
				}
			}
			return nil
		},
	}
	addOutputFlag(top, &output)
	return top
}

// topologiesOf returns the topology with a name, or all of them.
func topologiesOf(ctx context.Context, topologies client.TopologyInterface, names []string) ([]v1alpha1.Topology, error) {
	if len(names) == 1 {
		one, err := topologies.Get(ctx, names[0], metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return []v1alpha1.Topology{*one}, nil
	}
	list, err := topologies.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// topologyUsages reads what the command shows of all topologies, or of that with a name.
func topologyUsages(cmd *cobra.Command, c cluster, names []string) ([]show.TopologyUsage, error) {
	connected, err := c.connect()
	if err != nil {
		return nil, err
	}
	ctx := cmd.Context()
	found, err := topologiesOf(ctx, connected.batch.SchedulingV1alpha1().Topologies(), names)
	if err != nil {
		return nil, advised(err, "")
	}
	if len(found) == 0 {
		return []show.TopologyUsage{}, nil
	}
	nodes, pods, err := nodesAndPods(ctx, connected, "top topology")
	if err != nil {
		return nil, err
	}
	return show.Topologies(found, nodes, pods), nil
}

func topologyNames(ctx context.Context, c cluster) ([]string, error) {
	connected, err := c.connect()
	if err != nil {
		return nil, err
	}
	return namesOf(connected.batch.SchedulingV1alpha1().Topologies().List(ctx, fromCache()))
}
