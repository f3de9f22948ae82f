// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/cmd/kubectl-batch/internal/show"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/devicecounts"
)

// gpuOptions are the flags of top gpus.
type gpuOptions struct {
	output, resource, label string
}

func newTopGPUsCommand(c cluster) *cobra.Command {
	var o gpuOptions
	top := &cobra.Command{
		Use:     "gpus",
		Aliases: []string{"gpu"},
		Short:   "Show free GPUs, and how many pods still fit, by model",
		Long: `gpus shows a row for each model of GPUs: its nodes, all GPUs, and the free ones.
FIT1 to FIT8 are how many pods of 1, 2, 4 or 8 GPUs fit, each on one node, by
GPUs alone: their cpu and memory do not count. Nodes that are cordoned or not
ready have nothing free. What the scheduler reserves for a gang that waits
counts as free.

STRANDED are free GPUs on nodes that none of the usual pods fits: too few GPUs,
or too little cpu, memory or another resource is left there. FRAG is how many of
the free GPUs a usual pod cannot use, on average. The usual pods are those that
run or wait now, request GPUs, and may run on nodes of the model, without rare
ones. Without such pods, both are "-".

The model is the value of a node label that GPU operators or clouds set, such as
nvidia.com/gpu.product; "-" stands for nodes without one. GPUs of DRA drivers
count if a DeviceClass names the resource.

It reads the nodes, and the pods and resource claims of all namespaces.`,
		Example: `  kubectl batch top gpus
  kubectl batch top gpus --resource amd.com/gpu
  kubectl batch top gpus --model-label example.com/gpu-model
  kubectl batch top gpus -o json   # for programs`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return errors.New("top gpus accepts no names; it shows all models")
			}
			if err := checkOutput(o.output); err != nil {
				return err
			}
			list, err := o.usage(cmd, c)
			if err != nil {
				return err
			}
			if structured(o.output) {
				return printDocument(cmd.OutOrStdout(), o.output, "GPUUsageList", list)
			}
			if len(list.Items) == 0 {
				fmt.Fprintf(cmd.ErrOrStderr(), "No nodes with %s found; --resource names another resource.\n", list.Resource)
				return nil
			}
			for _, line := range show.TopGPUs(&list) {
				fmt.Fprintln(cmd.OutOrStdout(), line)
			}
			return nil
		},
	}
	addOutputFlag(top, &o.output)
	top.Flags().StringVar(&o.resource, "resource", "nvidia.com/gpu", "the extended `RESOURCE` of the GPUs")
	top.Flags().StringVar(&o.label, "model-label", "", "the node `LABEL` with the model; by default the first of the usual ones that a node has")
	return top
}

// usage reads what the command shows.
func (o *gpuOptions) usage(cmd *cobra.Command, c cluster) (show.GPUUsageList, error) {
	connected, err := c.connect()
	if err != nil {
		return show.GPUUsageList{}, err
	}
	nodes, pods, err := nodesAndPods(cmd.Context(), connected, "top gpus")
	if err != nil {
		return show.GPUUsageList{}, err
	}
	name := corev1.ResourceName(o.resource)
	devices, err := devicesOf(cmd, connected, name, nodes)
	if apierrors.IsForbidden(err) {
		fmt.Fprintf(cmd.ErrOrStderr(), "Warning: GPUs of DRA drivers are not counted: %v\n", err)
		devices, err = &devicecounts.Counts{}, nil
	}
	if err != nil {
		return show.GPUUsageList{}, advised(err, "")
	}
	labels := show.ModelLabels()
	if o.label != "" {
		labels = []string{o.label}
	}
	return show.GPUs(name, labels, nodes, pods, devices), nil
}

// devicesOf counts devices of DRA drivers. Unless a DeviceClass provides the resource, it reads nothing else.
func devicesOf(cmd *cobra.Command, connected clients, name corev1.ResourceName, nodes []corev1.Node) (*devicecounts.Counts, error) {
	ctx, resources := cmd.Context(), connected.core.ResourceV1()
	classes, err := resources.DeviceClasses().List(ctx, metav1.ListOptions{})
	switch {
	case apierrors.IsNotFound(err): // the API server does not serve them
		return &devicecounts.Counts{}, nil
	case err != nil:
		return nil, err
	case !devicecounts.Provided(name, classes.Items):
		return &devicecounts.Counts{}, nil
	}
	slices, err := resources.ResourceSlices().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	claims, err := resources.ResourceClaims("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return devicecounts.Of(name, &devicecounts.Objects{Nodes: nodes, Classes: classes.Items, Slices: slices.Items, Claims: claims.Items}), nil
}
