// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/batch-scheduler/batch-scheduler/cmd/kubectl-batch/internal/explain"
	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/groupapi"
)

// The help of why.
const (
	whyLong = `why explains the state of a PodGroup, or of a pod without a PodGroup: the reason
and message of the scheduler, the node with the smallest shortfall, advice, who
holds the topology domain that it waits for, the position in the order of the
queue, the last eviction, pods with another reason, and the history. It only
reads. "explain" is an alias.

Instead of the PodGroup you can name a pod of it, or an object of any kind whose
pod templates name it, such as a Job, a JobSet or a StatefulSet.

The PodGroup can be one of another API, such as Volcano. If several APIs have
one of this name, name the API with --source or in the kind.`

	whyExample = `  kubectl batch why train                 # a PodGroup
  kubectl batch why job/train             # the PodGroup of a Job
  kubectl batch explain train             # the same
  kubectl batch why train --events        # wait until all events are read
  kubectl batch why train -n research     # in another namespace
  kubectl batch why train -o json         # for programs
  kubectl batch why pod/notebook          # a pod without a PodGroup
  kubectl batch why train --source volcano`
)

func newWhyCommand(c cluster) *cobra.Command {
	var allEvents, verbose bool
	var output string
	var source sourceFlag
	cmd := &cobra.Command{
		Use:     "why PODGROUP | KIND/NAME",
		Aliases: []string{"explain"},
		Short:   "Explain why a PodGroup is pending, and what unblocks it",
		Long:    whyLong,
		Example: whyExample,

		ValidArgsFunction: completeFirst(c, groupNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("why requires the name of one PodGroup, or KIND/NAME; \"kubectl batch get podgroups\" lists the PodGroups")
			}
			if err := checkOutput(output); err != nil {
				return err
			}
			connected, namespace, err := open(c)
			if err != nil {
				return err
			}
			reader := explain.Reader{
				Core: connected.core, Batch: connected.batch, Other: connected.other, Namespace: namespace, Now: c.now,
				Source: source.only, AllEvents: allEvents,
			}
			facts, err := factsOf(cmd.Context(), c, reader, args[0])
			if err != nil {
				if name, _, ok := groupArgument(args[0]); ok && apierrors.IsNotFound(err) && !structured(output) {
					fmt.Fprint(cmd.OutOrStdout(), reader.Past(cmd.Context(), name))
				}
				return advised(err, namespace)
			}
			if structured(output) {
				return printDocument(cmd.OutOrStdout(), output, "Explanation", explain.NewAnswer(facts))
			}
			facts.Verbose = verbose
			fmt.Fprint(cmd.OutOrStdout(), facts.Text())
			return nil
		},
	}
	addOutputFlag(cmd, &output)
	source.addTo(cmd)
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "also print the plugins of the scheduler for which a PodGroup waits")
	cmd.Flags().BoolVar(&allEvents, "events", false, "wait until all events are read, which can take long in a large namespace")
	return cmd
}

// factsOf reads what there is about an argument of why: the name of a PodGroup, or KIND/NAME.
func factsOf(ctx context.Context, c cluster, r explain.Reader, argument string) (*explain.Facts, error) {
	if group, source, ok := groupArgument(argument); ok {
		if source != nil {
			r.Source = source
		}
		return r.Group(ctx, group)
	}
	kind, name, _ := strings.Cut(argument, "/")
	if isAny(kind, "pod", "pods", "po") {
		return r.Pod(ctx, name)
	}
	object, err := c.object(ctx, kind, r.Namespace, name)
	if err != nil {
		return nil, err
	}
	return r.Owner(ctx, object)
}

// groupArgument returns the name of the PodGroup that an argument of why names, the source that its kind names, nil if none,
// and whether it names a PodGroup.
func groupArgument(argument string) (name string, source *api.GroupSource, ok bool) {
	kind, name, qualified := strings.Cut(argument, "/")
	if !qualified {
		return argument, nil, true
	}
	kind, group, _ := strings.Cut(kind, ".") // -o name prints the full name
	switch {
	case isAny(kind, "compositepodgroup", "compositepodgroups"):
		return name, new(api.SourceComposite), true
	case !isAny(kind, groupWords()...):
		return name, nil, false
	case group == "":
		return name, nil, true
	case group == v1alpha1.GroupName:
		return name, new(api.SourceOwn), true
	}
	for _, a := range groupapi.All() {
		if a.Resource.Group == group {
			return name, &a.Source, true
		}
	}
	return name, nil, false
}
