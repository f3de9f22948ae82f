// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// A scheduler that is killed between the creation of a claim for extended resources and the bind leaves the claim to a
// pod that has no node. The devices of the claim are taken, and the pod would get others. So each session looks at the
// claims that the informer has shown since the last one:
//
//	the pod does not exist, or has ended   the garbage collector deletes the claim
//	the pod belongs to another scheduler   not ours
//	the pod has a node and names it        the pod uses it
//	the pod is about to be bound with it   look again in the next session
//	otherwise                              leftover: delete it
//
// A pod whose claim is deleted fits on no node until the API server shows the deletion, because its status may still
// name the claim.

// leftover is a claim that is deleted.
type leftover struct {
	claim  *resourcev1.ResourceClaim
	pod    *v1.Pod
	placed bool // the pod has a node, or is about to: its status names another claim
}

// verify finds the leftovers among the claims that the informer has shown since the last call.
func (e *extendedClaims) verify(tasks map[api.TaskID]*api.TaskInfo) []leftover {
	e.mu.Lock()
	defer e.mu.Unlock()
	var found []leftover
	for uid, claim := range e.unverified {
		pod, _ := extendedFor(claim)
		t, reserved := tasks[api.TaskID(pod)], e.reserved[pod]
		known := reserved != nil && reserved.created != nil
		switch {
		case t == nil || t.Job == nil || t.Status.Ended():
			delete(e.unverified, uid)
		case t.Pod.Spec.NodeName != "" && usesExtended(t.Pod, claim):
			delete(e.unverified, uid)
			if known && reserved.created.UID == uid && reserved.pending == "" {
				delete(e.reserved, pod)
			}
		case reserved != nil && (!known || reserved.created.UID == uid) && (t.InFlight() || t.Pod.Spec.NodeName != ""):
		default:
			delete(e.unverified, uid)
			e.leftovers[uid] = pod
			found = append(found, leftover{claim, t.Pod, t.InFlight() || t.Pod.Spec.NodeName != ""})
		}
	}
	slices.SortFunc(found, func(a, b leftover) int {
		return slices.Compare([]string{a.claim.Namespace, a.claim.Name}, []string{b.claim.Namespace, b.claim.Name})
	})
	return found
}

// hasUnverified reports whether verify has anything to do.
func (e *extendedClaims) hasUnverified() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.unverified) > 0
}

// deletesOf reports whether a claim of the pod is being deleted.
func (e *extendedClaims) deletesOf(pod types.UID) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, owner := range e.leftovers {
		if owner == pod {
			return true
		}
	}
	return false
}

// keep ends the deletion of a claim that its pod uses after all.
func (e *extendedClaims) keep(claim *resourcev1.ResourceClaim) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.leftovers, claim.UID)
}

// deleteLeftovers deletes the leftovers that verify finds, in the background.
func (d *Devices) deleteLeftovers(kube kubernetes.Interface, tasks map[api.TaskID]*api.TaskInfo, log logr.Logger) {
	if kube == nil || !d.extended.hasUnverified() {
		return
	}
	found := d.extended.verify(tasks)
	if len(found) == 0 {
		return
	}
	go workqueue.ParallelizeUntil(context.Background(), deleteWorkers, len(found), func(i int) {
		d.deleteLeftover(kube, found[i], log)
	})
}

const (
	deleteWorkers = 16
	// deleteTimeout limits how long one attempt waits for the API server.
	deleteTimeout = 15 * time.Second
)

// deleteLeftover deletes a leftover, and tries again until it succeeds.
func (d *Devices) deleteLeftover(kube kubernetes.Interface, l leftover, log logr.Logger) {
	log = log.WithValues("claim", klog.KObj(l.claim), "pod", klog.KObj(l.pod))
	backoff := wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 0.1, Steps: 7}
	for {
		ctx, cancel := context.WithTimeout(context.Background(), deleteTimeout)
		used, err := l.used(ctx, kube)
		if err == nil && !used {
			err = deleteExtended(ctx, kube, l.claim, l.pod, !l.placed)
		}
		cancel()
		switch {
		case err != nil:
			log.Info("Deletion of a leftover resource claim failed", "err", err)
			time.Sleep(backoff.Step()) //nolint:forbidigo // it runs beside the cycles
			continue
		case used:
			d.extended.keep(l.claim)
		default:
			log.V(2).Info("Leftover resource claim deleted")
		}
		return
	}
}

// used asks the API server whether the pod was bound with the claim. The informer may not show the bind of a scheduler
// that has stopped meanwhile.
func (l leftover) used(ctx context.Context, kube kubernetes.Interface) (bool, error) {
	pod, err := kube.CoreV1().Pods(l.pod.Namespace).Get(ctx, l.pod.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, err
	}
	return pod.UID == l.pod.UID && pod.Spec.NodeName != "" && usesExtended(pod, l.claim), nil
}

// deleteExtended deletes a claim for extended resources. If cleared is set, it removes the claim from the status of the
// pod first: a kubelet waits for the claim that the status names, also on a node that provides the resource itself.
func deleteExtended(ctx context.Context, kube kubernetes.Interface, claim *resourcev1.ResourceClaim, pod *v1.Pod, cleared bool) error {
	if cleared {
		patch := fmt.Sprintf(`{"metadata":{"uid":%q},"status":{"extendedResourceClaimStatus":null}}`, pod.UID)
		_, err := kube.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) { // gone, or another pod of the name
			return err
		}
	}
	client := kube.ResourceV1().ResourceClaims(claim.Namespace)
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		current, err := client.Get(ctx, claim.Name, metav1.GetOptions{})
		if err != nil || current.UID != claim.UID || !slices.Contains(current.Finalizers, resourcev1.Finalizer) {
			return err
		}
		current.Finalizers = slices.DeleteFunc(slices.Clone(current.Finalizers), func(f string) bool { return f == resourcev1.Finalizer })
		_, err = client.Update(ctx, current, metav1.UpdateOptions{})
		return err
	})
	if err == nil {
		err = client.Delete(ctx, claim.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(claim.UID))})
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // conflict: another claim of the name
		return nil
	}
	return err
}
