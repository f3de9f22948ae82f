// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/internal/typed"
)

// Devices tracks devices and their allocations: from claims in the informer, from claims in the assume cache, and
// from claims whose allocation is pending. Only the scheduler ensures that a device is allocated once. Devices
// therefore survives a reload of the configuration: allocations that the previous plugin has reserved but not written
// stay pending for the next plugin.
type Devices struct {
	fwk.SharedDRAManager
	factory informers.SharedInformerFactory
	claims  toolscache.ResourceEventHandlerRegistration

	extended *extendedClaims
	inUse    *inUse
	// slicesVersion counts changes of slices.
	slicesVersion atomic.Uint64
	// changed is called after each change of a claim or a slice that the plugin sees.
	changed func()

	// sharing serializes updates of the consumers of shared claims.
	sharing sync.Mutex
	// writing limits how many pods write their claims at the same time.
	writing *semaphore.Weighted

	mu      sync.Mutex
	pending map[types.UID]*allocation // by UID of the claim whose allocation is pending
}

// writers is how many pods write their claims at the same time, in the order of their reservations: those of one gang follow each
// other. Thousands of requests at once would each open a connection to the API server, and all gangs would be ready at the end.
const writers = 128

// NewDevices requests informers for claims, slices and device classes from the factory. The caller must start them
// afterwards. It calls changed after each change that the plugin sees.
func NewDevices(factory informers.SharedInformerFactory, changed func()) (*Devices, error) {
	ctx := context.Background()
	resources := factory.Resource().V1()
	slices, err := tracker.StartTracker(ctx, tracker.Options{SliceInformer: resources.ResourceSlices()})
	if err != nil {
		return nil, fmt.Errorf("reading resource slices: %w", err)
	}
	claims := assumecache.NewAssumeCache(klog.FromContext(ctx), resources.ResourceClaims().Informer(), "ResourceClaim", "", nil)
	d := &Devices{
		SharedDRAManager: dynamicresources.NewDRAManager(ctx, claims, slices, factory),
		factory:          factory,
		extended:         newExtendedClaims(),
		inUse:            newInUse(),
		writing:          semaphore.NewWeighted(writers),
		changed:          changed,
		pending:          map[types.UID]*allocation{},
	}
	d.claims = claims.AddEventHandler(typed.Handler(func(before, after *resourcev1.ResourceClaim) {
		d.inUse.show(before, after)
		defer d.changed()
		if after != nil {
			d.claimShown(after)
		} else {
			d.claimDeleted(before)
		}
	}))
	_, err = slices.AddEventHandler(typed.Handler(func(_, _ *resourcev1.ResourceSlice) {
		d.slicesVersion.Add(1)
		d.changed()
	}))
	return d, err
}

// UsesInformers reports whether the devices come from the factory; false for nil.
func (d *Devices) UsesInformers(factory informers.SharedInformerFactory) bool {
	return d != nil && d.factory == factory
}

// synced reports whether the informer has delivered all claims that existed at the start. Before, an allocated device
// may look free.
func (d *Devices) synced() bool { return d.claims.HasSynced() }

// ResourceClaims returns the claim tracker for the plugin.
func (d *Devices) ResourceClaims() fwk.ResourceClaimTracker {
	return pendingClaims{d.tracker(), d.extended}
}

// tracker returns kube-scheduler's claim tracker.
func (d *Devices) tracker() fwk.ResourceClaimTracker {
	return countedClaims{d.SharedDRAManager.ResourceClaims(), d.inUse}
}

// pendingClaims returns claims whose allocation is pending as allocated. kube-scheduler delays other pods that share
// such a claim until it is allocated. Members of a gang cannot wait for each other: they are placed where the devices
// of the claim are, and added to its consumers once it is written.
type pendingClaims struct {
	fwk.ResourceClaimTracker
	extended *extendedClaims
}

func (p pendingClaims) Get(namespace, name string) (*resourcev1.ResourceClaim, error) {
	claim, err := p.ResourceClaimTracker.Get(namespace, name)
	if err != nil || claim.Status.Allocation != nil {
		return claim, err
	}
	pending := p.GetPendingAllocation(claim.UID)
	if pending == nil {
		return claim, nil
	}
	allocated := *claim
	allocated.Status.Allocation = pending
	return &allocated, nil
}

// MaybeRemoveClaimPendingAllocation is called by the plugin after it has written a claim or failed to. After a
// failure the devices stay pending until the reservation is released: the API server may have applied the update.
func (p pendingClaims) MaybeRemoveClaimPendingAllocation(claim types.UID, written bool) bool {
	return written && p.ResourceClaimTracker.MaybeRemoveClaimPendingAllocation(claim, true)
}

// claimsOf returns the existing claims of a pod, those with a pending allocation as allocated.
func (d *Devices) claimsOf(pod *v1.Pod) []*resourcev1.ResourceClaim {
	var list []*resourcev1.ResourceClaim
	for i := range pod.Spec.ResourceClaims {
		name, _, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i])
		if err != nil || name == nil {
			continue
		}
		if claim, err := d.ResourceClaims().Get(pod.Namespace, *name); err == nil {
			list = append(list, claim)
		}
	}
	return list
}

// pendingFor returns the reservations that allocate some of the claims.
func (d *Devices) pendingFor(claims []*resourcev1.ResourceClaim) []*allocation {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []*allocation
	for _, claim := range claims {
		if owner := d.pending[claim.UID]; owner != nil && !slices.Contains(list, owner) {
			list = append(list, owner)
		}
	}
	return list
}

// addPending records that the reservation allocates its own claims.
func (d *Devices) addPending(a *allocation) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, claim := range a.own {
		d.pending[claim.UID] = a
	}
}

// removePending reverts addPending and frees devices that are still pending.
func (d *Devices) removePending(a *allocation) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, claim := range a.own {
		if d.pending[claim.UID] == a {
			d.ResourceClaims().MaybeRemoveClaimPendingAllocation(claim.UID, true)
			delete(d.pending, claim.UID)
		}
	}
}
