// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/ptr"
)

// restoreTimeout is how long the objects may take to go that Restore deletes. Usually it takes less than one second.
const restoreTimeout = 20 * time.Second

// State is which objects a cluster has.
type State struct {
	client    metadata.Interface
	resources []schema.GroupVersionResource
	objects   map[types.UID]object
}

// object is one of a State.
type object struct {
	resource        schema.GroupVersionResource
	namespace, name string
	version         string // of its spec
	finalizers      bool
}

// kept are kinds whose objects the control plane itself makes or changes at any time.
func kept() []string {
	return []string{"flowschemas", "prioritylevelconfigurations", "endpointslices", "endpoints", "componentstatuses", "apiservices"}
}

// lasting are kinds whose objects change what the API serves or allows, or take long to delete: a cluster that has new ones
// is not restored, nor one that has new objects with finalizers.
func lasting() []string {
	return []string{
		"customresourcedefinitions", "namespaces", "clusterroles", "clusterrolebindings", "roles", "rolebindings",
		"validatingadmissionpolicies", "validatingadmissionpolicybindings", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings",
		"validatingwebhookconfigurations", "mutatingwebhookconfigurations",
	}
}

// ReadState lists what a cluster has.
func ReadState(ctx context.Context, c *Cluster) (*State, error) {
	client, err := metadata.NewForConfig(c.RESTConfig())
	if err != nil {
		return nil, err
	}
	found, err := discovery.NewDiscoveryClientForConfigOrDie(c.RESTConfig()).ServerPreferredResources()
	if err != nil {
		return nil, err
	}
	s := &State{client: client}
	for _, list := range found {
		for _, r := range list.APIResources {
			if slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "delete") && !slices.Contains(kept(), r.Name) {
				s.resources = append(s.resources, schema.FromAPIVersionAndKind(list.GroupVersion, "").GroupVersion().WithResource(r.Name))
			}
		}
	}
	s.objects, err = s.list(ctx)
	return s, err
}

func (s *State) list(ctx context.Context) (map[types.UID]object, error) {
	objects := map[types.UID]object{}
	for _, r := range s.resources {
		list, err := s.client.Resource(r).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", r.Resource, err)
		}
		for i := range list.Items {
			o := &list.Items[i]
			if r.Resource == "leases" && o.Namespace == metav1.NamespaceSystem {
				continue // of the control plane
			}
			version := strconv.FormatInt(o.Generation, 10)
			if o.Generation == 0 { // the kind has none
				version = o.ResourceVersion
			}
			objects[o.UID] = object{r, o.Namespace, o.Name, version, len(o.Finalizers) > 0}
		}
	}
	return objects, nil
}

// Restore deletes what the cluster has not had in the state, so that it is as it was then. It is an error if that is not
// possible: because an object is missing that was there, or has changed, or because of objects that would take long to delete.
func (s *State) Restore(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, restoreTimeout)
	defer cancel()
	return wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		now, err := s.list(ctx)
		if err != nil {
			return false, err
		}
		for uid, before := range s.objects {
			if now[uid] != before {
				return false, fmt.Errorf("%s %s has changed", before.resource.Resource, before.name)
			}
			delete(now, uid)
		}
		return len(now) == 0, s.delete(ctx, now)
	})
}

// delete begins to delete objects.
func (s *State) delete(ctx context.Context, objects map[types.UID]object) error {
	var failed error
	for _, uid := range slices.Sorted(maps.Keys(objects)) {
		o := objects[uid]
		if slices.Contains(lasting(), o.resource.Resource) || o.finalizers {
			return fmt.Errorf("%s %s is new", o.resource.Resource, o.name)
		}
		err := s.client.Resource(o.resource).Namespace(o.namespace).Delete(ctx, o.name, metav1.DeleteOptions{
			GracePeriodSeconds: ptr.To[int64](0), Preconditions: &metav1.Preconditions{UID: &uid},
		})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}
