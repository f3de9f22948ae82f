// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

func TestRejectSystemPods(t *testing.T) {
	for name, tc := range map[string]struct {
		namespace, class string
		want             api.Vote
	}{
		"abstains for a pod of a user":   {namespace: "team", class: "high", want: api.Abstain},
		"rejects a pod in kube-system":   {namespace: "kube-system", want: api.Reject},
		"rejects a cluster-critical pod": {namespace: "team", class: "system-cluster-critical", want: api.Reject},
		"rejects a node-critical pod":    {namespace: "team", class: "system-node-critical", want: api.Reject},
	} {
		t.Run(name, func(t *testing.T) {
			ordinary := &api.TaskInfo{Pod: &v1.Pod{}}
			given := &api.TaskInfo{Pod: &v1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: tc.namespace}, Spec: v1.PodSpec{PriorityClassName: tc.class},
			}}
			if got := rejectSystemPods(nil, api.Unit{Tasks: []*api.TaskInfo{ordinary, given}}); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
