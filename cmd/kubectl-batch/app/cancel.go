// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/cmd/kubectl-batch/internal/explain"
	"github.com/batch-scheduler/batch-scheduler/cmd/kubectl-batch/internal/gang"
	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

func newCancelCommand(c cluster) *cobra.Command {
	return &cobra.Command{
		Use:   "cancel PODGROUP",
		Short: "Delete a PodGroup and the Jobs that own its pods",
		Long: `cancel deletes the Jobs that own pods of a PodGroup, pods without an owner, and
the PodGroup. It does not ask for confirmation. If another kind of object owns
a pod, cancel deletes nothing and reports an error.`,
		Example: `  kubectl batch cancel train
  kubectl batch cancel train -n research`,
		ValidArgsFunction: completeFirst(c, groupNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("cancel requires the name of one PodGroup; \"kubectl batch get podgroups\" lists them")
			}
			connected, namespace, err := open(c)
			if err != nil {
				return err
			}
			reader := explain.Reader{Core: connected.core, Batch: connected.batch, Namespace: namespace, Fresh: true}
			group, pods, err := reader.Members(cmd.Context(), args[0])
			if err != nil {
				return cmp.Or(ofAnotherAPI(cmd.Context(), connected, err, namespace, args[0]), advised(err, namespace))
			}
			owners, err := gang.OwnersOf(group, pods)
			if err != nil {
				return err
			}
			for _, d := range deletions(connected, group, owners) {
				err = remove(cmd.Context(), d.delete, d.object)
				switch {
				case err == nil:
					fmt.Fprintf(cmd.OutOrStdout(), "%s/%s deleted\n", d.kind, d.object.Name)
				case apierrors.IsNotFound(err) || apierrors.IsConflict(err): // the conflict is one of UIDs
					fmt.Fprintf(cmd.OutOrStdout(), "%s/%s is already deleted\n", d.kind, d.object.Name)
				default:
					return advised(err, namespace)
				}
			}
			return nil
		},
	}
}

type deletion struct {
	kind   string
	delete deleter
	object gang.Object
}

// deletions returns the objects in the order of deletion: owners of pods first, so that they create no new pods.
func deletions(in clients, group *v1alpha1.PodGroup, owners gang.Owners) []deletion {
	var list []deletion
	for _, job := range owners.Jobs {
		list = append(list, deletion{"job.batch", in.core.BatchV1().Jobs(group.Namespace).Delete, job})
	}
	for _, pod := range owners.Pods {
		list = append(list, deletion{"pod", in.core.CoreV1().Pods(group.Namespace).Delete, pod})
	}
	return append(list, deletion{
		"podgroup." + v1alpha1.GroupName, in.batch.SchedulingV1alpha1().PodGroups(group.Namespace).Delete,
		gang.Object{Name: group.Name, UID: group.UID},
	})
}

// deleter deletes an object by its name.
type deleter func(ctx context.Context, name string, options metav1.DeleteOptions) error

// remove deletes an object with all that it owns.
func remove(ctx context.Context, del deleter, o gang.Object) error {
	background := metav1.DeletePropagationBackground
	return del(ctx, o.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(o.UID)), PropagationPolicy: &background})
}

// ofAnotherAPI returns an error if a PodGroup that was not found exists in another API, else nil.
func ofAnotherAPI(ctx context.Context, connected clients, err error, namespace, name string) error {
	if !apierrors.IsNotFound(err) {
		return nil
	}
	if others, _ := connected.other.Find(ctx, namespace, name); len(others) > 0 { // what cannot be read is not found
		return fmt.Errorf("PodGroup %q is one of %s, and cancel deletes only those of %s; delete the object that has created it",
			name, others[0].API.Resource.Group, v1alpha1.GroupName)
	}
	return nil
}
