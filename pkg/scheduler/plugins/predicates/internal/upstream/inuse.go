// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"sync"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/ptr"
)

// inUse knows the devices that are allocated or about to be, by pool. kube-scheduler's claim tracker copies those of the
// whole cluster for each pod; a node needs those of its own pools. Its functions may be called concurrently.
//
// A claim counts as the informer or the assume cache shows it, and once more while its allocation is pending. Both may be
// the case at the same time, so that there is no moment at which an allocated device looks free.
type inUse struct {
	mu      sync.Mutex
	version uint64 // counts changes of claims
	pools   map[poolID]*usedPool
	pending map[types.UID]*resourcev1.AllocationResult
}

// poolID names a pool of devices.
type poolID struct{ driver, name string }

func poolOf(slice *resourcev1.ResourceSlice) poolID {
	return poolID{slice.Spec.Driver, slice.Spec.Pool.Name}
}

// usedPool has what is allocated of a pool. It exists from the first allocation or question on.
type usedPool struct {
	changed uint64 // version of the last change
	results map[use][]*resourcev1.DeviceRequestAllocationResult
	whole   map[string]int // how many results take a device as a whole, by its name
}

// use is a claim, as it is shown or pending.
type use struct {
	claim   types.UID
	pending bool
}

func newInUse() *inUse {
	return &inUse{pools: map[poolID]*usedPool{}, pending: map[types.UID]*resourcev1.AllocationResult{}}
}

// show records a change of a claim: before is nil for a new one, after for a deleted one.
func (u *inUse) show(before, after *resourcev1.ResourceClaim) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if before != nil {
		u.remove(use{before.UID, false}, before.Status.Allocation)
	}
	if after != nil {
		u.add(use{after.UID, false}, after.Status.Allocation)
	}
	u.version++
}

// setPending records the pending allocation of a claim; nil if it is not pending any more.
func (u *inUse) setPending(claim types.UID, allocation *resourcev1.AllocationResult) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.remove(use{claim, true}, u.pending[claim])
	u.add(use{claim, true}, allocation)
	if allocation == nil {
		delete(u.pending, claim)
	} else {
		u.pending[claim] = allocation
	}
	u.version++
}

func (u *inUse) remove(by use, allocation *resourcev1.AllocationResult) {
	u.each(allocation, func(p *usedPool, result *resourcev1.DeviceRequestAllocationResult) {
		delete(p.results, by)
		p.count(result, -1)
	})
}

func (u *inUse) add(by use, allocation *resourcev1.AllocationResult) {
	u.each(allocation, func(p *usedPool, result *resourcev1.DeviceRequestAllocationResult) {
		p.results[by] = append(p.results[by], result)
		p.count(result, +1)
	})
}

func (p *usedPool) count(result *resourcev1.DeviceRequestAllocationResult, by int) {
	if result.ShareID != nil {
		return
	}
	if p.whole[result.Device] += by; p.whole[result.Device] <= 0 {
		delete(p.whole, result.Device)
	}
}

// each visits the devices that an allocation takes away from others.
func (u *inUse) each(allocation *resourcev1.AllocationResult, visit func(*usedPool, *resourcev1.DeviceRequestAllocationResult)) {
	if allocation == nil {
		return
	}
	for i := range allocation.Devices.Results {
		result := &allocation.Devices.Results[i]
		if ptr.Deref(result.AdminAccess, false) {
			continue
		}
		p := u.pool(poolID{result.Driver, result.Pool})
		p.changed = u.version + 1
		visit(p, result)
	}
}

func (u *inUse) pool(id poolID) *usedPool {
	p := u.pools[id]
	if p == nil {
		p = &usedPool{results: map[use][]*resourcev1.DeviceRequestAllocationResult{}, whole: map[string]int{}}
		u.pools[id] = p
	}
	return p
}

// now returns the version.
func (u *inUse) now() uint64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.version
}

// changed returns the version of the last change of some pools.
func (u *inUse) changed(pools []*devicePool) (last uint64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, p := range pools {
		last = max(last, p.used.changed)
	}
	return last
}

// free counts those of some devices of a pool that are not allocated as a whole. It calls each with a function that counts
// one device, if it is free.
func (u *inUse) free(p *devicePool, each func(count func(device string))) (free int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	each(func(device string) {
		if p.used.whole[device] == 0 {
			free++
		}
	})
	return free
}

// state returns what kube-scheduler's claim tracker returns, for some pools.
func (u *inUse) state(pools []*devicePool) *structured.AllocatedState {
	u.mu.Lock()
	defer u.mu.Unlock()
	s := &structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	for _, p := range pools {
		for by, results := range p.used.results {
			if by.pending && len(p.used.results[use{by.claim, false}]) > 0 {
				continue // the capacity of a claim that is shown already counts once
			}
			for _, result := range results {
				addTo(s, result)
			}
		}
	}
	return s
}

func addTo(s *structured.AllocatedState, result *resourcev1.DeviceRequestAllocationResult) {
	id := structured.MakeDeviceID(result.Driver, result.Pool, result.Device)
	if result.ShareID == nil {
		s.AllocatedDevices.Insert(id)
		return
	}
	s.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, result.ShareID))
	if result.ConsumedCapacity != nil {
		s.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, result.ConsumedCapacity))
	}
}

// countedClaims tells inUse what is pending.
type countedClaims struct {
	fwk.ResourceClaimTracker
	inUse *inUse
}

// SignalClaimPendingAllocation is called when the devices of a claim are reserved.
func (c countedClaims) SignalClaimPendingAllocation(uid types.UID, claim *resourcev1.ResourceClaim) error {
	err := c.ResourceClaimTracker.SignalClaimPendingAllocation(uid, claim)
	if err == nil {
		c.inUse.setPending(uid, claim.Status.Allocation)
	}
	return err
}

// MaybeRemoveClaimPendingAllocation is called when the allocation is shown, or is given up.
func (c countedClaims) MaybeRemoveClaimPendingAllocation(uid types.UID, force bool) bool {
	removed := c.ResourceClaimTracker.MaybeRemoveClaimPendingAllocation(uid, force)
	if removed {
		c.inUse.setPending(uid, nil)
	}
	return removed
}
