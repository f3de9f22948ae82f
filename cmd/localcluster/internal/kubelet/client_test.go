// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
)

func TestPodsAreDeletedByUID(t *testing.T) {
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
			err := guardedClient{client}.CoreV1().Pods("ns").Delete(t.Context(), "pod", metav1.DeleteOptions{})
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

// TestPodsThatHaveEnded: of two stages that are applied at the same time, the later one does not change the final phase.
func TestPodsThatHaveEnded(t *testing.T) {
	for name, tc := range map[string]struct {
		phase   corev1.PodPhase // when the patch arrives
		changed bool            // since kwok has seen the pod
		want    []string        // resource versions of the patches
	}{
		"the pod has not changed":               {corev1.PodPending, false, []string{"1"}},
		"the pod has changed":                   {corev1.PodPending, true, []string{"1", "2"}},
		"the pod has ended":                     {corev1.PodFailed, true, []string{"1"}},
		"the pod has ended as it should":        {corev1.PodSucceeded, true, []string{"1"}},
		"the pod was started by another worker": {corev1.PodRunning, true, []string{"1", "2"}},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod", UID: "uid", ResourceVersion: "1"}}
			pod.Status.Phase = tc.phase
			if tc.changed {
				pod.ResourceVersion = "2"
			}
			client, got := fake.NewSimpleClientset(pod), []string{}
			client.PrependReactor("patch", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
				var sent patch
				if err := json.Unmarshal(action.(clienttesting.PatchAction).GetPatch(), &sent); err != nil {
					t.Fatal(err)
				}
				if got = append(got, sent.Metadata.ResourceVersion); sent.Status.Phase != corev1.PodRunning || sent.Metadata.UID != "uid" {
					t.Errorf("the patch is %+v", sent)
				}
				if sent.Metadata.ResourceVersion != pod.ResourceVersion {
					return true, nil, apierrors.NewConflict(corev1.Resource("pods"), "pod", errors.New("it has changed"))
				}
				return true, pod, nil
			})
			data, err := json.Marshal(patch{patchMeta{"uid", "1"}, corev1.PodStatus{Phase: corev1.PodRunning}})
			if err != nil {
				t.Fatal(err)
			}
			_, err = guardedClient{client}.CoreV1().Pods("ns").Patch(t.Context(), "pod", types.StrategicMergePatchType, data, metav1.PatchOptions{}, "status")
			if refused := apierrors.IsConflict(err); refused != (tc.changed && len(tc.want) == 1) || err != nil && !refused {
				t.Errorf("got error %v", err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("patches (-want +got):\n%s", diff)
			}
		})
	}
}
