// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerframework "k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// binding is a plugin that binds volumes or allocates devices. What it reserves for one pod is unavailable to other
// pods until the informer shows it or the reservation is released.
type binding interface {
	plugin
	fwk.ReservePlugin
	fwk.PreBindPlugin
}

// bindingOf returns the plugin that binds.
func bindingOf(plugins []filterPlugin) (binding, error) {
	for _, c := range plugins {
		if b, ok := c.plugin.(binding); ok {
			return b, nil
		}
	}
	return nil, errors.New("none of the plugins binds")
}

// reservation is the volume reservation of one placement.
type reservation struct {
	binding
	state      fwk.CycleState // nil if the plugin has nothing to bind
	pod        *v1.Pod        // with its node name set
	node       *v1.Node
	claims     *claims
	timeout    time.Duration
	log        logr.Logger
	shared     []string // claims that other reservations bind
	reserveErr error    // why Reserve failed
}

// Reserve reserves the volumes of a pod on a node. It returns nil if all of its volumes are bound. It does not use
// the PreFilter state of the pod's class, because Reserve of the plugin writes into the state.
func (r *FilterRunner) Reserve(pod *v1.Pod, n *api.NodeInfo) api.ExternalReservation {
	if r.volumeBinding == nil {
		return nil
	}
	assumed := *pod
	assumed.Spec.NodeName = n.Name
	res := &reservation{binding: r.volumeBinding, pod: &assumed, node: n.Node, claims: r.claims, timeout: r.timeout, log: r.log}
	own, shared := r.claims.withoutHeld(res.pod)
	res.shared = shared
	var status *fwk.Status
	res.state, status = runReserve(r.ctx, res.binding, own, res.node)
	if !status.IsSuccess() && !status.IsSkip() { // something has changed since the filter ran
		res.reserveErr = fmt.Errorf("%s cannot be reserved: %w", res.describe(), status.AsError())
		return res
	}
	if res.state == nil && len(res.shared) == 0 {
		return nil
	}
	if res.state != nil {
		r.claims.hold(own, res)
	}
	return res
}

// runReserve runs PreFilter, Filter and Reserve of a plugin for a pod and a node. The state is nil if there is
// nothing to bind.
func runReserve(ctx context.Context, b binding, pod *v1.Pod, on *v1.Node) (fwk.CycleState, *fwk.Status) {
	state, node := schedulerframework.NewCycleState(), schedulerframework.NewNodeInfo()
	node.SetNode(on)
	_, status := b.PreFilter(ctx, state, pod, nil)
	if status.IsSuccess() {
		status = b.Filter(ctx, state, pod, node)
	}
	if status.IsSuccess() {
		status = b.Reserve(ctx, state, pod, on.Name)
	}
	if status.IsSuccess() {
		_, status = b.PreBindPreFlight(ctx, state, pod, on.Name)
	}
	if !status.IsSuccess() {
		return nil, status
	}
	return state, nil
}

// Commit runs PreBind, which selects the volume or the node of each claim and waits until all of them are bound.
func (r *reservation) Commit(ctx context.Context) error {
	err := r.reserveErr
	if err != nil {
		return err
	}
	if r.state != nil {
		err = r.PreBind(klog.NewContext(ctx, r.log), r.state, r.pod, r.node.Name).AsError()
	}
	if err == nil && len(r.shared) > 0 {
		err = wait.PollUntilContextTimeout(ctx, time.Second, r.timeout, false, func(context.Context) (bool, error) {
			return r.claims.boundFor(r.pod, r.node, r.shared)
		})
	}
	switch {
	case err == nil:
		r.claims.release(r)
		return nil
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return fmt.Errorf("%s: not bound within %s", r.describe(), r.timeout)
	default:
		return fmt.Errorf("%s: %w", r.describe(), err)
	}
}

// Release runs Unreserve. It does not revert updates of the API server: a claim that is bound meanwhile, or that a
// provisioner works on, restricts the nodes of the pod next time.
func (r *reservation) Release() {
	if r.state != nil {
		r.Unreserve(context.Background(), r.state, r.pod, r.node.Name)
		r.claims.release(r)
	}
}

// describe returns the claims that are not bound, the pod and the node for errors.
func (r *reservation) describe() string {
	subject := "the volumes"
	if names := r.claims.unbound(r.pod); len(names) > 0 {
		subject = "claim " + strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s of pod %s on node %s", subject, r.pod.Name, r.node.Name)
}
