// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/pager"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/client/clientset/versioned"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/groupapi"
)

// list requests all objects of a kind.
type list struct {
	resource string // as kubectl names it
	page     pager.ListPageFunc
}

// FromCluster lists the objects of a cluster, page by page. It only sends list requests.
func FromCluster(ctx context.Context, kube kubernetes.Interface, batch versioned.Interface, progress Progress) (*Objects, error) {
	o := newObjects(progress)
	for _, l := range lists(kube, batch) {
		if err := addAll(ctx, o, l); err != nil {
			return nil, err
		}
	}
	if needsTopologies(o) {
		err := addAll(ctx, o, list{"topologies", paged(batch.SchedulingV1alpha1().Topologies().List)})
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
	}
	return o, o.readFailureRules(ctx, kube)
}

func addAll(ctx context.Context, o *Objects, l list) error {
	err := pager.New(l.page).EachListItem(ctx, metav1.ListOptions{}, func(obj runtime.Object) error {
		return o.add(obj, l.resource, "the cluster")
	})
	if err != nil {
		return fmt.Errorf("listing %s: %w", l.resource, err)
	}
	return nil
}

// needsTopologies reports whether a PodGroup or a pod has a topology constraint. Like the scheduler, simulations read no
// topologies otherwise.
func needsTopologies(o *Objects) bool {
	for _, e := range o.entries {
		var group *api.Group
		switch object := e.Object.(type) {
		case *v1alpha1.PodGroup:
			group = api.OwnGroup(object)
		case *groupapi.Object:
			group = object.Group
		case *v1.Pod:
			if api.TopologyOf(object.Annotations) != nil {
				return true
			}
		}
		if group != nil && group.HasTopologyConstraint() {
			return true
		}
	}
	return false
}

// lists returns all kinds except Job, because the pods of Jobs exist in a cluster, see readFailureRules, and Topology, see
// needsTopologies.
func lists(kube kubernetes.Interface, batch versioned.Interface) []list {
	core, storage, devices, groups := kube.CoreV1(), kube.StorageV1(), kube.ResourceV1(), batch.SchedulingV1alpha1()
	return []list{
		{"namespaces", paged(core.Namespaces().List)},
		{"priorityclasses", paged(kube.SchedulingV1().PriorityClasses().List)},
		{"queues", paged(groups.Queues().List)},
		{"podgroups", paged(groups.PodGroups("").List)},
		{"nodes", paged(core.Nodes().List)},
		{"poddisruptionbudgets", paged(kube.PolicyV1().PodDisruptionBudgets("").List)},
		{"pods", paged(core.Pods("").List)},
		{"persistentvolumes", paged(core.PersistentVolumes().List)},
		{"persistentvolumeclaims", paged(core.PersistentVolumeClaims("").List)},
		{"storageclasses", paged(storage.StorageClasses().List)},
		{"csinodes", paged(storage.CSINodes().List)},
		{"csidrivers", paged(storage.CSIDrivers().List)},
		{"csistoragecapacities", paged(storage.CSIStorageCapacities("").List)},
		{"volumeattachments", paged(storage.VolumeAttachments().List)},
		{"deviceclasses", paged(devices.DeviceClasses().List)},
		{"resourceclaims", paged(devices.ResourceClaims("").List)},
		{"resourceslices", paged(devices.ResourceSlices().List)},
	}
}

func paged[L runtime.Object](get func(context.Context, metav1.ListOptions) (L, error)) pager.ListPageFunc {
	return func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return get(ctx, options)
	}
}
