// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/pager"
	"sigs.k8s.io/yaml"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/model"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/ownerapi"
)

// owner is an object that may make gangs of its pods. Which ones depends on the policy.
type owner struct{ *unstructured.Unstructured }

// AddOwners lists the objects of a cluster that make gangs of their pods, of the kinds that it serves. It lists a kind once.
func AddOwners(ctx context.Context, o *Objects, client dynamic.Interface, grouping api.Grouping) error {
	for _, a := range ownerapi.RulesOf(grouping).APIs() {
		for _, version := range a.Resources {
			if o.ownersListed[a.Kind] {
				break
			}
			err := pager.New(paged(client.Resource(version).List)).EachListItem(ctx, metav1.ListOptions{}, func(obj runtime.Object) error {
				u, ok := obj.(*unstructured.Unstructured)
				if !ok {
					return fmt.Errorf("the cluster: unexpected %T", obj)
				}
				return o.add(&owner{u}, a.Kind, "the cluster")
			})
			if err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("listing %s: %w", version.GroupResource(), err)
			}
			o.ownersListed[a.Kind] = err == nil
		}
	}
	return nil
}

// addOwner adds the object that is in a document.
func addOwner(o *Objects, document []byte, at string) error {
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(document, u); err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	return o.add(&owner{u}, u.GetKind(), at)
}

// owners delivers to a model the objects that make gangs of their pods.
type owners struct {
	rules   *ownerapi.Rules // nil if the policy makes no such gangs
	cluster *model.Cluster
	warned  map[api.OwnerRef]bool
}

// set delivers an object if the policy makes gangs of its pods.
func (o *owners) set(u *unstructured.Unstructured) {
	for _, a := range o.rules.APIs() {
		if a.Kind == u.GetKind() {
			model.Owners(o.cluster).Set(a.Read(u))
		}
	}
}

// setJob does the same for a Job.
func (o *owners) setJob(job *batchv1.Job) {
	if o.rules == nil {
		return
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(job)
	if err != nil {
		return // it has been decoded from the same content
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetKind("Job")
	o.set(u)
}

// dropMissing tells the model that no other objects exist than those that were read, and returns a warning for each that pods
// name.
func (o *owners) dropMissing() []string {
	missing, _ := model.Owners(o.cluster).Missing()
	var warnings []string
	for _, ref := range missing {
		model.Owners(o.cluster).Gone(ref)
		if !o.warned[ref] {
			o.warned[ref] = true
			warnings = append(warnings, fmt.Sprintf("%s %s/%s is not among the objects, and its pods start one by one", ref.Kind, ref.Namespace, ref.Name))
		}
	}
	return warnings
}
