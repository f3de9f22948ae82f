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

// binding is a plugin that binds volumes, or allocates devices. What it has reserved for one pod it keeps from all
// others, until the API server shows it or the reservation is cancelled.
type binding interface {
	plugin
	fwk.ReservePlugin
	fwk.PreBindPlugin
}

// bindingOf returns the one of the checks that binds.
func bindingOf(checks []check) (binding, error) {
	for _, c := range checks {
		if b, ok := c.plugin.(binding); ok {
			return b, nil
		}
	}
	return nil, errors.New("none of the plugins binds")
}

// reservation is the volumes that one placement takes.
type reservation struct {
	binding
	state   fwk.CycleState // nil if there is nothing for the plugin to bind
	pod     *v1.Pod        // as it will be on its node
	node    *v1.Node
	claims  *claims
	timeout time.Duration
	log     logr.Logger
	shared  []string // claims that other reservations have bound
	failed  error    // why there is nothing to fulfil
}

// Reserve sets the volumes aside that a pod takes on a node, nil if all of its volumes are bound. The opinion
// that the judge has of the pod's class is no use here: the plugin writes into it what this pod takes.
func (j *FilterRunner) Reserve(pod *v1.Pod, n *api.NodeInfo) api.ExternalReservation {
	if j.binding == nil {
		return nil
	}
	assumed := *pod
	assumed.Spec.NodeName = n.Name
	r := &reservation{binding: j.binding, pod: &assumed, node: n.Node, claims: j.claims, timeout: j.timeout, log: j.log}
	own, shared := j.claims.unshared(r.pod)
	r.shared = shared
	var status *fwk.Status
	r.state, status = choose(j.ctx, r.binding, own, r.node)
	if !status.IsSuccess() && !status.IsSkip() { // something has changed since the placement was found
		r.failed = fmt.Errorf("%s cannot be reserved: %w", r.describe(), status.AsError())
		return r
	}
	if r.state == nil && len(r.shared) == 0 {
		return nil
	}
	if r.state != nil {
		j.claims.hold(own, r)
	}
	return r
}

// choose lets a plugin choose and keep what a pod takes on a node. There is a state only if there is something
// to bind.
func choose(ctx context.Context, b binding, pod *v1.Pod, on *v1.Node) (fwk.CycleState, *fwk.Status) {
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

// Commit writes which volume or node each claim is for, and waits until all of them are bound.
func (r *reservation) Commit(ctx context.Context) error {
	err := r.failed
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

// Release forgets what was chosen for the pod. What the API server has been told already stays: a claim that
// is bound meanwhile, or that a provisioner works on, is where the pod has to go next time.
func (r *reservation) Release() {
	if r.state != nil {
		r.Unreserve(context.Background(), r.state, r.pod, r.node.Name)
		r.claims.release(r)
	}
}

// describe names the claims that are not bound, the pod and the node.
func (r *reservation) describe() string {
	subject := "the volumes"
	if names := r.claims.unbound(r.pod); len(names) > 0 {
		subject = "claim " + strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s of pod %s on node %s", subject, r.pod.Name, r.node.Name)
}
