package upstream

import (
	"context"
	"fmt"
	"slices"
	"sync"

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
)

// Devices knows which devices there are, and which are taken: by claims as the API server shows them, by claims
// that were just written, and by claims for which allocations hold them. Nobody but the scheduler sees to it that
// a device is given away only once. So this is made once and outlives configurations: what a plugin of the last one
// holds and has not written yet is taken for those of the next one too.
type Devices struct {
	fwk.SharedDRAManager
	factory informers.SharedInformerFactory
	claims  toolscache.ResourceEventHandlerRegistration

	// sharing lets pods be added to claims that several pods may share, and taken off, one after the other.
	sharing sync.Mutex

	mu     sync.Mutex
	owners map[types.UID]*allocation // by claim that is about to be allocated
}

// NewDevices asks the factory for informers of claims, slices and classes of devices. They must be started
// afterwards.
func NewDevices(factory informers.SharedInformerFactory) (*Devices, error) {
	ctx := context.Background()
	resources := factory.Resource().V1()
	devices, err := tracker.StartTracker(ctx, tracker.Options{SliceInformer: resources.ResourceSlices()})
	if err != nil {
		return nil, fmt.Errorf("reading resource slices: %w", err)
	}
	claims := assumecache.NewAssumeCache(klog.FromContext(ctx), resources.ResourceClaims().Informer(), "ResourceClaim", "", nil)
	return &Devices{
		SharedDRAManager: dynamicresources.NewDRAManager(ctx, claims, devices, factory),
		factory:          factory,
		claims:           claims.AddEventHandler(toolscache.ResourceEventHandlerFuncs{}),
		owners:           map[types.UID]*allocation{},
	}, nil
}

// Of tells whether these are the devices that the factory shows; those of nobody are nobody's.
func (d *Devices) Of(factory informers.SharedInformerFactory) bool {
	return d != nil && d.factory == factory
}

// read tells whether all claims that existed at the start count. Before that a device that is taken may look free.
func (d *Devices) read() bool { return d.claims.HasSynced() }

// ResourceClaims is how the plugin sees claims.
func (d *Devices) ResourceClaims() fwk.ResourceClaimTracker {
	return promising{d.SharedDRAManager.ResourceClaims()}
}

// promising shows claims that are about to be allocated as if they were. kube-scheduler has other pods that share
// such a claim wait until it is. Members of a gang cannot wait for each other: they are placed where the devices of
// the claim will be, and added to it once it is written.
type promising struct{ fwk.ResourceClaimTracker }

func (p promising) Get(namespace, name string) (*resourcev1.ResourceClaim, error) {
	claim, err := p.ResourceClaimTracker.Get(namespace, name)
	if err != nil || claim.Status.Allocation != nil {
		return claim, err
	}
	pending := p.GetPendingAllocation(claim.UID)
	if pending == nil {
		return claim, nil
	}
	promised := *claim
	promised.Status.Allocation = pending
	return &promised, nil
}

// MaybeRemoveClaimPendingAllocation is told by the plugin that it has written a claim, or has failed to. In the second
// case the devices stay taken until the allocation is cancelled: perhaps only the answer was lost.
func (p promising) MaybeRemoveClaimPendingAllocation(claim types.UID, written bool) bool {
	return written && p.ResourceClaimTracker.MaybeRemoveClaimPendingAllocation(claim, true)
}

// claimsOf returns the claims of a pod that exist, promised ones as if they were allocated.
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

// ownersOf returns the allocations that are about to allocate some of the claims.
func (d *Devices) ownersOf(claims []*resourcev1.ResourceClaim) []*allocation {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []*allocation
	for _, claim := range claims {
		if owner := d.owners[claim.UID]; owner != nil && !slices.Contains(list, owner) {
			list = append(list, owner)
		}
	}
	return list
}

// own notes that the allocation is about to allocate its own claims.
func (d *Devices) own(a *allocation) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, claim := range a.own {
		d.owners[claim.UID] = a
	}
}

// disown ends what own began. Devices that the allocation still holds are free then.
func (d *Devices) disown(a *allocation) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, claim := range a.own {
		if d.owners[claim.UID] == a {
			d.ResourceClaims().MaybeRemoveClaimPendingAllocation(claim.UID, true)
			delete(d.owners, claim.UID)
		}
	}
}
