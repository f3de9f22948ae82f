// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// deletingByUID is a client that deletes a pod only if it is terminating, as real kubelets do. kwok deletes by name
// only, and so would delete a pod that was created with the name of a deleted one.
type deletingByUID struct{ kubernetes.Interface }

func (c deletingByUID) CoreV1() typedcorev1.CoreV1Interface {
	return deletingCore{c.Interface.CoreV1()}
}

type deletingCore struct{ typedcorev1.CoreV1Interface }

func (c deletingCore) Pods(namespace string) typedcorev1.PodInterface {
	return deletingPods{c.CoreV1Interface.Pods(namespace)}
}

type deletingPods struct{ typedcorev1.PodInterface }

// Delete returns NotFound if the pod of that name is not terminating.
func (c deletingPods) Delete(ctx context.Context, name string, options metav1.DeleteOptions) error {
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
