// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/ptr"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// future makes devices of claims appear free that only terminating pods use, while the plugin answers for the Future.
//
// A device is free some time after its pod is gone, when its claim is deallocated. In between its node has nothing to
// evict, but the plugin refuses it. A plan made then would evict pods elsewhere for a job that has evicted enough. So while
// there is such a claim, no plan gets devices of further victims: their evictions are not committed yet.
//
// Devices that several claims share stay taken.
type future struct {
	cluster api.ClusterView
	devices *Devices
	// on is set while PreFilter runs for the Future.
	on bool
}

// draManager is what the plugin sees of Devices.
type draManager struct {
	*Devices
	future *future
	view   *view
}

// ResourceClaims returns the claim tracker for the plugin.
func (m draManager) ResourceClaims() fwk.ResourceClaimTracker {
	return viewedClaims{futureClaims{m.Devices.ResourceClaims(), m.future}, m.view, m.inUse}
}

// ResourceSlices returns the slices for the plugin.
func (m draManager) ResourceSlices() fwk.ResourceSliceLister {
	return viewedSlices{m.Devices.ResourceSlices(), m.view}
}

type futureClaims struct {
	fwk.ResourceClaimTracker
	future *future
}

// GatherAllocatedState is called by the plugin in PreFilter.
func (c futureClaims) GatherAllocatedState() (*structured.AllocatedState, error) {
	state, err := c.ResourceClaimTracker.GatherAllocatedState()
	if err == nil && c.future.on {
		c.future.free(state.AllocatedDevices)
	}
	return state, err
}

// ListAllAllocatedDevices is called by the plugin in PreFilter if devices have no consumable capacity.
func (c futureClaims) ListAllAllocatedDevices() (sets.Set[structured.DeviceID], error) {
	allocated, err := c.ResourceClaimTracker.ListAllAllocatedDevices()
	if err == nil && c.future.on {
		c.future.free(allocated)
	}
	return allocated, err
}

// free removes the devices that will be free from those that are allocated.
func (f *future) free(allocated sets.Set[structured.DeviceID]) {
	claims, err := f.devices.SharedDRAManager.ResourceClaims().List() // those of Devices has none
	if err != nil {
		return
	}
	var leaving, planned []*resourcev1.ResourceClaim
	deallocating := false
	for _, claim := range claims {
		switch f.end(claim) {
		case gone:
			deallocating = true
			leaving = append(leaving, claim)
		case committed:
			leaving = append(leaving, claim)
		case tried:
			planned = append(planned, claim)
		case stays:
		}
	}
	if !deallocating {
		leaving = append(leaving, planned...)
	}
	for _, claim := range leaving {
		for _, r := range claim.Status.Allocation.Devices.Results {
			if r.ShareID == nil && !ptr.Deref(r.AdminAccess, false) {
				allocated.Delete(structured.MakeDeviceID(r.Driver, r.Pool, r.Device))
			}
		}
	}
}

// ending is when the consumers of a claim end.
type ending int8

const (
	gone      ending = iota // all have ended
	committed               // all have ended or are being deleted
	tried                   // that, or their eviction is part of a plan
	stays                   // none of these
)

// end returns when the last consumer of a claim ends. A claim without consumers stays: another component allocates it.
func (f *future) end(claim *resourcev1.ResourceClaim) ending {
	if claim.Status.Allocation == nil || len(claim.Status.ReservedFor) == 0 {
		return stays
	}
	last := gone
	for _, consumer := range claim.Status.ReservedFor {
		if consumer.Resource != "pods" || consumer.APIGroup != "" {
			return stays
		}
		switch t := f.cluster.Tasks()[api.TaskID(consumer.UID)]; {
		case t == nil || t.Status.Ended():
		case t.Status != api.Releasing:
			return stays
		case t.Evicting() || t.Pod.DeletionTimestamp != nil:
			last = max(last, committed)
		default:
			last = max(last, tried)
		}
	}
	return last
}
