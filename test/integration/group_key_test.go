// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// keyed makes a pod a member of a gang without a PodGroup.
func keyed(key, min string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		annotated(v1alpha1.AnnotationGroupKey, key)(p)
		annotated(v1alpha1.AnnotationMinMember, min)(p)
	}
}

// TestGroupKeys: the pods of several Jobs with one group key are one gang.
func TestGroupKeys(t *testing.T) {
	play(t, map[string]scenario{
		"two Jobs start together": {
			cluster: controllers,
			given: rows(nodes("n", 1, "3cpu"),
				batchJob("driver", 1, "1cpu", keyed("run/1", "4")), batchJob("workers", 3, "1cpu", keyed("run/1", "4"))),
			step: step{want: "driver: 1 waiting Unschedulable\nworkers: 3 waiting Unschedulable"},
			then: []step{{do: rows(nodes("more", 1, "1cpu")), want: "driver: 1 running\nworkers: 3 running"}},
		},
		"a Job alone is not enough": {
			cluster: controllers,
			given:   rows(nodes("n", 1, "4cpu"), batchJob("driver", 1, "1cpu", keyed("run", "4"))),
			step:    step{want: "driver: 1 waiting NotEnoughPods"},
			then: []step{{
				do:   rows(batchJob("workers", 3, "1cpu", keyed("run", "4"))),
				want: "driver: 1 running\nworkers: 3 running",
			}},
		},
		"pods that disagree about the size do not start": {
			cluster: controllers,
			given: rows(nodes("n", 1, "4cpu"),
				batchJob("driver", 1, "1cpu", keyed("run", "2")), batchJob("workers", 3, "1cpu", keyed("run", "4"))),
			step: step{
				want: "driver: 1 waiting GroupConflict\nworkers: 3 waiting GroupConflict",
				prints: map[string]string{
					"driver": "pods with one scheduling.batch-scheduler.dev/group-key name different sizes in scheduling.batch-scheduler.dev/min-member: 2 and 4",
				},
			},
		},
		"a pod without a size keeps the others waiting": {
			cluster: controllers,
			given: rows(nodes("n", 1, "4cpu"),
				batchJob("driver", 1, "1cpu", annotated(v1alpha1.AnnotationGroupKey, "run")), batchJob("workers", 3, "1cpu", keyed("run", "3"))),
			step: step{want: "driver: 1 waiting GroupConflict\nworkers: 3 waiting GroupConflict"},
		},
	})
}
