// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	v1 "k8s.io/api/core/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/scheduling/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest/fakecluster"
)

// boundByOthers records the calls of PodsBoundByOthers.
type boundByOthers struct {
	noMetrics
	names []string
}

func (b *boundByOthers) PodsBoundByOthers(name string, _ int) { b.names = append(b.names, name) }

// TestContestedNames: a pod with one of the names of the scheduler is bound while the scheduler runs.
func TestContestedNames(t *testing.T) {
	committed := func(p *v1.Pod) {
		p.Annotations = map[string]string{v1alpha1.AnnotationQueue: "default", v1alpha1.AnnotationPodGroupUID: ""}
	}
	for name, test := range map[string]struct {
		schedulerName string
		bound         func(*v1.Pod)
		rebuild       bool
		want          []string
	}{
		"by this scheduler":               {schedulerName: "volcano", bound: committed},
		"by another client":               {schedulerName: "volcano", want: []string{"volcano"}},
		"by another client, first name":   {schedulerName: fakecluster.SchedulerName, want: []string{fakecluster.SchedulerName}},
		"a pod of another scheduler":      {schedulerName: "someone"},
		"once, although the model is new": {schedulerName: "volcano", rebuild: true, want: []string{"volcano"}},
	} {
		t.Run(name, func(t *testing.T) {
			c, h := newCache(t)
			got := &boundByOthers{}
			c.options.Metrics = got
			pods := handler(c, podKind([]string{fakecluster.SchedulerName, "volcano"}))
			h.nodes.OnAdd(node("n1"), true)
			before := with(member("", "p"), func(p *v1.Pod) { p.ResourceVersion, p.Spec.SchedulerName = "1", test.schedulerName })
			after := with(before.DeepCopy(), func(p *v1.Pod) { p.ResourceVersion, p.Spec.NodeName = "2", "n1" })
			if test.bound != nil {
				test.bound(after)
			}
			pods.OnAdd(before, true)
			c.Apply()
			pods.OnUpdate(before, after)
			c.Apply()
			if test.rebuild {
				c.Rebuild()
			}
			running := with(after.DeepCopy(), func(p *v1.Pod) { p.ResourceVersion, p.Status.Phase = "3", v1.PodRunning })
			pods.OnUpdate(after, running)
			c.Apply()
			if diff := cmp.Diff(test.want, got.names, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
		})
	}
}
