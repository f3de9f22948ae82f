// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/cmd/kubectl-batch/internal/show"
	"github.com/batch-scheduler/batch-scheduler/internal/text"
	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// groupWords are the names under which the commands accept PodGroups; the first is the preferred one.
func groupWords() []string { return []string{"podgroups", "podgroup", "pg", "groups", "group"} }

func isAny(word string, words ...string) bool { return slices.Contains(words, word) }

// getFormats are the output formats that only get has.
func getFormats() []string { return []string{formatWide, formatName, formatColumns, formatColumnsFile} }

// getOptions are the flags of get.
type getOptions struct {
	all, watch bool
	output     string
	selector   string
	sortBy     string
	source     sourceFlag // of PodGroups
	start      bool       // shows run times and starts of PodGroups
}

func newGetCommand(c cluster) *cobra.Command {
	var o getOptions
	get := &cobra.Command{
		Use:   "get",
		Short: "List PodGroups or Queues",
		Example: `  kubectl batch get podgroups                # of the current namespace
  kubectl batch get podgroups -A -o wide     # of all namespaces, with messages
  kubectl batch get podgroups train --watch  # and print each change
  kubectl batch get podgroups --start        # when they start, and run times
  kubectl batch get podgroups -l team=a --sort-by .metadata.creationTimestamp
  kubectl batch get pg -o custom-columns=NAME:.metadata.name,MIN:.spec.minMember
  kubectl batch get queues -o yaml`,
		RunE: oneOf("podgroups, queues"),
	}
	get.AddCommand(newGetGroupsCommand(c, &o), newGetQueuesCommand(c, &o))
	for _, cmd := range get.Commands() {
		addOutputFlag(cmd, &o.output, getFormats()...)
		cmd.Flags().StringVarP(&o.selector, "selector", "l", "", "label `SELECTOR`, such as team=a,tier!=test")
		cmd.Flags().StringVar(&o.sortBy, "sort-by", "", "sort by this `FIELD`, such as .spec.minMember (default by name)")
		cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "after the list, print changes until interrupted")
	}
	return get
}

func newGetGroupsCommand(c cluster, o *getOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "podgroups [NAME...]",
		Aliases: groupWords()[1:],
		Short:   "List PodGroups with phase and reason",
		Long: `podgroups lists the PodGroups of a namespace. RUN is the number of pods with a
node, PEND the number of pods without, MIN the number of pods that must start
together. -o wide adds the message of the scheduler, the position in the order
of the queue, and the last eviction.

--start shows when PodGroups start, and for how long they may run. START is the
start of those that have started, else the planned one, and LATEST when they
start at the latest; "-" is not known. LIMIT is the limit of the run time of
the PodGroup, else of its queue; the limits of single pods are not read.

PodGroups of other APIs are listed too, if the API server serves them and you
may read them. SOURCE is the API, as in groupSources of the policy; it is shown
if there are several, and with -o wide. "-" is what an API has no field for.`,
		Example: `  kubectl batch get podgroups
  kubectl batch get podgroups --source volcano
  kubectl batch get podgroups -A -o wide
  kubectl batch get podgroups train --watch`,
		ValidArgsFunction: complete(c, groupNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			connected, namespace, err := open(c)
			if err != nil {
				return err
			}
			if o.start && o.output != "" && o.output != formatWide {
				return errors.New("--start and -o cannot be combined, except for -o wide")
			}
			if o.all {
				namespace = metav1.NamespaceAll
			}
			parts, err := groupParts(cmd, connected, namespace, &o.source)
			if err != nil {
				return err
			}
			return lister[show.Group, *show.Group]{
				kind: "PodGroup", resource: v1alpha1.Resource("podgroups"), namespace: namespace,
				table: groupTable(cmd.Context(), connected, *o, len(parts) > 1), parts: parts,
			}.run(cmd, c, *o, args)
		},
	}
	o.source.addTo(cmd)
	cmd.Flags().BoolVar(&o.start, "start", false, "list when the PodGroups start, and for how long they may run")
	cmd.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "list the PodGroups of all namespaces")
	return cmd
}

// groupTable returns a function that shows PodGroups. Whether it shows their sources depends on the first table. So do the
// positions in the queues, which are as old as that.
func groupTable(ctx context.Context, connected clients, o getOptions, several bool) func([]show.Group, show.Options) text.Table {
	var queues map[string]*v1alpha1.Queue
	if o.output == formatWide || o.start {
		queues = queuesByName(ctx, connected)
	}
	first, sources := true, o.output == formatWide || o.watch && several
	return func(list []show.Group, options show.Options) text.Table {
		if first {
			sources = sources || show.SeveralSources(list)
		}
		options.Sources, options.Queues = sources, queues
		if o.start {
			return show.Starts(list, options)
		}
		first, queues = false, nil
		return show.Groups(list, options)
	}
}

// queuesByName reads all queues; nil if that is not possible, for the role may not allow it.
func queuesByName(ctx context.Context, connected clients) map[string]*v1alpha1.Queue {
	list, err := connected.batch.SchedulingV1alpha1().Queues().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil
	}
	queues := map[string]*v1alpha1.Queue{}
	for i := range list.Items {
		queues[list.Items[i].Name] = &list.Items[i]
	}
	return queues
}

func newGetQueuesCommand(c cluster, o *getOptions) *cobra.Command {
	return &cobra.Command{
		Use:     "queues [NAME...]",
		Aliases: []string{"queue", "q"},
		Short:   "List Queues with the number of PodGroups by phase",
		Long: `queues lists the Queues, which have no namespace. PEND and RUN are the numbers
of pending and running PodGroups. -o wide adds the allocated and deserved
resources of each Queue; "kubectl batch top queues" shows them as bars.`,
		Example: `  kubectl batch get queues
  kubectl batch get queues research -o yaml`,
		ValidArgsFunction: complete(c, queueNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			connected, err := c.connect()
			if err != nil {
				return err
			}
			queues := connected.batch.SchedulingV1alpha1().Queues()
			return lister[v1alpha1.Queue, *v1alpha1.Queue]{
				kind: "Queue", resource: v1alpha1.Resource("queues"), table: show.Queues,
				parts: []part[v1alpha1.Queue]{partOf(func(ctx context.Context, options metav1.ListOptions) ([]v1alpha1.Queue, string, error) {
					list, err := queues.List(ctx, options)
					if err != nil {
						return nil, "", err
					}
					return list.Items, list.ResourceVersion, nil
				}, queues.Watch, func(q v1alpha1.Queue) v1alpha1.Queue { return q })},
			}.run(cmd, c, *o, args)
		},
	}
}
