// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/util/retry"
)

// guardedClient is a client that changes pods only as real kubelets do. It deletes a pod only if it is terminating:
// kwok deletes by name only, and so would delete a pod that was created with the name of a deleted one. And it does not
// change a pod that has ended: two workers of kwok may start and stop one pod at the same time.
type guardedClient struct{ kubernetes.Interface }

func (c guardedClient) CoreV1() typedcorev1.CoreV1Interface {
	return guardedCore{c.Interface.CoreV1()}
}

type guardedCore struct{ typedcorev1.CoreV1Interface }

func (c guardedCore) Pods(namespace string) typedcorev1.PodInterface {
	return guardedPods{c.CoreV1Interface.Pods(namespace)}
}

type guardedPods struct{ typedcorev1.PodInterface }

// Delete returns NotFound if the pod of that name is not terminating.
func (c guardedPods) Delete(ctx context.Context, name string, options metav1.DeleteOptions) error {
	pod, err := c.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if pod.DeletionTimestamp == nil {
		return apierrors.NewNotFound(corev1.Resource("pods"), name)
	}
	options.Preconditions = metav1.NewUIDPreconditions(string(pod.UID))
	return c.PodInterface.Delete(ctx, name, options)
}

// Patch writes a patch of podLifecycle. The patch has the resource version that kwok has seen. If the pod has another one
// by now, Patch sends it again with that version, unless the pod has ended.
func (c guardedPods) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions, subresources ...string) (*corev1.Pod, error) {
	var patched *corev1.Pod
	ended := false
	err := retry.OnError(retry.DefaultBackoff, func(err error) bool { return apierrors.IsConflict(err) && !ended }, func() error {
		var err error
		if patched, err = c.PodInterface.Patch(ctx, name, kind, data, options, subresources...); !apierrors.IsConflict(err) {
			return err
		}
		now, failed := c.Get(ctx, name, metav1.GetOptions{})
		if failed != nil {
			return failed
		}
		if ended = now.Status.Phase == corev1.PodSucceeded || now.Status.Phase == corev1.PodFailed; ended {
			return err
		}
		if data, failed = withResourceVersion(data, now.ResourceVersion); failed != nil {
			return failed
		}
		return err
	})
	return patched, err
}

// withResourceVersion returns a patch that the API server rejects if the object does not have that version.
func withResourceVersion(data []byte, version string) ([]byte, error) {
	var generic struct {
		Metadata patchMeta       `json:"metadata"`
		Status   json.RawMessage `json:"status"`
	}
	if err := json.Unmarshal(data, &generic); err != nil {
		return nil, fmt.Errorf("decoding a patch: %w", err)
	}
	generic.Metadata.ResourceVersion = version
	return json.Marshal(generic)
}
