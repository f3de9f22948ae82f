// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package bind

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/cache/internal/apicall"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/metrics"
)

// send sends one bind. An error, whatever its kind, does not prove that the bind had no effect:
// the response may have been lost, or may belong to a second attempt that the client made by
// itself. So every bind that fails is verified by reading the pod:
//
//	pod is gone or has another UID   PodVanished
//	pod is on our node               the bind succeeded
//	pod is on another node           another client has bound it; the watch shows that
//	pod has no node                  read it again after the back-off, for the bind may be slow;
//	                                 if it still has none, BindFailed
//	the read fails                   read again; time alone never decides
//
// Until the result is known, the model keeps the resources of the pod reserved.
func (b *Binder) send(ctx context.Context, r *Request) {
	call, cancel := context.WithTimeout(ctx, apicall.Timeout)
	defer cancel()
	sent := b.Clock.Now()
	err := b.Kube.CoreV1().Pods(r.Namespace).Bind(call, r.binding(), metav1.CreateOptions{})
	b.Metrics.Bind(resultOf(err), b.Clock.Since(sent))
	if err == nil {
		b.succeeded(r)
		return
	}
	if log := r.logger(b.Log); apicall.Permanent(err) {
		log.Error(err, "Bind failed")
	} else {
		log.V(2).Info("Bind failed", "err", err)
	}
	r.checked, r.err = false, err
	b.verifying.AddAfter(r, apicall.RetryAfter(err))
}

// resultOf classifies the response to a bind. The response alone does not say what became of the
// pod; see send.
func resultOf(err error) metrics.BindResult {
	code := 0 // no response
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		code = int(status.Status().Code)
	}
	switch {
	case err == nil:
		return metrics.BindSucceeded
	case code >= 400 && code < 500 && !apierrors.IsTooManyRequests(err) && !apierrors.IsTimeout(err):
		return metrics.BindRefused
	}
	return metrics.BindUnknown
}

// succeeded ends a bind that is known to have taken effect.
func (b *Binder) succeeded(r *Request) {
	r.logger(b.Log).V(2).Info("Bound")
	b.backoff.Forget(r.UID)
	b.Events.PodBound(r.reference(), r.unit.PodGroup, r.Node)
	b.measure(r)
	b.finish(r)
}

// measure records how long the pod was pending, and its PodGroup if this was the last pod that the
// gang needed to start.
func (b *Binder) measure(r *Request) {
	b.Metrics.PodBound(b.Clock.Since(r.Created))
	u := r.unit
	b.mu.Lock()
	u.bound++
	started := u.bound == len(u.Requests) && u.StartsGang && u.PodGroup != nil
	b.mu.Unlock()
	if started {
		b.Metrics.PodGroupScheduled(string(r.Commitment.Queue), b.Clock.Since(u.Created))
	}
}

// verify reads the pod of a failed bind; see send.
func (b *Binder) verify(ctx context.Context, r *Request) {
	call, cancel := context.WithTimeout(ctx, apicall.Timeout)
	defer cancel()
	pod, err := b.Kube.CoreV1().Pods(r.Namespace).Get(call, r.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && pod.UID != r.UID:
		b.backoff.Forget(r.UID)
		b.Handler.PodVanished(r)
		b.finish(r)
	case ctx.Err() != nil: // abandoned
	case err != nil:
		r.logger(b.Log).V(2).Info("Verification of a failed bind failed", "err", err)
		b.verifying.AddAfter(r, max(b.backoff.When(r.UID), apicall.RetryAfter(err)))
	case pod.Spec.NodeName == r.Node:
		b.succeeded(r)
	case pod.Spec.NodeName != "":
		r.logger(b.Log).V(1).Info("Pod bound by another client", "boundTo", pod.Spec.NodeName)
		b.backoff.Forget(r.UID)
		b.finish(r)
	default:
		b.notBound(ctx, r)
	}
}

// notBound continues with a failed bind whose pod has no node.
func (b *Binder) notBound(ctx context.Context, r *Request) {
	draining := b.isDraining()
	switch {
	case !r.checked:
		r.checked = true
		delay := b.backoff.When(r.UID)
		if draining {
			delay = min(delay, time.Second)
		}
		b.verifying.AddAfter(r, delay)
	case draining: // no later cycle of this process can place the pod again
		b.send(ctx, r)
	default:
		r.releaseExternal() // the next placement may be on another node
		b.Handler.BindFailed(r, r.err)
		b.finish(r)
	}
}

func (b *Binder) isDraining() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.draining
}
