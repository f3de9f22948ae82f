// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/test/scheduler"
	"github.com/batch-scheduler/batch-scheduler/test/workloads"
)

const dir = "../../config/samples/workloads"

// TestEachKindHasASample lists the files, so that none is missing, with the size of the gang in each.
func TestEachKindHasASample(t *testing.T) {
	t.Parallel()
	got := map[string]int32{}
	for _, s := range all(t) {
		got[s.Name] = s.Group.Spec.MinMember
	}
	want := map[string]int32{"job": 4, "job-indexed": 4, "jobset": 8, "mpijob": 5, "raycluster": 4, "sparkapplication": 3, "trainjob": 3}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files and minMember (-want +got):\n%s", diff)
	}
}

// TestGangsAreComplete checks that the pods of a file have the scheduler's name and complete their group exactly.
// Pods outside of the group name its queue, so that they count there too.
func TestGangsAreComplete(t *testing.T) {
	t.Parallel()
	for _, s := range all(t) {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			members := 0
			for _, p := range s.Pods {
				if err := belongs(p, s.Group); err != nil {
					t.Errorf("%s: %v", p.Where, err)
				}
				if p.Template.Labels[v1alpha1.LabelPodGroup] != "" {
					members += p.Count
				}
			}
			if want := int(s.Group.Spec.MinMember); members != want {
				t.Errorf("the file creates %d pods of the group, and minMember is %d", members, want)
			}
		})
	}
}

func belongs(p workloads.Pods, g *v1alpha1.PodGroup) error {
	if name := p.Template.Spec.SchedulerName; name != scheduler.Name {
		return fmt.Errorf("schedulerName is %q, not %q", name, scheduler.Name)
	}
	group, inGroup := p.Template.Labels[v1alpha1.LabelPodGroup]
	if !inGroup && p.Template.Labels[v1alpha1.LabelQueue] != g.Spec.Queue {
		return fmt.Errorf("the pods have neither the label %s nor the queue of the group", v1alpha1.LabelPodGroup)
	}
	if inGroup && group != g.Name {
		return fmt.Errorf("the label %s is %q, and the group of the file is %q", v1alpha1.LabelPodGroup, group, g.Name)
	}
	return nil
}

func all(t *testing.T) []*workloads.Sample {
	t.Helper()
	samples, err := workloads.ReadAll(dir)
	if err != nil {
		t.Fatal(err)
	}
	return samples
}
