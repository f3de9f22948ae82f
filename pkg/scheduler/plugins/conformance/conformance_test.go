package conformance

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

func TestProtectSystem(t *testing.T) {
	for name, tc := range map[string]struct {
		namespace, class string
		want             api.Vote
	}{
		"a user's pod is for others to decide": {namespace: "team", class: "high", want: api.Abstain},
		"kube-system stays":                    {namespace: "kube-system", want: api.Reject},
		"what the cluster needs stays":         {namespace: "team", class: "system-cluster-critical", want: api.Reject},
		"what a node needs stays":              {namespace: "team", class: "system-node-critical", want: api.Reject},
	} {
		t.Run(name, func(t *testing.T) {
			harmless := &api.TaskInfo{Pod: &v1.Pod{}}
			given := &api.TaskInfo{Pod: &v1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: tc.namespace}, Spec: v1.PodSpec{PriorityClassName: tc.class},
			}}
			if got := protectSystem(nil, api.Unit{Tasks: []*api.TaskInfo{harmless, given}}); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
