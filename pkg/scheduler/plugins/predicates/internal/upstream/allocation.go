// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// allocation is the device reservation of one placement. It allocates its own claims and shares claims that are
// allocated already or that other placements allocate.
type allocation struct {
	binding
	devices *Devices
	kube    kubernetes.Interface
	state   fwk.CycleState
	pod     *v1.Pod // with its node name set
	node    *v1.Node
	timeout time.Duration
	log     logr.Logger

	claims       []*resourcev1.ResourceClaim // of the pod, as they were at Reserve
	own          []*resourcev1.ResourceClaim // the claims that this reservation allocates
	extended     *extendedClaim              // the claim that it creates for extended resources; nil if there is none
	dependencies []*allocation               // reservations that allocate the other claims

	reserveErr     error // why Reserve failed
	preBindStarted bool  // the API server may have applied an update

	// done is closed when it is known whether the own claims are allocated.
	done      chan struct{}
	finished  bool
	allocated bool
}

// ReserveDevices reserves the devices of a task on a node. It returns nil if the task needs none there.
func (r *FilterRunner) ReserveDevices(t *api.TaskInfo, n *api.NodeInfo) api.ExternalReservation {
	if r.devices == nil {
		return nil
	}
	pod := t.Pod
	assumed := *pod
	assumed.Spec.NodeName = n.Name
	a := &allocation{
		binding: r.dynamicResources, devices: r.devices, kube: r.kube, pod: &assumed, node: n.Node, timeout: r.timeout, log: r.log,
		claims: r.devices.claimsOf(pod), done: make(chan struct{}),
	}
	for _, claim := range a.claims {
		if claim.Status.Allocation == nil {
			a.own = append(a.own, claim)
		}
	}
	a.dependencies = r.devices.pendingFor(a.claims)
	var status *fwk.Status
	r.view.during(n.Name, func() { a.state, status = runReserve(r.ctx, a.binding, a.pod, a.node) })
	switch {
	case status.IsSkip() && t.Signature.DeviceResources:
		a.reserveErr = fmt.Errorf("%s cannot be reserved: %s", a.describe(), noClass)
	case status.IsSkip():
		return nil
	case !status.IsSuccess(): // something has changed since the filter ran
		a.reserveErr = fmt.Errorf("%s cannot be reserved: %w", a.describe(), status.AsError())
	default:
		a.devices.addPending(a)
		a.extended = a.devices.extended.reservedFor(pod.UID)
	}
	if a.reserveErr == nil && a.extended == nil && len(a.claims) == 0 { // the node provides the resources itself
		return nil
	}
	return a
}

// Commit allocates the claims and adds the pod to their consumers, through PreBind.
func (a *allocation) Commit(ctx context.Context) error {
	if a.reserveErr != nil {
		return a.reserveErr
	}
	err := a.await(ctx)
	if err == nil {
		err = a.devices.writing.Acquire(ctx, 1)
	}
	if err == nil {
		a.preBindStarted = true
		err = a.write(ctx)
	}
	a.finish(err == nil)
	if err != nil {
		return fmt.Errorf("%s: %w", a.describe(), err)
	}
	a.devices.removePending(a)
	return nil
}

