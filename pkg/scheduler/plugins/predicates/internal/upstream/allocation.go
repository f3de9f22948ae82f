package upstream

import (
	"context"
	"fmt"
	"slices"
	"strings"
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

// allocation is the devices that one placement takes: it has claims of its own allocated, and shares those that
// are allocated, or that other placements have allocated.
type allocation struct {
	binding
	devices *Devices
	kube    kubernetes.Interface
	state   fwk.CycleState
	pod     *v1.Pod // as it will be on its node
	node    *v1.Node
	timeout time.Duration
	log     logr.Logger

	claims  []*resourcev1.ResourceClaim // all of the pod, as they were found
	own     []*resourcev1.ResourceClaim // of these, those that are allocated for this pod first
	awaited []*allocation               // have others of these allocated

	failed error // why there is nothing to fulfil
	begun  bool  // the API server may have been told something

	// done is closed once it is known whether the own claims are allocated.
	done      chan struct{}
	settled   bool
	allocated bool
}

// ReserveDevices sets the devices aside that a pod takes on a node, nil if it has no claims after all.
func (j *FilterRunner) ReserveDevices(pod *v1.Pod, n *api.NodeInfo) api.ExternalReservation {
	if j.devices == nil {
		return nil
	}
	assumed := *pod
	assumed.Spec.NodeName = n.Name
	a := &allocation{
		binding: j.allocating, devices: j.devices, kube: j.kube, pod: &assumed, node: n.Node, timeout: j.timeout, log: j.log,
		claims: j.devices.claimsOf(pod), done: make(chan struct{}),
	}
	for _, claim := range a.claims {
		if claim.Status.Allocation == nil {
			a.own = append(a.own, claim)
		}
	}
	a.awaited = j.devices.ownersOf(a.claims)
	var status *fwk.Status
	switch a.state, status = choose(j.ctx, a.binding, a.pod, a.node); {
	case status.IsSkip():
		return nil
	case !status.IsSuccess(): // something has changed since the placement was found
		a.failed = fmt.Errorf("%s cannot be reserved: %w", a.describe(), status.AsError())
	default:
		a.devices.own(a)
	}
	return a
}

// Commit writes which devices the claims get, and that the pod is going to use them.
func (a *allocation) Commit(ctx context.Context) error {
	if a.failed != nil {
		return a.failed
	}
	ctx, cancel := context.WithTimeout(klog.NewContext(ctx, a.log), a.timeout)
	defer cancel()
	err := a.await(ctx)
	if err == nil {
		a.begun = true
		err = a.write(ctx)
	}
	a.settle(err == nil)
	if err != nil {
		return fmt.Errorf("%s: %w", a.describe(), err)
	}
	a.devices.disown(a)
	return nil
}

// await waits until the claims that other placements have allocated are.
func (a *allocation) await(ctx context.Context) error {
	for _, owner := range a.awaited {
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

// write has the plugin write. Who adds a pod to a claim must have seen the pods before it, so that is done by one
// at a time.
func (a *allocation) write(ctx context.Context) error {
	if len(a.own) < len(a.claims) {
		a.devices.sharing.Lock()
		defer a.devices.sharing.Unlock()
	}
	return a.PreBind(ctx, a.state, a.pod, a.node.Name).AsError()
}

// settle lets those go on who share what is allocated here.
func (a *allocation) settle(allocated bool) {
	if !a.settled {
		a.settled, a.allocated = true, allocated
		close(a.done)
	}
}

// giveBackTimeout bounds how long it takes to take back what the API server was told.
const giveBackTimeout = 15 * time.Second

// Release frees the devices. Unlike volumes, devices that nobody uses would stay taken until somebody frees them,
// and the pod would have to go to them, wherever there is room by then.
func (a *allocation) Release() {
	if a.begun {
		ctx, cancel := context.WithTimeout(context.Background(), giveBackTimeout)
		defer cancel()
		for _, claim := range a.claims {
			if err := a.giveBack(ctx, claim); err != nil {
				a.log.Info("A claim keeps its devices, its pod can only go to them", "claim", klog.KObj(claim), "pod", klog.KObj(a.pod), "err", err)
			}
		}
	}
	a.settle(false)
	a.devices.disown(a)
}

// giveBack takes the pod off the claim, and its devices too if no other pod uses them.
func (a *allocation) giveBack(ctx context.Context, claim *resourcev1.ResourceClaim) error {
	if !metav1.IsControlledBy(claim, a.pod) { // it may have other users
		a.devices.sharing.Lock()
		defer a.devices.sharing.Unlock()
	}
	client := a.kube.ResourceV1().ResourceClaims(claim.Namespace)
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		fresh, err := client.Get(ctx, claim.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err), err == nil && (fresh.UID != claim.UID || fresh.Status.Allocation == nil):
			return nil
		case err != nil:
			return err
		}
		users := slices.DeleteFunc(slices.Clone(fresh.Status.ReservedFor), func(r resourcev1.ResourceClaimConsumerReference) bool {
			return r.UID == a.pod.UID
		})
		if len(users) > 0 && len(users) == len(fresh.Status.ReservedFor) {
			return nil
		}
		fresh.Status.ReservedFor = users
		if len(users) == 0 {
			fresh.Status.Allocation, fresh.Status.Devices = nil, nil
		}
		written, err := client.UpdateStatus(ctx, fresh, metav1.UpdateOptions{})
		if err == nil {
			_ = a.devices.ResourceClaims().AssumeClaimAfterAPICall(written) // fails only if the informer shows more
		}
		return err
	})
}

// describe names the claims, the pod and the node.
func (a *allocation) describe() string {
	names := make([]string, 0, len(a.claims))
	for _, claim := range a.claims {
		names = append(names, claim.Name)
	}
	return fmt.Sprintf("claim %s of pod %s on node %s", strings.Join(names, ", "), a.pod.Name, a.node.Name)
}
