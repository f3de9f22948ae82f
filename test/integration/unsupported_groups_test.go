// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
)

// TestGangsOfOtherAPIs: a Job of eight pods, of which four fit, names its gang as another gang scheduler does. None of
// its pods starts, and the message names the API and the label that is required.
func TestGangsOfOtherAPIs(t *testing.T) {
	const required = ", which this scheduler does not support; create a PodGroup of scheduling.batch-scheduler.dev and name it with the label scheduling.batch-scheduler.dev/pod-group"
	jobs := map[string]struct {
		edit  func(*corev1.Pod)
		names string // what the message begins with
	}{
		"plugins": {
			edit:  label("scheduling.x-k8s.io/pod-group", "train"),
			names: `the label scheduling.x-k8s.io/pod-group names group "train" of scheduler-plugins (scheduling.x-k8s.io)`,
		},
		"plugins-before": {
			edit:  label("pod-group.scheduling.sigs.k8s.io", "train"),
			names: `the label pod-group.scheduling.sigs.k8s.io names group "train" of scheduler-plugins (scheduling.x-k8s.io)`,
		},
		"volcano": {
			edit:  annotated("scheduling.volcano.sh/group-name", "train"),
			names: `the annotation scheduling.volcano.sh/group-name names group "train" of Volcano (scheduling.volcano.sh)`,
		},
		"volcano-label": {
			edit:  label("scheduling.volcano.sh/group-name", "train"),
			names: `the label scheduling.volcano.sh/group-name names group "train" of Volcano (scheduling.volcano.sh)`,
		},
		"kai": {
			edit:  annotated("pod-group-name", "train"),
			names: `the annotation pod-group-name names group "train" of KAI Scheduler (scheduling.run.ai)`,
		},
		"kai-subgroup": {
			edit:  label("kai.scheduler/subgroup-name", "workers"),
			names: `the label kai.scheduler/subgroup-name names group "workers" of KAI Scheduler (scheduling.run.ai)`,
		},
		"yunikorn": {
			edit:  annotated("yunikorn.apache.org/task-group-name", "train"),
			names: `the annotation yunikorn.apache.org/task-group-name names group "train" of YuniKorn (yunikorn.apache.org)`,
		},
	}
	given := rows(nodes("gpu", 4, "64cpu 8gpu"), batchJob("old", 8, "4cpu 8gpu", annotated(v1alpha1.AnnotationGroupName, "old")))
	waiting := []string{"old: 8 waiting GroupNotFound"}
	prints := map[string]string{
		"old": `PodGroup "old" does not exist in the namespace of the pod; create it or correct the annotation scheduling.k8s.io/group-name (PodGroups of kube-batch and Volcano do not count)`,
	}
	for name, job := range jobs {
		given = append(given, batchJob(name, 8, "4cpu 8gpu", job.edit))
		waiting = append(waiting, fmt.Sprintf("%s: 8 waiting %s", name, v1alpha1.ReasonUnsupportedPodGroupAPI))
		prints[name] = job.names + required
	}
	started := strings.Replace(strings.Join(waiting, "\n"), "plugins: 8 waiting "+v1alpha1.ReasonUnsupportedPodGroupAPI,
		"plugins: 4 running, 4 waiting Unschedulable", 1)
	play(t, map[string]scenario{
		"no pod starts before it names a PodGroup": {
			cluster: controllers,
			given:   given,
			step:    step{want: strings.Join(waiting, "\n"), prints: prints},
			then: []step{{
				do:   rows(unlabelledGroup("plugins", 4), regroup("plugins", "plugins")),
				want: started,
			}},
		},
	})
}

// unlabelledGroup is a PodGroup that pictures do not show.
func unlabelledGroup(name string, min int32) row {
	return group(name, min, func(g *gangParts) { g.group.Labels = nil })
}
