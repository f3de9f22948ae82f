// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	k8stesting "k8s.io/client-go/testing"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/api"
)

// TestRecordWritesAFile records the groups of two APIs, of which one may not be read.
func TestRecordWritesAFile(t *testing.T) {
	t.Parallel()
	c := newPretended().serve(api.SourceVolcano, api.SourceKAI)
	for name, annotations := range map[string]map[string]string{
		"ray-0": {"scheduling.k8s.io/group-name": "ray"}, "ray-1": {"scheduling.k8s.io/group-name": "ray"}, "single": nil,
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", Name: name, UID: types.UID("uid-" + name), CreationTimestamp: anHourAgo(), Annotations: annotations,
		}}
		pod.Spec.SchedulerName = "batch-scheduler"
		pod.Spec.Containers = []corev1.Container{{Name: "main", Env: []corev1.EnvVar{{Name: "SECRET", Value: "secret"}}}}
		if err := c.core.Tracker().Add(pod); err != nil {
			t.Fatal(err)
		}
	}
	c.other.PrependReactor("list", "podgroups", func(action k8stesting.Action) (bool, runtime.Object, error) {
		if action.GetResource().Group != "scheduling.run.ai" {
			return false, nil, nil
		}
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Group: "scheduling.run.ai", Resource: "podgroups"}, "", nil)
	})
	file := filepath.Join(t.TempDir(), "day.jsonl")
	printed := run(t, c, "", "record", "--for", "1ms", "-o", file)
	for _, part := range []string{"Warning: the PodGroups of scheduling.run.ai are not recorded", "Recording 0 nodes, 2 queues and 2 jobs", "2 jobs, of which 0 ended"} {
		if !strings.Contains(printed, part) {
			t.Errorf("want %q in\n%s", part, printed)
		}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(data); !strings.Contains(got, `"name":"team/ray","queue":"research","min":2,"replicas":2`) || !strings.Contains(got, `"end":true`) || strings.Contains(got, "secret") {
		t.Errorf("the record is\n%s", got)
	}
}
