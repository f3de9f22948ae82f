package cache

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// send sends a bind. Whatever the error is, it does not say for sure that the bind has not
// taken effect: the answer may have been lost, or belong to a second attempt that the client
// made by itself. So every failure is settled by asking for the pod.
func (b *binder) send(ctx context.Context, f *flight) {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	sent := b.clock.Now()
	err := b.kube.CoreV1().Pods(f.namespace).Bind(call, f.binding(), metav1.CreateOptions{})
	b.metrics.Bind(bindResult(err), b.clock.Since(sent))
	if err == nil {
		b.landed(f)
		return
	}
	if needsPerson(err) {
		b.log.Error(err, "The API server does not let us bind", "pod", f.String(), "node", f.node)
	} else {
		b.log.V(2).Info("Bind failed, looking what became of the pod", "pod", f.String(), "node", f.node, "err", err)
	}
	f.waited, f.failure = false, err
	b.settling.AddAfter(f, retryAfter(err))
}

func (b *binder) landed(f *flight) {
	b.log.V(2).Info("Bound", "pod", f.String(), "node", f.node)
	b.backoff.Forget(f.uid)
	b.recorder.podBound(f)
	b.measure(f)
	b.finish(f)
}

// settle finds out what became of a bind that failed. A pod that has no node is looked at twice,
// before and after the back-off, in case that the bind was only slow; meanwhile the model keeps
// its room for the gang. Time alone decides nothing: without an answer, it asks again.
func (b *binder) settle(ctx context.Context, f *flight) {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	pod, err := b.kube.CoreV1().Pods(f.namespace).Get(call, f.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && pod.UID != f.uid:
		b.backoff.Forget(f.uid)
		b.tower.vanished(f)
		b.finish(f)
	case ctx.Err() != nil: // given up
	case err != nil:
		b.log.V(2).Info("Cannot ask what became of a failed bind, trying again", "pod", f.String(), "err", err)
		b.settling.AddAfter(f, max(b.backoff.When(f.uid), retryAfter(err)))
	case pod.Spec.NodeName == f.node:
		b.landed(f)
	case pod.Spec.NodeName != "":
		b.log.V(1).Info("Somebody else has bound the pod", "pod", f.String(), "node", pod.Spec.NodeName, "wanted", f.node)
		b.backoff.Forget(f.uid)
		b.finish(f)
	default:
		b.unbound(ctx, f)
	}
}

// unbound goes on with a flight whose pod has no node.
func (b *binder) unbound(ctx context.Context, f *flight) {
	draining := b.isDraining()
	switch {
	case !f.waited:
		f.waited = true
		delay := b.backoff.When(f.uid)
		if draining {
			delay = min(delay, time.Second)
		}
		b.settling.AddAfter(f, delay)
	case draining: // there will be no other cycle to place it
		b.send(ctx, f)
	default:
		f.cancel() // the pod may have to go elsewhere
		b.tower.refused(f)
		b.finish(f)
	}
}

func (b *binder) isDraining() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.draining
}

// forget drops what is remembered of a pod that is gone.
func (b *binder) forget(uid types.UID) { b.backoff.Forget(uid) }

// needsPerson tells whether no number of attempts will help.
func needsPerson(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsInvalid(err)
}

// retryAfter returns how long the server asks to wait, zero if it does not ask.
func retryAfter(err error) time.Duration {
	seconds, ok := apierrors.SuggestsClientDelay(err)
	if !ok || seconds < 0 {
		return 0
	}
	return time.Duration(seconds) * time.Second
}
