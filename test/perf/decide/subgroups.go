// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strconv"

	v1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// segmentPods is the number of pods of a segment.
const segmentPods = 10

// subGroups are one gang of so many segments: all of them must start, or only the first one.
func subGroups(nodes, segments int) []benchmark {
	var list []benchmark
	for _, minimum := range []int{segments, 1} {
		name := "needed"
		if minimum < segments {
			name = "surplus"
		}
		list = append(list, benchmark{
			name:  "IS1/subgroups/" + name,
			about: fmt.Sprintf("IS1: one gang of %d segments of %d pods, of which %d must start, on an empty cluster", segments, segmentPods, minimum),
			build: func() *fixture {
				w := newFixture(nodes)
				w.addQueue("a", 1)
				addSegments(w, job{name: "gang", queue: "a", class: low, min: 1, size: segments * segmentPods}, int32(minimum), segmentPods)
				return w
			},
			cycles: []cycle{{
				want:   outcome{"a " + low: counts{bound: segments * segmentPods}},
				limits: []limit{{name: "cycle", most: 20}},
			}},
		})
	}
	return list
}

// addSegments adds a job of segments of so many pods each, of which a minimum must start.
func addSegments(w *fixture, j job, minimum, size int32) {
	number := 0
	j.alter = func(pod *v1.Pod) {
		pod.Labels["batch.kubernetes.io/job-completion-index"] = strconv.Itoa(number)
		pod.Labels[v1alpha1.LabelSubGroup] = "replicas"
		number++
	}
	w.add(j)
	w.groups[len(w.groups)-1].Spec.SubGroups = []v1alpha1.SubGroup{{Name: "replicas", SegmentSize: size, MinSubGroup: &minimum}}
}
