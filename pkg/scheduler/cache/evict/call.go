// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package evict

import (
	"context"
	"encoding/json"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/cache/internal/apicall"
)

const (
	// maxAttempts bounds how often an eviction is sent that the API server neither accepts nor
	// refuses.
	maxAttempts = 5
	retryDelay  = 200 * time.Millisecond // before the second attempt, then doubled
)

// evict evicts a pod and returns nil once that is certain. It retries while the API server neither
// accepts nor refuses. After an error it reads the pod: the response may have been lost, and a
// conflict may be about another pod of that name or about the write of another client. The caller has acquired a permit
// and keeps it between attempts, so an API server that is overloaded gets fewer requests.
func (e *Evictor) evict(ctx context.Context, victim *Victim) error {
	delay := retryDelay
	for attempt := 1; ; attempt++ {
		err := e.call(ctx, victim)
		switch {
		case err == nil, apierrors.IsNotFound(err):
			return nil
		case apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause), apicall.Permanent(err):
			return err
		case e.leaving(ctx, victim):
			return nil
		case attempt == maxAttempts:
			return err
		}
		timer := e.Clock.NewTimer(max(delay, apicall.RetryAfter(err)))
		<-timer.C()
		delay *= 2
	}
}

// call sends the eviction of this very pod. Its UID is a precondition, so a later pod of the same
// name is not evicted.
func (e *Evictor) call(ctx context.Context, victim *Victim, dryRun ...string) error {
	call, cancel := context.WithTimeout(ctx, apicall.Timeout)
	defer cancel()
	return e.Kube.PolicyV1().Evictions(victim.Namespace).Evict(call, &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Namespace: victim.Namespace, Name: victim.Name},
		DeleteOptions: &metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &victim.UID},
			DryRun:        dryRun,
		},
	})
}

// mayBeGone reports whether an error may mean that the pod does not exist any more.
func mayBeGone(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsConflict(err) }

// leaving reports whether the pod is certainly deleted or being deleted.
func (e *Evictor) leaving(ctx context.Context, victim *Victim) bool {
	call, cancel := context.WithTimeout(ctx, apicall.Timeout)
	defer cancel()
	pod, err := e.Kube.CoreV1().Pods(victim.Namespace).Get(call, victim.Name, metav1.GetOptions{})
	return apierrors.IsNotFound(err) || err == nil && (pod.UID != victim.UID || pod.DeletionTimestamp != nil)
}

// waits reports whether a pod exists and has no node. If the read fails, it does. It does if the pod is not known.
func (e *Evictor) waits(ctx context.Context, preemptor *v1.ObjectReference) bool {
	if preemptor == nil {
		return true
	}
	call, cancel := context.WithTimeout(ctx, apicall.Timeout)
	defer cancel()
	pod, err := e.Kube.CoreV1().Pods(preemptor.Namespace).Get(call, preemptor.Name, metav1.GetOptions{})
	if err != nil {
		return !apierrors.IsNotFound(err)
	}
	return pod.UID == preemptor.UID && pod.DeletionTimestamp == nil && pod.Spec.NodeName == ""
}

// annotate writes the name of the preemptor to the victim. It patches the status subresource, which
// takes annotations too, so the scheduler needs no right to change pods. A failure is logged only.
func (e *Evictor) annotate(ctx context.Context, victim *Victim, preemptor string) {
	if preemptor == "" {
		return
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":         victim.UID,
		"annotations": map[string]string{v1alpha1.AnnotationEvictedFor: preemptor},
	}})
	if err == nil {
		call, cancel := context.WithTimeout(ctx, apicall.Timeout)
		defer cancel()
		_, err = e.Kube.CoreV1().Pods(victim.Namespace).Patch(call, victim.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	}
	if err != nil && !mayBeGone(err) {
		e.Log.V(2).Info("Annotation failed", "pod", victim.ref(), "preemptor", preemptor, "err", err)
	}
}
