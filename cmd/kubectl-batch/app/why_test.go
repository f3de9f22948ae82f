// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestWhyOfADeletedPodGroup asserts that events that are left say what happened to it.
func TestWhyOfADeletedPodGroup(t *testing.T) {
	t.Parallel()
	c := newPretended()
	e := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "team", Name: "gone.1"},
		InvolvedObject: corev1.ObjectReference{Kind: "PodGroup", Namespace: "team", Name: "gone", UID: "uid-gone"},
		Reason:         "Reclaimed", Message: "the gang (4 pods) was evicted by reclaim", EventTime: metav1.NewMicroTime(anHourAgo().Time),
	}
	if err := c.core.Tracker().Add(e); err != nil {
		t.Fatal(err)
	}
	const past = "PodGroup: team/gone, which does not exist any more\nHistory:  60m ago Reclaimed: the gang (4 pods) was evicted by reclaim\n"
	const absent = "error: PodGroup \"gone\" not found in namespace team; \"kubectl batch get podgroups -A\" lists all namespaces\n"
	for argument, want := range map[string]string{"gone": past + absent, "podgroup/gone": past + absent, "gone -o json": absent} {
		got := run(t, c, "", append([]string{"why"}, strings.Fields(argument)...)...)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("why %s (-want +got):\n%s", argument, diff)
		}
	}
}
