// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/batch-scheduler/batch-scheduler/cmd/kubectl-batch/internal/othergroups"
	"github.com/batch-scheduler/batch-scheduler/cmd/kubectl-batch/internal/show"
	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/groupapi"
)

// sourceFlag is the value of a flag for the source of PodGroups.
type sourceFlag struct {
	only *api.GroupSource // nil for all
}

// addTo adds the flag to a command.
func (f *sourceFlag) addTo(cmd *cobra.Command) {
	cmd.Flags().Var(f, "source", "only the PodGroups of this API: "+strings.Join(sourceNames(), ", "))
	utilruntime.Must(cmd.RegisterFlagCompletionFunc("source", cobra.FixedCompletions(sourceNames(), cobra.ShellCompDirectiveNoFileComp)))
}

// selects reports whether the groups of a source are asked for.
func (f *sourceFlag) selects(source api.GroupSource) bool {
	return f.only == nil || *f.only == source || *f.only == api.SourceNative && source == api.SourceComposite
}

// String implements pflag.Value.
func (f *sourceFlag) String() string {
	if f.only == nil {
		return ""
	}
	return f.only.String()
}

// Type implements pflag.Value.
func (f *sourceFlag) Type() string { return "SOURCE" }

// Set implements pflag.Value.
func (f *sourceFlag) Set(name string) error {
	for _, source := range api.AllSources() {
		if source.String() == name {
			f.only = &source
			return nil
		}
	}
	return fmt.Errorf("%q is not a source; valid sources: %s", name, strings.Join(sourceNames(), ", "))
}

func sourceNames() []string {
	var names []string
	for _, source := range api.AllSources() {
		names = append(names, source.String())
	}
	return names
}

// groupParts returns the APIs whose PodGroups are listed: those of the sources that are asked for and served.
func groupParts(cmd *cobra.Command, connected clients, namespace string, source *sourceFlag) ([]part[show.Group], error) {
	var parts []part[show.Group]
	if source.selects(api.SourceOwn) {
		groups := connected.batch.SchedulingV1alpha1().PodGroups(namespace)
		parts = append(parts, partOf(func(ctx context.Context, options metav1.ListOptions) ([]show.Group, string, error) {
			list, err := groups.List(ctx, options)
			if err != nil {
				return nil, "", err
			}
			var found []show.Group
			for i := range list.Items {
				found = append(found, ownGroup(list.Items[i]))
			}
			return found, list.ResourceVersion, nil
		}, groups.Watch, ownGroup))
		if source.only != nil {
			return parts, nil
		}
	}
	served, err := connected.other.Served(cmd.Context())
	if err != nil {
		return nil, err
	}
	for _, a := range served {
		if source.selects(a.Source) {
			parts = append(parts, otherPart(cmd, connected, namespace, a, source.only == nil))
		}
	}
	if len(parts) == 0 {
		return nil, fmt.Errorf("the API server does not serve %s, the API of the source %s", source.only.APIVersion(), source)
	}
	return parts, nil
}

func ownGroup(g v1alpha1.PodGroup) show.Group { return show.Group{PodGroup: g} }

// otherPart lists the groups of another API. If the user may not read them, it prints a warning, provided that they are
// optional.
func otherPart(cmd *cobra.Command, connected clients, namespace string, a *groupapi.API, optional bool) part[show.Group] {
	groups := connected.other.Dynamic.Resource(a.Resource).Namespace(namespace)
	as := func(raw unstructured.Unstructured) show.Group {
		g := othergroups.Read(a, &raw)
		shown := show.Group{PodGroup: *g.PodGroup, Source: a.Source, Raw: &raw}
		shown.Status = g.Shown()
		return shown
	}
	return partOf(func(ctx context.Context, options metav1.ListOptions) ([]show.Group, string, error) {
		list, err := groups.List(ctx, options)
		switch {
		case optional && apierrors.IsForbidden(err):
			fmt.Fprintf(cmd.ErrOrStderr(), "Warning: the PodGroups of %s are not listed: %v\n", a.Resource.Group, err)
			return nil, "", nil
		case err != nil:
			return nil, "", err
		}
		var found []show.Group
		for i := range list.Items {
			found = append(found, as(list.Items[i]))
		}
		return found, list.GetResourceVersion(), nil
	}, groups.Watch, as)
}

// groupNames lists the names of the PodGroups of all APIs that can be read.
func groupNames(ctx context.Context, c cluster) ([]string, error) {
	connected, namespace, err := open(c)
	if err != nil {
		return nil, err
	}
	names, err := namesOf(connected.batch.SchedulingV1alpha1().PodGroups(namespace).List(ctx, fromCache()))
	served, servedErr := connected.other.Served(ctx)
	if servedErr != nil {
		return names, err
	}
	for _, a := range served {
		list, listErr := connected.other.Dynamic.Resource(a.Resource).Namespace(namespace).List(ctx, fromCache())
		if listErr != nil {
			continue
		}
		for i := range list.Items {
			if name := list.Items[i].GetName(); !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names, err
}
