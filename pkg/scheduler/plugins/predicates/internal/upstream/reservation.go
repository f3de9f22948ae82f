package upstream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerframework "k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// binding is the plugin that binds volumes. What it has reserved for one pod it keeps from all others,
// until the API server shows it or the reservation is cancelled.
type binding interface {
	plugin
	fwk.ReservePlugin
	fwk.PreBindPlugin
}

// bindingOf returns the one of the checks that binds volumes.
func bindingOf(checks []check) (binding, error) {
	for _, c := range checks {
		if b, ok := c.plugin.(binding); ok {
			return b, nil
		}
	}
	return nil, errors.New("no plugin binds volumes")
}

// reservation is the volumes that one placement takes.
type reservation struct {
	binding
	state   fwk.CycleState
	pod     *v1.Pod // as it will be on its node
	claims  *claims
	timeout time.Duration
	log     logr.Logger
	failed  error // why there is nothing to fulfil
}

// Reserve sets the volumes aside that a pod takes on a node, nil if all of its volumes are bound. The opinion
// that the judge has of the pod's class is no use here: the plugin writes into it what this pod takes.
func (j *Judge) Reserve(pod *v1.Pod, n *api.NodeInfo) api.Reservation {
	if j.binding == nil {
		return nil
	}
	assumed := *pod
	assumed.Spec.NodeName = n.Name
	r := &reservation{
		binding: j.binding, state: schedulerframework.NewCycleState(), pod: &assumed,
		claims: j.claims, timeout: j.timeout, log: j.log,
	}
	node := schedulerframework.NewNodeInfo()
	node.SetNode(n.Node)
	_, status := r.PreFilter(j.ctx, r.state, r.pod, nil)
	if status.IsSkip() {
		return nil
	}
	if status.IsSuccess() {
		status = r.Filter(j.ctx, r.state, r.pod, node)
	}
	if status.IsSuccess() {
		status = r.binding.Reserve(j.ctx, r.state, r.pod, n.Name)
	}
	if !status.IsSuccess() { // something has changed since the placement was found
		r.failed = fmt.Errorf("%s cannot be reserved: %w", r.describe(), status.AsError())
		return r
	}
	if _, status = r.PreBindPreFlight(j.ctx, r.state, r.pod, n.Name); status.IsSkip() {
		return nil
	}
	return r
}

// Fulfil writes which volume or node each claim is for, and waits until all of them are bound.
func (r *reservation) Fulfil(ctx context.Context) error {
	if r.failed != nil {
		return r.failed
	}
	status := r.PreBind(klog.NewContext(ctx, r.log), r.state, r.pod, r.pod.Spec.NodeName)
	switch err := status.AsError(); {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return fmt.Errorf("%s: not bound within %s", r.describe(), r.timeout)
	default:
		return fmt.Errorf("%s: %w", r.describe(), err)
	}
}

// Cancel forgets what was chosen for the pod. What the API server has been told already stays: a claim that
// is bound meanwhile, or that a provisioner works on, is where the pod has to go next time.
func (r *reservation) Cancel() {
	if r.failed == nil {
		r.Unreserve(context.Background(), r.state, r.pod, r.pod.Spec.NodeName)
	}
}

// describe names the claims that are not bound, the pod and the node.
func (r *reservation) describe() string {
	subject := "the volumes"
	if names := r.claims.unbound(r.pod); len(names) > 0 {
		subject = "claim " + strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s of pod %s on node %s", subject, r.pod.Name, r.pod.Spec.NodeName)
}