// await waits until other reservations have allocated the shared claims.
func (a *allocation) await(ctx context.Context) error {
	for _, owner := range a.dependencies {
		select {
		case <-owner.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		if !owner.allocated {
			return fmt.Errorf("a claim that it shares is not allocated for pod %s", owner.pod.Name)
		}
	}
	return nil
}

// slowWrite is how long a pod counts as one of the writers. PreBind takes longer if it waits for a device to become ready.
const slowWrite = 2 * time.Second

// write runs PreBind as one of the writers. Updates that add a pod to a shared claim are serialized, because each must
// include the consumers added before.
func (a *allocation) write(ctx context.Context) error {
	leave := sync.OnceFunc(func() { a.devices.writing.Release(1) })
	defer leave()
	slow, stop := context.WithTimeout(ctx, slowWrite)
	defer stop()
	context.AfterFunc(slow, leave)
	ctx, cancel := context.WithTimeout(klog.NewContext(ctx, a.log), a.timeout)
	defer cancel()
	if len(a.own) < len(a.claims) {
		a.devices.sharing.Lock()
		defer a.devices.sharing.Unlock()
	}
	return a.PreBind(ctx, a.state, a.pod, a.node.Name).AsError()
}

// finish unblocks the reservations that share the claims of this one.
func (a *allocation) finish(allocated bool) {
	if !a.finished {
		a.finished, a.allocated = true, allocated
		close(a.done)
	}
}

// deallocateTimeout limits how long Release waits for the API server.
const deallocateTimeout = 15 * time.Second

// Release frees the devices. Unlike volumes, devices without a consumer would stay allocated, and the pod could only
// be scheduled where they are.
func (a *allocation) Release() {
	if a.preBindStarted {
		ctx, cancel := context.WithTimeout(context.Background(), deallocateTimeout)
		defer cancel()
		for _, claim := range a.claims {
			if err := a.deallocate(ctx, claim); err != nil {
				a.log.Info("Deallocation of a resource claim failed", "claim", klog.KObj(claim), "pod", klog.KObj(a.pod), "err", err)
			}
		}
	}
	if a.extended != nil {
		a.releaseExtended()
	}
	a.finish(false)
	a.devices.removePending(a)
}

// releaseExtended deletes the claim that the reservation has created for extended resources. If that fails, a later
// session finds the claim.
func (a *allocation) releaseExtended() {
	claim := a.devices.extended.createdFor(a.extended)
	var err error
	if claim != nil {
		ctx, cancel := context.WithTimeout(context.Background(), deallocateTimeout)
		defer cancel()
		if err = deleteExtended(ctx, a.kube, claim, a.pod, true); err != nil {
			a.log.Info("Deletion of a resource claim failed", "claim", klog.KObj(claim), "pod", klog.KObj(a.pod), "err", err)
		}
	}
	a.devices.endReservation(a.pod.UID, a.extended, err == nil)
}

// deallocate removes the pod from the consumers of the claim, and the allocation if no consumer is left.
func (a *allocation) deallocate(ctx context.Context, claim *resourcev1.ResourceClaim) error {
	if !metav1.IsControlledBy(claim, a.pod) { // it may have other consumers
		a.devices.sharing.Lock()
		defer a.devices.sharing.Unlock()
	}
	client := a.kube.ResourceV1().ResourceClaims(claim.Namespace)
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		current, err := client.Get(ctx, claim.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err), err == nil && (current.UID != claim.UID || current.Status.Allocation == nil):
			return nil
		case err != nil:
			return err
		}
		consumers := slices.DeleteFunc(slices.Clone(current.Status.ReservedFor), func(r resourcev1.ResourceClaimConsumerReference) bool {
			return r.UID == a.pod.UID
		})
		if len(consumers) > 0 && len(consumers) == len(current.Status.ReservedFor) {
			return nil
		}
		current.Status.ReservedFor = consumers
		if len(consumers) == 0 {
			current.Status.Allocation, current.Status.Devices = nil, nil
		}
		written, err := client.UpdateStatus(ctx, current, metav1.UpdateOptions{})
		if err == nil {
			_ = a.devices.ResourceClaims().AssumeClaimAfterAPICall(written) // fails only if the informer has a newer version
		}
		return err
	})
}

// describe returns the claims, the pod and the node for errors.
func (a *allocation) describe() string {
	if len(a.claims) == 0 {
		return fmt.Sprintf("the devices of pod %s on node %s", a.pod.Name, a.node.Name)
	}
	names := make([]string, 0, len(a.claims))
	for _, claim := range a.claims {
		names = append(names, claim.Name)
	}
	return fmt.Sprintf("claim %s of pod %s on node %s", strings.Join(names, ", "), a.pod.Name, a.node.Name)
}
