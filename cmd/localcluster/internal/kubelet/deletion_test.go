// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
)

func TestDeletingByUID(t *testing.T) {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod", UID: "uid"}}
	terminating := *pod.DeepCopy()
	terminating.DeletionTimestamp, terminating.Finalizers = ptr.To(metav1.Now()), []string{"example.com/test"}
	for name, tc := range map[string]struct {
		given       *corev1.Pod
		wantDeletes []string // UIDs in delete requests
	}{
		"a terminating pod is deleted with its UID as precondition": {given: &terminating, wantDeletes: []string{"uid"}},
		"a pod that is not terminating is not deleted":              {given: &pod},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewSimpleClientset(tc.given)
			err := deletingByUID{client}.CoreV1().Pods("ns").Delete(t.Context(), "pod", metav1.DeleteOptions{})
			if gone := apierrors.IsNotFound(err); gone != (tc.wantDeletes == nil) || err != nil && !gone {
				t.Errorf("got error %v", err)
			}
			var deletes []string
			for _, action := range client.Actions() {
				if d, ok := action.(clienttesting.DeleteActionImpl); ok {
					deletes = append(deletes, string(*d.DeleteOptions.Preconditions.UID))
				}
			}
			if diff := cmp.Diff(tc.wantDeletes, deletes); diff != "" {
				t.Errorf("deletions (-want +got):\n%s", diff)
			}
		})
	}
}
