// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"errors"
	"sync"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcelisters "k8s.io/client-go/listers/resource/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/internal/devices"
)

// extendedClaims tracks the claims that the scheduler creates for extended resources.
//
// A pod that requests an extended resource of a device class has no claim. kube-scheduler's plugin makes one in memory
// when it reserves the devices, creates it in PreBind, and writes its name to the status of the pod. The claim in memory
// has another UID than the one that the API server shows. Its devices stay pending under that UID until the informer
// shows the allocation of the created claim.
//
// Each such claim that the informer shows is unverified until a session has found out whether its pod uses it. If the
// pod does not, the scheduler stopped between the creation of the claim and the bind, and the claim is a leftover; see
// leftovers.go.
type extendedClaims struct {
	mu sync.Mutex
	// reserved are the claims of reservations and of pods that were bound with them, by UID of the pod.
	reserved map[types.UID]*extendedClaim
	// unverified are claims that the informer shows, by UID.
	unverified map[types.UID]*resourcev1.ResourceClaim
	// leftovers are claims that are being deleted: the UID of the pod by UID of the claim.
	leftovers map[types.UID]types.UID
}

// extendedClaim is the claim of one reservation.
type extendedClaim struct {
	pending types.UID                 // of the claim in memory while its devices are pending; empty afterwards
	created *resourcev1.ResourceClaim // nil until the API server has returned it
}

func newExtendedClaims() *extendedClaims {
	return &extendedClaims{
		reserved:   map[types.UID]*extendedClaim{},
		unverified: map[types.UID]*resourcev1.ResourceClaim{},
		leftovers:  map[types.UID]types.UID{},
	}
}

// extendedFor returns the UID of the pod for whose extended resources a scheduler made the claim.
func extendedFor(claim *resourcev1.ResourceClaim) (types.UID, bool) {
	if claim.Annotations[resourcev1.ExtendedResourceClaimAnnotation] != "true" {
		return "", false
	}
	owner := metav1.GetControllerOfNoCopy(claim)
	if owner == nil || owner.Kind != "Pod" {
		return "", false
	}
	return owner.UID, true
}

// usesExtended reports whether the status of a pod names the claim.
func usesExtended(pod *v1.Pod, claim *resourcev1.ResourceClaim) bool {
	status := pod.Status.ExtendedResourceClaimStatus
	return status != nil && status.ResourceClaimName == claim.Name
}

// List returns no claims. The plugin looks only for the claim of an earlier attempt to place a pod, among all claims of
// the cluster; FilterRunner.Unfit does that.
func (p pendingClaims) List() ([]*resourcev1.ResourceClaim, error) { return nil, nil }

// SignalClaimPendingAllocation is called by the plugin when it reserves the devices of a claim.
func (p pendingClaims) SignalClaimPendingAllocation(uid types.UID, claim *resourcev1.ResourceClaim) error {
	if pod, ok := extendedFor(claim); ok {
		p.extended.mu.Lock()
		p.extended.reserved[pod] = &extendedClaim{pending: uid}
		p.extended.mu.Unlock()
	}
	return p.ResourceClaimTracker.SignalClaimPendingAllocation(uid, claim)
}

// AssumeClaimAfterAPICall is called by the plugin with a claim that it has written. The plugin polls every second until
// the informer shows a claim that it has created; the devices stay pending instead.
func (p pendingClaims) AssumeClaimAfterAPICall(claim *resourcev1.ResourceClaim) error {
	err := p.ResourceClaimTracker.AssumeClaimAfterAPICall(claim)
	pod, ok := extendedFor(claim)
	if !ok {
		return err
	}
	p.extended.mu.Lock()
	defer p.extended.mu.Unlock()
	if r := p.extended.reserved[pod]; r != nil {
		r.created = claim
		if err == nil {
			r.shown(claim, p.ResourceClaimTracker)
		}
	}
	if errors.Is(err, assumecache.ErrNotFound) {
		return nil
	}
	return err
}

// shown ends the pending allocation if the tracker has the allocation of the created claim.
func (r *extendedClaim) shown(claim *resourcev1.ResourceClaim, tracker fwk.ResourceClaimTracker) {
	if r.created != nil && r.created.UID == claim.UID && claim.Status.Allocation != nil {
		r.endPending(tracker)
	}
}

func (r *extendedClaim) endPending(tracker fwk.ResourceClaimTracker) {
	if r.pending != "" {
		tracker.MaybeRemoveClaimPendingAllocation(r.pending, true)
		r.pending = ""
	}
}

// claimShown is called with claims that the informer shows, or that the tracker assumes.
func (d *Devices) claimShown(claim *resourcev1.ResourceClaim) {
	pod, ok := extendedFor(claim)
	if !ok {
		return
	}
	d.extended.mu.Lock()
	defer d.extended.mu.Unlock()
	if r := d.extended.reserved[pod]; r != nil {
		r.shown(claim, d.tracker())
	}
	if _, leftover := d.extended.leftovers[claim.UID]; !leftover {
		d.extended.unverified[claim.UID] = claim
	}
}

// claimDeleted is called with claims that the informer has shown and does not show any more.
func (d *Devices) claimDeleted(claim *resourcev1.ResourceClaim) {
	pod, ok := extendedFor(claim)
	if !ok {
		return
	}
	d.extended.mu.Lock()
	defer d.extended.mu.Unlock()
	delete(d.extended.unverified, claim.UID)
	delete(d.extended.leftovers, claim.UID)
	if r := d.extended.reserved[pod]; r != nil && r.created != nil && r.created.UID == claim.UID {
		r.endPending(d.tracker())
		delete(d.extended.reserved, pod)
	}
}

// reservedFor returns the claim in memory of the reservation of a pod; nil if the pod needs none.
func (e *extendedClaims) reservedFor(pod types.UID) *extendedClaim {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.reserved[pod]
}

// createdFor returns the created claim of a reservation; nil if there is none.
func (e *extendedClaims) createdFor(r *extendedClaim) *resourcev1.ResourceClaim {
	e.mu.Lock()
	defer e.mu.Unlock()
	return r.created
}

// endReservation reverts what the reservation of a pod has recorded. The devices stay pending if the created claim still
// exists and the informer has not shown its allocation yet.
func (d *Devices) endReservation(pod types.UID, r *extendedClaim, deleted bool) {
	d.extended.mu.Lock()
	defer d.extended.mu.Unlock()
	if r.created == nil || deleted {
		r.endPending(d.tracker())
	}
	if d.extended.reserved[pod] == r && r.pending == "" {
		delete(d.extended.reserved, pod)
	}
}

// DeviceClassResolver returns what finds the class of an extended resource.
func (d *Devices) DeviceClassResolver() fwk.DeviceClassResolver {
	return classResolver{d.factory.Resource().V1().DeviceClasses().Lister()}
}

type classResolver struct {
	classes resourcelisters.DeviceClassLister
}

// GetDeviceClass returns the class whose devices provide an extended resource, or nil.
func (r classResolver) GetDeviceClass(name v1.ResourceName) *resourcev1.DeviceClass {
	return devices.ClassOf(r.classes, name)
}
